"""Forty palette PNGs of 10,000 x 9,990 pixels and 100 KB each, asked for at once.

    python benchmarks/pixels.py            about two minutes on two cores
    python benchmarks/pixels.py --pictures 8

Prints the peak memory of the run, which must stay below 1,500 MB: what is being decoded counts by
its pixels against one budget (`SNELLEN_DECODING_PIXELS`).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import measuring
from benchmarks.pictures import fake

MOST_MB = 1_500.0
SIZE = (10_000, 9_990)


def main() -> None:
    """Prints the figures; exit code 1 where the limit fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=40)
    words = parser.parse_args()
    with measuring.workshop() as place:
        data = make(place / "large.jsonl", words.pictures)
        with fake() as server:
            line = measuring.snellen_run(
                "perception_bench", server.url, place / "run", "--data", str(data),
            )  # fmt: skip
            cost = measuring.run(line)
    print(
        f"{words.pictures} pictures of {SIZE[0]:,} x {SIZE[1]:,}: {cost.wall_s:.0f} s, "
        f"peak {cost.peak_mb:.0f} MB"
    )
    sys.exit(0 if measuring.verdict("peak MB", cost.peak_mb, MOST_MB, at_least=False) else 1)


def make(path: Path, pictures: int) -> Path:
    """A file of direct questions, each with a picture file of its own."""
    from PIL import Image

    with path.open("w", encoding="utf-8") as stream:
        for number in range(pictures):
            picture = Image.new("P", SIZE, number)
            picture.putpalette([value for grey in range(256) for value in (grey, 90, 200)])
            picture.save(path.parent / f"{number}.png")
            row = {
                "index": number, "problem": "<|image_1|>How many?", "image": [f"{number}.png"],
                "answer": "3", "hint": "", "error_category": "visual_counting_error",
                "source_bmk": "made", "source_idx": number,
            }  # fmt: skip
            stream.write(json.dumps(row) + "\n")
    return path


if __name__ == "__main__":
    main()
