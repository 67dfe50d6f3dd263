"""The exported folders: the benchmark with its card, and Parquet with Croissant metadata."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.worlds.capprobe_world import config, construct, paint

from snellen.builders.options import ExportOptions


def test_parquet_tables_hold_what_the_benchmark_holds(tmp_path: Path) -> None:
    """Three tables with pictures inside, a card with its head, and the hashes of the files."""
    out = tmp_path / "out"
    named = ExportOptions(name="mine", license="cc-by-4.0", parquet=True)
    construct(paint(tmp_path / "in", 1), out, config=config(export=named))
    card = json.loads((out / "benchmark" / "benchmark.json").read_text(encoding="utf-8"))
    assert (card["name"], card["license"], card["protocol"]) == ("mine", "cc-by-4.0", "reading")
    lines = (out / "benchmark" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    tables = {n: pq.read_table(out / "hub" / "data" / f"{n}.parquet")
              for n in ("images", "regions", "questions")}  # fmt: skip
    assert tables["questions"].to_pylist() == [json.loads(line) for line in lines]
    [image] = tables["images"].to_pylist()
    assert image["image"]["bytes"] == (tmp_path / "in" / "001.png").read_bytes()
    features = json.loads(tables["images"].schema.metadata[b"huggingface"])["info"]["features"]
    assert features["image"] == {"_type": "Image"}
    assert set(features) == set(image)
    region = tables["regions"].to_pylist()[0]
    assert json.loads(region["mask"])["size"] == [240, 320]
    assert json.loads(region["metadata"])["identity_and_taxonomy"]["segment_nature"] == "stuff"
    readme = (out / "hub" / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("---\nlicense: cc-by-4.0\nconfigs:\n- config_name: images\n")


def test_croissant_names_every_file_and_column(tmp_path: Path) -> None:
    """Each file with its hash, each column with its type and where it is taken from."""
    out = tmp_path / "out"
    construct(paint(tmp_path / "in", 1), out, config=config(export=ExportOptions(parquet=True)))
    found = json.loads((out / "hub" / "croissant.json").read_text(encoding="utf-8"))
    assert found["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    for entry in found["distribution"]:
        data = (out / "hub" / entry["contentUrl"]).read_bytes()
        assert entry["sha256"] == hashlib.sha256(data).hexdigest()
    ids = {entry["@id"] for entry in found["distribution"]}
    for record in found["recordSet"]:
        columns = pq.read_schema(out / "hub" / "data" / f"{record['name']}.parquet").names
        assert [field["name"] for field in record["field"]] == columns
        assert all(field["source"]["fileObject"]["@id"] in ids for field in record["field"])
    kinds = {field["@id"]: field["dataType"] for record in found["recordSet"]
             for field in record["field"]}  # fmt: skip
    assert kinds["images/image"] == "sc:ImageObject"
    assert kinds["regions/bbox"] == "sc:Float"


def test_the_card_says_what_is_in_it_and_who_wrote_it(tmp_path: Path) -> None:
    """Counts, categories, models, thresholds and the seed."""
    out = tmp_path / "out"
    construct(paint(tmp_path / "in", 1), out, config=config(seed=7))
    card = (out / "benchmark" / "card.md").read_text(encoding="utf-8")
    for piece in ("| Images | 1 |", "- questioner: alpha, beta", "Seed 7", "superpixels"):
        assert piece in card


DATASETS = """
import json, sys
from datasets import load_dataset

folder, cache = sys.argv[1:]
found = {name: load_dataset(folder, name, split="train", cache_dir=cache)
         for name in ("images", "regions", "questions")}
print(json.dumps({
    "size": found["images"][0]["image"].size,
    "regions": list(found["regions"]["region_id"]),
    "questions": list(found["questions"]),
}))
"""
CROISSANT = """
import json, sys
import mlcroissant

found = mlcroissant.Dataset(jsonld=sys.argv[1])
issues = found.metadata.issues
first = {name: [dict(row) for row in found.records(name)] for name in ("images", "questions")}
print(json.dumps({
    "errors": sorted(issues.errors),
    "warnings": sorted(issues.warnings),
    "size": first["images"][0]["images/image"].size,
    "questions": [row["questions/question"].decode() for row in first["questions"]],
    "options": len(first["questions"][0]["questions/options"]),
}))
"""


def asked_of(library: str, code: str, *words: Path) -> Any:
    """What a script prints in a process of its own; skipped without the library that it needs."""
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(words[-1].parent / "hf")}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        capture_output=True, text=True, check=False, timeout=300, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_the_datasets_library_loads_the_folder(tmp_path: Path) -> None:
    """Each table is a configuration; pictures are pictures, and rows are those of the benchmark."""
    out = tmp_path / "out"
    construct(paint(tmp_path / "in", 1), out, config=config(export=ExportOptions(parquet=True)))
    found = asked_of("datasets", DATASETS, out / "hub", tmp_path / "cache")
    lines = (out / "benchmark" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert found["questions"] == [json.loads(line) for line in lines]
    assert found["size"] == [320, 240]
    assert len(found["regions"]) == len(set(found["regions"])) > 0


@pytest.mark.slow
def test_mlcroissant_finds_nothing_wrong_and_reads_the_rows(tmp_path: Path) -> None:
    """The metadata are valid, and lead to the same questions and pictures."""
    out = tmp_path / "out"
    named = ExportOptions(parquet=True, license="cc-by-4.0", attribution="A. Painter")
    construct(paint(tmp_path / "in", 1), out, config=config(export=named))
    found = asked_of("mlcroissant", CROISSANT, out / "hub" / "croissant.json")
    lines = (out / "benchmark" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    assert found["errors"] == []
    assert found["questions"] == [json.loads(line)["question"] for line in lines]
    assert (found["size"], found["options"]) == ([320, 240], 4)
