"""Pictures: 3,000 questions with a 300 KB picture each, and the memory that they take.

    python benchmarks/pictures.py          about a minute and 1.2 GB of temporary files
    python benchmarks/pictures.py --parquet         the same rows in Parquet, 100 a row group
    python benchmarks/pictures.py --pictures 3567 --kb 336          PerceptionBench's size, 1.6 GB

Prints the processor time a call (6,000 calls: a reply and a verdict each) against a bare client
that reads the same file and posts the same pictures, and the peak memory against that of 300
questions.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import measuring
from benchmarks.synthetic import make_direct
from tests.fakes.fast_server import FastServer

IN_FLIGHT = 64
MOST_CPU, MOST_MB, MOST_MB_MORE = 2.5, 350.0, 30.0
GROUP = 100  # rows of a row group, as `datasets` writes pictures
# A judge call's body: the grading prompt with its examples.
JUDGE_BYTES = 7_500


def main() -> None:
    """Prints the figures; exit code 1 where a limit fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--pictures", type=int, help="as many as rows by default")
    parser.add_argument("--kb", type=float, default=300, help="the size of a picture")
    parser.add_argument("--parquet", action="store_true", help="read the rows from Parquet")
    words = parser.parse_args()
    pictures = words.pictures or words.rows
    with measuring.workshop() as place:
        suffix = ".parquet" if words.parquet else ".jsonl"
        few, _ = evaluate(place, words.rows // 10, pictures // 10, words.kb, suffix=suffix)
        ours, floor = evaluate(place, words.rows, pictures, words.kb, suffix=suffix)
    _, cpu = measuring.compare("pictures", ours, floor, 2 * words.rows)
    print(
        f"peak memory: {few.peak_mb:.0f} MB for {words.rows // 10}, {ours.peak_mb:.0f} MB for all"
    )
    holds = [
        measuring.verdict("CPU ratio", cpu, MOST_CPU, at_least=False),
        measuring.verdict("peak MB", ours.peak_mb, MOST_MB, at_least=False),
        measuring.verdict("MB more", ours.peak_mb - few.peak_mb, MOST_MB_MORE, at_least=False),
    ]
    sys.exit(0 if all(holds) else 1)


def evaluate(
    place: Path, rows: int, pictures: int, kilobytes: float, *, suffix: str
) -> tuple[measuring.Cost, measuring.Cost]:
    """One run on so many questions, and the floor for the same file and the same calls."""
    source = make_direct(place / f"{rows}.jsonl", rows=rows, pictures=pictures, kilobytes=kilobytes)
    print(f"{rows:,} rows, {pictures:,} pictures: {source.stat().st_size / 1e9:.2f} GB", flush=True)
    data = source if suffix == ".jsonl" else as_parquet(source)
    with fake() as server:
        line = measuring.snellen_run(
            "perception_bench", server.url, place / f"run{rows}", "--data", str(data),
            "--concurrency", IN_FLIGHT,
        )  # fmt: skip
        ours = measuring.run(line)
        judging = f"{rows}x{JUDGE_BYTES}"
        floor = measuring.run(measuring.floor(server.url, IN_FLIGHT, source, judging))
    source.unlink()
    data.unlink(missing_ok=True)
    return ours, floor


def as_parquet(source: Path) -> Path:
    """The rows of a JSON-lines file in Parquet, pictures as bytes, as `datasets` writes them."""
    import pyarrow
    from pyarrow import parquet

    picture = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    texts = ("problem", "answer", "hint", "error_category", "source_bmk")
    schema = pyarrow.schema(
        [
            ("index", pyarrow.int64()),
            ("image", pyarrow.list_(picture)),
            *((name, pyarrow.string()) for name in texts),
        ]
    )
    path = source.with_suffix(".parquet")
    with parquet.ParquetWriter(path, schema) as writer, source.open("rb") as stream:
        while lines := list(itertools.islice(stream, GROUP)):
            rows = [json.loads(line) for line in lines]
            for row in rows:
                uris = (uri.partition(",")[2] for uri in row["image"])
                row["image"] = [{"bytes": base64.b64decode(uri), "path": None} for uri in uris]
            writer.write_table(pyarrow.Table.from_pylist(rows, schema))
    return path


def fake() -> FastServer:
    """An endpoint that answers questions and grades them."""
    return FastServer(
        "[reason] as it is [judge] True", rules={"image_url": "It is 3."}, delay_s=0.02
    )


if __name__ == "__main__":
    main()
