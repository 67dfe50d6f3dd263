"""The pipeline of rubrics: from pictures to statements that descriptions are checked against."""

from __future__ import annotations

from snellen.builders.options import ExportOptions, ReviewOptions
from snellen.builders.rubrics.options import (
    CurateOptions,
    GoldenOptions,
    PoolOptions,
    RubricsOptions,
)
from snellen.construction.rubrics.picture_stages import CURATE, GOLDEN, POOL
from snellen.construction.rubrics.release import EXPORT, REVIEW
from snellen.construction.rubrics.rubric_stages import GROUND, PROPOSE, TRIAL
from snellen.construction.stages import Pipeline

RUBRICS = Pipeline(
    "rubrics",
    "statements that descriptions of pictures have to meet",
    (CURATE, GOLDEN, POOL, PROPOSE, GROUND, TRIAL, REVIEW, EXPORT),
    ("scorer", "author", "pool", "proposer", "grounder", "judge"),
    {
        "curate": CurateOptions,
        "golden": GoldenOptions,
        "pool": PoolOptions,
        "rubrics": RubricsOptions,
        "review": ReviewOptions,
        "export": ExportOptions,
    },
)
