"""CapProbe's pipeline: from pictures to multiple-choice questions about their regions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from snellen.builders.options import (
    BalanceOptions,
    DedupOptions,
    DescribeOptions,
    ExportOptions,
    QuestionOptions,
    ReviewOptions,
    SegmentOptions,
    SelectOptions,
    VerifyOptions,
)
from snellen.construction.picture_stages import SEGMENT, SELECT
from snellen.construction.question_stages import DEDUP, DESCRIBE, EMBEDDED, QUESTION, VERIFY
from snellen.construction.release_stages import BALANCE, EXPORT, REVIEW
from snellen.construction.stages import Pipeline


def _embedding_roles(options: Mapping[type[Any], Any]) -> tuple[str, ...]:
    name = options.get(DedupOptions, DedupOptions()).embeddings
    return () if name == EMBEDDED else (name,)


CAPPROBE = Pipeline(
    "capprobe",
    "questions about regions of pictures",
    (SELECT, SEGMENT, DESCRIBE, QUESTION, DEDUP, VERIFY, BALANCE, REVIEW, EXPORT),
    ("matcher", "describer", "questioner", "checker"),
    {
        "select": SelectOptions,
        "segment": SegmentOptions,
        "describe": DescribeOptions,
        "question": QuestionOptions,
        "dedup": DedupOptions,
        "verify": VerifyOptions,
        "balance": BalanceOptions,
        "review": ReviewOptions,
        "export": ExportOptions,
    },
    _embedding_roles,
)
