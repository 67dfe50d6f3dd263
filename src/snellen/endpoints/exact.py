"""The judge `exact`: compares short answers with the reference by rule, without a model."""

from __future__ import annotations

from collections.abc import Sequence

from snellen.records import Answer, CallFailure, GradeTask, Reply, Request
from snellen.replies.exact import exact_verdict

EXACT = "exact"
URL = "exact:"
# Changes with the rules, so that runs under other rules are not resumed or compared.
VERSION = "exact-1"


class ExactJudge:
    """A judge of direct questions whose answers are letters, numbers or a few words."""

    async def call(self, request: Request, pictures: Sequence[object] = ()) -> Answer:
        """The verdict in the form that the direct protocol asks of a judge.

        A reply without a short answer, and another task than a short answer, get a failure and no
        verdict.
        """
        del pictures
        if not isinstance(request.task, GradeTask):
            return CallFailure(
                "bad_parameter",
                "the judge `exact` compares short answers of direct benchmarks; captions and "
                "statements need a judge that reads",
            )
        found = exact_verdict(request.task.answer, request.task.reference)
        if found.value is None:
            return CallFailure(
                "input_error",
                "the reply holds no short answer that can be compared with the reference",
            )
        said = "the answer is the reference" if found.value else "the answer is another one"
        return Reply(f"[reason] {said}, by rule [judge] {found.value}")

    async def close(self) -> None:
        """Has nothing to close."""
