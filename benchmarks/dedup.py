"""Times deduplication at the paper's size: 50,902 questions over 664 images, embeddings aside.

python -m benchmarks.dedup [DIMENSIONS]
"""

from __future__ import annotations

import os
import sys
import time

# Before numpy is imported: threads that wait for each other would be counted as work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from snellen.builders.dedup import deduplicate
from snellen.builders.options import DedupOptions
from snellen.builders.rows import QuestionRow

IMAGES, QUESTIONS, REGIONS = 664, 50_902, 5


def main() -> int:
    """Makes questions of which some are alike, removes duplicates by image, says how long."""
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 4096
    rng = np.random.default_rng(0)
    sizes = np.full(IMAGES, QUESTIONS // IMAGES)
    sizes[: QUESTIONS % IMAGES] += 1
    seconds, kept = 0.0, 0
    for image, n in enumerate(sizes):
        centres = rng.normal(size=(max(1, n * 3 // 4), size))
        vectors = centres[rng.integers(len(centres), size=n)] + 0.3 * rng.normal(size=(n, size))
        rows = [
            QuestionRow(
                id=f"{image}.{k}",
                image_id=str(image),
                region_id=f"{image}.{k % REGIONS}",
                category="Attributes",
                question=f"What colour is thing {k % 7} at the left of the picture?",
                options=("red", "green", "blue", "grey"),
                answer="ABCD"[k % 4],
                generator="ab"[k % 2],
                index=k,
            )
            for k in range(n)
        ]
        started = time.process_time()
        kept += len(deduplicate(rows, vectors.astype(np.float32), DedupOptions()).kept)
        seconds += time.process_time() - started
    print(f"{QUESTIONS:,} questions, {IMAGES} images, {size} dimensions:")
    print(f"{seconds:.1f} CPU s, {kept:,} kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
