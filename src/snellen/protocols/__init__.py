"""The protocols, by name: how items are asked, judged, counted and shown.

A new protocol is a file of its own with a `Protocol`, and a row in `PROTOCOLS`.
"""

from __future__ import annotations

from collections.abc import Mapping

from snellen.metrics import Metric
from snellen.protocols import captionqa, direct, reading, rubric
from snellen.protocols.protocol import Options, Protocol

__all__ = [
    "PROTOCOLS",
    "Options",
    "Protocol",
    "judge_forms",
    "metric_named",
    "protocol_of",
    "protocol_of_options",
]

PROTOCOLS: Mapping[str, Protocol] = {
    "reading": reading.PROTOCOL,
    "captionqa": captionqa.PROTOCOL,
    "rubric": rubric.PROTOCOL,
    "direct": direct.PROTOCOL,
}


def protocol_of(name: str, benchmark: str) -> Protocol:
    """The protocol of that name on disk, or its variant for the benchmark of that name.

    >>> protocol_of("reading", "captionqa").headline, protocol_of("reading", "mine").headline
    ('score', 'overall_acc')
    """
    variant = PROTOCOLS.get(benchmark)
    return variant if variant is not None and variant.on_disk == name else PROTOCOLS[name]


def protocol_of_options(options: Options) -> Protocol:
    """The protocol that some options belong to."""
    return next(one for one in PROTOCOLS.values() if one.options is type(options))


def metric_named(name: str) -> Metric | None:
    """The metric of that name under any protocol; None where there is none.

    >>> metric_named("overall_acc").heading
    'Overall %'
    """
    known = (metric for one in PROTOCOLS.values() for metric in one.metrics)
    return next((metric for metric in known if metric.name == name), None)


def judge_forms(options: Options) -> tuple[frozenset[str], ...]:
    """The sets of marks that a prompt of the user's may have in place of the judge's.

    >>> [sorted(form) for form in judge_forms(direct.DirectOptions())]
    [['assistant_answer', 'problem', 'reference_answer']]
    """
    return options.judge_forms
