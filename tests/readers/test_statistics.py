"""What the statistics of a benchmark count beyond items."""

from __future__ import annotations

from pathlib import Path

from tests.worlds.benchmark_files import reading_folder, rubric_folder

from snellen.readers import load_benchmark
from snellen.readers.statistics import info


def test_probes_are_counted_by_region_and_regions_by_image(tmp_path: Path) -> None:
    """Two images with one region each, and two questions about each region."""
    found = info(load_benchmark(str(reading_folder(tmp_path))))
    assert found.probes_per_region is not None
    assert (found.probes_per_region.n, found.probes_per_region.mean) == (2, 2.0)
    assert found.regions_per_item is not None
    assert (found.regions_per_item.n, found.regions_per_item.mean) == (2, 1.0)


def test_statements_are_counted_by_kind(tmp_path: Path) -> None:
    """One image with one Must-Right and two Easy-Wrong statements."""
    found = info(load_benchmark(str(rubric_folder(tmp_path))))
    means = {kind: spread.mean for kind, spread in found.probes_per_item_by_kind.items()}
    assert means == {"must_right": 1.0, "easy_wrong": 2.0}
    assert found.probes_per_region is None
