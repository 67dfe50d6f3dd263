"""CapProbe's pipeline: from pictures to multiple-choice questions about their regions."""

from __future__ import annotations

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
from snellen.construction.stages import Options, Pipeline


def embedding_roles(options: Options) -> tuple[str, ...]:
    """The role whose endpoint embeds questions, unless the embedded model does."""
    section = options.get(DedupOptions)
    name = section.embeddings if isinstance(section, DedupOptions) else EMBEDDED
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
    embedding_roles,
)
