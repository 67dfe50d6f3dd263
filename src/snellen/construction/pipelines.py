"""The kinds of benchmarks that can be built."""

from __future__ import annotations

from collections.abc import Mapping

from snellen.construction.capprobe import CAPPROBE
from snellen.construction.perception.pipeline import PERCEPTION
from snellen.construction.rubrics.pipeline import RUBRICS
from snellen.construction.stages import Pipeline

PIPELINES: Mapping[str, Pipeline] = {one.kind: one for one in (CAPPROBE, RUBRICS, PERCEPTION)}
