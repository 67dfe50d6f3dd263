"""The pipeline of perception questions: from failures of models to what they did not see."""

from __future__ import annotations

from snellen.builders.options import ExportOptions, ReviewOptions
from snellen.builders.perception.options import (
    CollectOptions,
    InduceOptions,
    PanelOptions,
    PerceptionOptions,
    SampleOptions,
    WriteOptions,
)
from snellen.construction.perception.failure_stages import ATTRIBUTE, COLLECT, MAP_ERRORS
from snellen.construction.perception.inducing_stage import INDUCE
from snellen.construction.perception.question_stages import DECOMPOSE, VERIFY, WRITE
from snellen.construction.perception.release import EXPORT, REVIEW
from snellen.construction.stages import Pipeline

PERCEPTION = Pipeline(
    "perception",
    "questions about what models do not see",
    (COLLECT, INDUCE, ATTRIBUTE, MAP_ERRORS, DECOMPOSE, WRITE, VERIFY, REVIEW, EXPORT),
    ("attributor", "arbiter", "inducer", "decomposer", "writer", "solver", "judge"),
    {
        "collect": CollectOptions,
        "induce": InduceOptions,
        "perception": PerceptionOptions,
        "write": WriteOptions,
        "panel": PanelOptions,
        "sample": SampleOptions,
        "review": ReviewOptions,
        "export": ExportOptions,
    },
)
