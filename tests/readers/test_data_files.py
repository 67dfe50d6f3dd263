"""Data files as public sets have them, from `tests/data/data_file_cases.jsonl`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.benchmark_files import png, rubric_row, write_lines

from snellen.errors import DataError
from snellen.readers import load_benchmark

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

PATH = Path(__file__).parents[1] / "data" / "data_file_cases.jsonl"
CASES = [json.loads(line) for line in PATH.read_text(encoding="utf-8").splitlines()]
STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def column(kind: str) -> Any:
    """Two pictures in a column of that type."""
    data = [png((shade, 0, 0)) for shade in (10, 90)]
    structs = [{"bytes": one, "path": None} for one in data]
    names = ["imgs/1.png", "imgs/1.png"]
    return {
        "list_struct": lambda: pa.array([[one] for one in structs], pa.list_(STRUCT)),
        "large_binary": lambda: pa.array(data, pa.large_binary()),
        "dictionary": lambda: pa.array(data, pa.binary()).dictionary_encode(),
        "path": lambda: pa.array([{"bytes": None, "path": name} for name in names], STRUCT),
        "string": lambda: pa.array(names, pa.large_string()),
        "large_list": lambda: pa.array([[one] for one in data], pa.large_list(pa.binary())),
        "nothing": lambda: pa.array([{"bytes": None, "path": None}] * 2, STRUCT),
    }[kind]()


def table(first: int, images: Any) -> Any:
    rows = [rubric_row(f"r{first + n}", "") for n in range(len(images))]
    plain = pa.Table.from_pylist(rows).drop_columns(["image"])
    return plain.append_column("image", images)


def lay_out(case: dict[str, Any], folder: Path) -> Path:
    """Writes the files of a case; gives the place to load."""
    (folder / "imgs").mkdir()
    for name in ("1.png", "a b.png"):
        (folder / "imgs" / name).write_bytes(png())
    if "path" in case:
        return write_lines(folder / "test.jsonl", [rubric_row("r0", case["path"])])
    if "column" in case:
        pq.write_table(table(0, column(case["column"])), folder / "test.parquet")
        return folder / "test.parquet"
    for number, name in enumerate(case["files"]):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if path.suffix == ".parquet":
            pq.write_table(table(2 * number, column("large_binary")), path)
        elif path.suffix == ".ndjson":
            write_lines(path, [rubric_row(f"r{n}", "imgs/1.png") for n in range(2)])
        else:
            path.write_text("", encoding="utf-8")
    return folder / case["load"]


@pytest.mark.parametrize("case", CASES, ids=[one["id"] for one in CASES])
def test_files_load_or_say_what_to_do(tmp_path: Path, case: dict[str, Any]) -> None:
    """Every layout and type loads all its rows, or the error and its hint name the way out."""
    place = lay_out(case, tmp_path)
    if "error" not in case:
        assert len(load_benchmark("perception_rubrics", place).items) == case["rows"]
        return
    with pytest.raises(DataError) as caught:
        load_benchmark("perception_rubrics", place)
    assert case["error"] in caught.value.message
    assert case.get("hint", "") in caught.value.hint
