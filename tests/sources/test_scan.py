"""Sources: folders, annotations, layouts of known data sets, tables, and lists of addresses."""

from __future__ import annotations

import json
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.worlds.capprobe_world import paint

from snellen.errors import DataError
from snellen.sources.candidates import Candidate
from snellen.sources.scan import scan


def found(source: Path | str, keep_in: Path) -> dict[str, Candidate]:
    return {one.name: one for one in scan(str(source), keep_in=keep_in)}


def test_a_folder_gives_its_pictures_with_the_folders_above(tmp_path: Path) -> None:
    """Pictures at any depth, in a stable order; other files are passed over."""
    paint(tmp_path / "Sports" / "Ball Sports", 1)
    paint(tmp_path / "Books" / "Art Books", 2)
    (tmp_path / "notes.txt").write_text("x", encoding="utf-8")
    all_ = found(tmp_path, tmp_path / "keep")
    assert list(all_) == ["Books/Art Books/002.png", "Sports/Ball Sports/001.png"]
    assert all_["Sports/Ball Sports/001.png"].labels == ("Sports", "Ball Sports")


def test_annotations_name_pictures_near_them(tmp_path: Path) -> None:
    """COCO's file names and LVIS's addresses are looked for beside the file and around it."""
    paint(tmp_path / "val2017", 1, 2)
    (tmp_path / "annotations").mkdir()
    path = tmp_path / "annotations" / "lvis.json"
    images = [
        {"id": 1, "file_name": "001.png"},
        {"id": 2, "coco_url": "http://images.example/val2017/002.png"},
        {"id": 3, "file_name": "missing.png"},
    ]
    path.write_text(json.dumps({"images": images, "annotations": []}), encoding="utf-8")
    all_ = found(path, tmp_path / "keep")
    assert all_["001.png"].path == tmp_path / "val2017" / "001.png"
    assert all_["val2017/002.png"].path == tmp_path / "val2017" / "002.png"
    assert all_["missing.png"].path is None


def test_open_images_gives_confidence_of_tags(tmp_path: Path) -> None:
    """Tags get their names, and their confidence as the table has it."""
    paint(tmp_path / "train", 1)
    table = "ImageID,Source,LabelName,Confidence\n001,verification,/m/01yrx,0.3\n"
    (tmp_path / "val-imagelabels.csv").write_text(table, encoding="utf-8")
    (tmp_path / "class-descriptions.csv").write_text("/m/01yrx,Cat\n", encoding="utf-8")
    assert found(tmp_path, tmp_path / "keep")["train/001.png"].tags == {"Cat": 0.3}
    (tmp_path / "val-imagelabels.csv").write_text("ImageID,Label\n001,x\n", encoding="utf-8")
    with pytest.raises(DataError, match="row 2: expected the columns ImageID"):
        found(tmp_path, tmp_path / "keep")


def test_places365_gives_the_category_of_its_lists(tmp_path: Path) -> None:
    """A list's category, or the folder of a picture that no list names."""
    paint(tmp_path / "a" / "abbey", 1)
    paint(tmp_path / "val", 2)
    (tmp_path / "places365_val.txt").write_text("002.png 1\n", encoding="utf-8")
    names = "/a/abbey 0\n/a/airfield 1\n"
    (tmp_path / "categories_places365.txt").write_text(names, encoding="utf-8")
    all_ = found(tmp_path, tmp_path / "keep")
    assert all_["val/002.png"].tags == {"a/airfield": 1.0}
    assert all_["a/abbey/001.png"].tags == {"abbey": 1.0}


def test_tables_give_their_first_column_of_pictures(tmp_path: Path) -> None:
    """Pictures in Parquet are kept under their digest; the name is the row's id."""
    data = (paint(tmp_path / "in", 1) / "001.png").read_bytes()
    rows = [{"text": "a", "photo": {"bytes": data, "path": None}, "id": "first"}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    [one] = found(tmp_path / "t.parquet", tmp_path / "keep").values()
    assert one.name == "first"
    assert one.path is not None
    assert one.path.read_bytes() == data
    pq.write_table(pa.Table.from_pylist([{"text": "a"}]), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="no column holds a picture"):
        found(tmp_path / "t.parquet", tmp_path / "keep")


def test_lists_give_paths_and_addresses_and_fetch_once(tmp_path: Path) -> None:
    """A path beside the list, and an address that fsspec opens; what is gone is named."""
    source = paint(tmp_path / "in", 1, 2)
    listed = tmp_path / "in" / "list.txt"
    address = f"file://{source / '002.png'}"
    listed.write_text(
        f"# pictures\n001.png\n\n{address}\nfile:///nowhere/3.png\n", encoding="utf-8"
    )
    first = found(listed, tmp_path / "keep")
    assert first["file:///nowhere/3.png"].path is None
    kept = first[address].path
    assert kept is not None
    assert kept.read_bytes() == (source / "002.png").read_bytes()
    (source / "002.png").unlink()
    assert found(listed, tmp_path / "keep")[address].path == kept


@pytest.mark.parametrize("name", ["nothing", "a.pdf", "bad.json"])
def test_what_is_no_source_is_named(tmp_path: Path, name: str) -> None:
    """The error says what a source may be."""
    if name != "nothing":
        (tmp_path / name).write_text("{}", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        found(tmp_path / name, tmp_path / "keep")
    assert caught.value.hint


def test_a_list_names_objects_of_a_store(tmp_path: Path) -> None:
    """Objects of a store are fetched once each, and one that is not there is named."""
    fsspec = pytest.importorskip("fsspec")
    source = paint(tmp_path / "in", 1)
    store = fsspec.filesystem("memory")
    data = (source / "001.png").read_bytes()
    store.pipe_file("/bucket/a.png", data)
    listed = tmp_path / "list.txt"
    listed.write_text("memory://bucket/a.png\nmemory://bucket/b.png\n", encoding="utf-8")
    first = found(listed, tmp_path / "keep")
    assert first["memory://bucket/b.png"].path is None
    kept = first["memory://bucket/a.png"].path
    assert kept is not None
    assert kept.read_bytes() == data
    store.rm("/bucket/a.png")
    assert found(listed, tmp_path / "keep")["memory://bucket/a.png"].path == kept


@pytest.mark.slow
def test_a_list_names_pictures_of_a_web_server(tmp_path: Path) -> None:
    """Addresses of a real server on this machine are fetched, and a missing one is named."""
    pytest.importorskip("fsspec.implementations.http")
    source = paint(tmp_path / "in", 1)
    handler = partial(QuietHandler, directory=str(source))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        base = f"http://127.0.0.1:{server.server_port}"
        listed = tmp_path / "list.txt"
        listed.write_text(f"{base}/001.png\n{base}/none.png\n", encoding="utf-8")
        first = found(listed, tmp_path / "keep")
        server.shutdown()
    assert first[f"{base}/none.png"].path is None
    kept = first[f"{base}/001.png"].path
    assert kept is not None
    assert kept.read_bytes() == (source / "001.png").read_bytes()


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder, and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Keeps the test's output clean."""
