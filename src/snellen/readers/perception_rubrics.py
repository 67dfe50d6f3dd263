"""Reads rubrics: PerceptionRubrics, and folders of the same form."""

from __future__ import annotations

from collections.abc import Iterator

from snellen.readers.policy import RowPolicy
from snellen.records import Item, Probe
from snellen.schemas import DOMAINS, RubricRow, RubricText, labels_of, rubric_faults, rubric_text


def read_rubrics(policy: RowPolicy) -> Iterator[Item]:
    """The items of a rubric benchmark: one picture each, its probes Must-Right, then Easy-Wrong.

    A blank domain is counted under `?`.
    """
    for row, record in policy.records("rubrics", RubricRow, rubric_faults):
        policy.claim(row, "id", record.id)
        label = (record.category or "").strip() or "?"
        policy.check_label(row, "category", label, DOMAINS)
        if not policy.wants((label,)):
            continue
        images = policy.pictures(row, record.image)
        if policy.fine:
            must_right = _probes("must_right", record.must_right)
            yield Item(
                id=str(record.id),
                images=images,
                probes=(*must_right, *_probes("easy_wrong", record.easy_wrong)),
                reference=record.golden_caption or "",
                groups={"category": (label,)},
                original_id=record.id,
            )


def _probes(kind: str, rubrics: list[str | RubricText]) -> Iterator[Probe]:
    for at, rubric in enumerate(rubrics):
        groups = {}
        if isinstance(rubric, RubricText):
            jurors = ", ".join(labels_of(rubric.jurors))
            origin = {"proposer": rubric.proposer or "", "jurors": jurors}
            groups = {name: value for name, value in origin.items() if value}
        yield Probe(f"{kind}/{at}", rubric_text(rubric), "true", kind=kind, groups=groups)
