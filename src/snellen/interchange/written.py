"""What an export has written, and the readings of a run that several formats share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from snellen.flows import failed_reason
from snellen.metrics import Metric
from snellen.records import Item, JsonObject, ReplyRow, Verdict
from snellen.runs.folder import Run
from snellen.runs.spec import Summary, Value
from snellen.runs.summary import summary_of


@dataclass(frozen=True, slots=True)
class Exported:
    """The files that were written, and what is not in them."""

    files: tuple[Path, ...]
    n: int
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answered:
    """One item of a run, one repeat: the reply, and the verdicts on its probes in their order."""

    item: Item
    repeat: int
    reply: ReplyRow | None
    verdicts: tuple[Verdict | None, ...]

    @property
    def failed(self) -> str | None:
        """Why there is no reply; None where there is one."""
        return "not_run" if self.reply is None else failed_reason(self.reply)

    @property
    def share(self) -> float | None:
        """The share of right verdicts among the scored ones; None without any."""
        known = [
            one.correct for one in self.verdicts if one is not None and one.correct is not None
        ]
        return sum(known) / len(known) if known else None

    @property
    def asked(self) -> str:
        """The question of a direct item, else the questions of all probes, one a line."""
        return self.item.text or "\n".join(probe.question for probe in self.item.probes)

    @property
    def reference(self) -> str:
        """The reference answer of a direct item, else the golden caption or ""."""
        return self.item.probes[0].answer if self.item.text else self.item.reference


def answered(run: Run) -> Iterator[Answered]:
    """The items of a run in their order, each with its repeats together."""
    for item in run.items:
        for repeat in range(run.spec.repeats):
            yield Answered(
                item, repeat, run.replies.get((item.id, repeat)),
                tuple(run.verdicts.get((item.id, repeat, probe.id)) for probe in item.probes),
            )  # fmt: skip


def metrics_of(run: Run) -> Iterator[tuple[Metric, Value]]:
    """The metrics of a run that have a value, the headline first."""
    summary = summary_of(run)
    headline = run.protocol.headline
    for metric in sorted(run.protocol.metrics, key=lambda one: one.name != headline):
        value = summary.metrics.get(metric.name)
        if value is not None and value.value is not None:
            yield metric, value


def unscored_notices(summary: Summary) -> tuple[str, ...]:
    """Says that unscored probes have no place in a format."""
    n = summary.counts.unscored
    if not n:
        return ()
    return (f"{n} of {summary.counts.probes} probes are unscored; the values count them as wrong",)


def write_json_file(path: Path, value: Mapping[str, object] | JsonObject) -> Path:
    """Writes a JSON file with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")
    return path


def standard_error(value: Value) -> float | None:
    """The standard error that belongs to the 95% interval of a value; None without interval."""
    return None if value.ci95 is None else (value.ci95[1] - value.ci95[0]) / (2 * 1.959964)
