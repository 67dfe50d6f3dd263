"""Snellen: an eye chart for vision-language models.

The names here are imported when they are first used, so that `import snellen` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from snellen.version import __version__

if TYPE_CHECKING:
    from snellen.api import (
        compare,
        compare_async,
        load_run_async,
        merge,
        merge_async,
        run,
        run_async,
        score_captions,
        score_captions_async,
    )
    from snellen.comparisons.results import Comparison
    from snellen.errors import SnellenError
    from snellen.pictures.prepare import image_from_path
    from snellen.readers import load_benchmark
    from snellen.records import Benchmark, Image, Item, Probe
    from snellen.runs.folder import Run, load_run


_HOMES = {
    "Benchmark": "snellen.records",
    "Comparison": "snellen.comparisons.results",
    "Image": "snellen.records",
    "Item": "snellen.records",
    "Probe": "snellen.records",
    "Run": "snellen.runs.folder",
    "SnellenError": "snellen.errors",
    "compare": "snellen.api",
    "compare_async": "snellen.api",
    "image_from_path": "snellen.pictures.prepare",
    "load_benchmark": "snellen.readers",
    "load_run": "snellen.runs.folder",
    "load_run_async": "snellen.api",
    "merge": "snellen.api",
    "merge_async": "snellen.api",
    "run": "snellen.api",
    "run_async": "snellen.api",
    "score_captions": "snellen.api",
    "score_captions_async": "snellen.api",
}

__all__ = [
    "Benchmark",
    "Comparison",
    "Image",
    "Item",
    "Probe",
    "Run",
    "SnellenError",
    "__version__",
    "compare",
    "compare_async",
    "image_from_path",
    "load_benchmark",
    "load_run",
    "load_run_async",
    "merge",
    "merge_async",
    "run",
    "run_async",
    "score_captions",
    "score_captions_async",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'snellen' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
