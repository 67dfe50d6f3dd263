"""The tables of a judge check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from snellen.runs.folder import Run
from snellen.runs.judge_errors import JudgeCheck, Position, ProtocolCheck, Rate
from snellen.tables.comparison import p_text
from snellen.tables.runs import summary_of
from snellen.tables.table import Table, number, title_of

RATE_TITLES: Mapping[str, str] = {
    "accuracy": "right, of all",
    "right_when_stated": "right when stated",
    "abstained_when_stated": "E although stated",
    "right_when_absent": "right when absent",
    "committed_when_absent": "a letter although absent",
    "right_when_changed": "right when changed",
    "fooled_when_changed": "credited although changed",
    "right_when_negated": "right when negated",
    "fooled_when_negated": "credited although negated",
    "right_when_false": "right when not so",
}
SOURCE_TITLES: Mapping[str, str] = {
    "frozen": "labelled, frozen half",
    "dev": "labelled, tuning half",
    "facts": "written from facts",
}
CONCLUDE = (
    "these rates hold for this judge, these prompts and this material; other replies may be "
    "harder: see docs/concepts/judge-check.md",
)
NEGATED_NOTE = "without negated facts, which real captions seldom hold"
UNTUNED_NOTE = "without the half that the embedded judge was tuned on"
EMBEDDED_NOTE = (
    "the frozen half was reworded and set aside before the embedded judge was tuned: quote that "
    "one for it"
)


def check_tables(check: JudgeCheck) -> Iterator[Table]:
    """All tables of a check: by protocol the rates and the confusion, then speed and cost."""
    for found in check.protocols.values():
        yield rates_table(check, found)
        yield confusion_table(check, found)
        if found.position is not None:
            yield position_table(found.position)
    yield effort_table(check)


def sensitivity_table(run: Run) -> Table | None:
    """How far an attached check's errors could move a run's numbers; None without ranges."""
    found = summary_of(run).extra.get("judge_check")
    if not found or not found.get("ranges"):
        return None
    rows = tuple(
        (
            title_of(name),
            number(name, one["raw"]),
            f"{number(name, one['low'])} to {number(name, one['high'])}",
        )
        for name, one in found["ranges"].items()
    )
    notes = (
        f"from no error at all to the errors that the check of {found['judge']} measured "
        f"({found['at'][:10]}); a sensitivity range, not a corrected score: for that, "
        "`snellen audit`",
    )
    columns = ("Metric", "As judged", "Could be")
    return Table(f"{run.name}: sensitivity to the judge's errors", columns, rows, notes)


def written(rate: Rate | None, *, short: bool = False) -> str:
    """A rate in per cent with its interval and counts: `95.0 [92.1, 97.0] 190/200`.

    >>> written(Rate(190, 200, (0.921, 0.97)))
    '95.0 [92.1, 97.0] 190/200'
    >>> written(Rate(0, 0))
    '-'
    """
    if rate is None or rate.value is None:
        return "-"
    text = f"{100 * rate.value:.1f}"
    if short:
        return text
    if rate.ci95 is not None:
        text += f" [{100 * rate.ci95[0]:.1f}, {100 * rate.ci95[1]:.1f}]"
    return f"{text} {rate.hits}/{rate.n}"


def rates_table(check: JudgeCheck, found: ProtocolCheck) -> Table:
    """The measured rates of one protocol: over all material, and by source."""
    sources = list(found.sources)
    rows = [
        (
            RATE_TITLES.get(name, name),
            written(rate),
            *(written(found.sources[s].get(name), short=True) for s in sources),
        )
        for name, rate in found.rates.items()
    ]
    if found.same_again is not None:
        rows.append(("same verdict again", written(found.same_again), *("" for _ in sources)))
    unscored = sum(row[-1] for row in found.confusion.counts)
    notes = [f"{found.n_items} replies, {found.n_pictures} pictures, {unscored} unscored"]
    notes += [EMBEDDED_NOTE] if check.judge.fidelity == "low" else []
    columns = ("Rate, %", "All [95%]", *(SOURCE_TITLES[s] for s in sources))
    title = f"{found.protocol}: judge {check.judge.name} on material of known truth"
    return Table(title, columns, tuple(rows), (*notes, *CONCLUDE))


def confusion_table(check: JudgeCheck, found: ProtocolCheck) -> Table:
    """What the judge said, of what was true, in per cent of each row."""
    confusion = found.confusion
    rows = tuple(
        (truth, *(written(rate) for rate in row))
        for truth, row in zip(confusion.truths, confusion.shares, strict=True)
    )
    columns = ("Truth", *(f"said {name}" for name in confusion.said))
    note = {
        "reading": "right: the benchmark's answer, wrong: another one, E: the caption does not say",
        "rubric": "whether a statement holds for the caption",
        "direct": "whether a reply gives the reference",
    }[found.protocol]
    notes = (note, NEGATED_NOTE, *([UNTUNED_NOTE] if check.judge.fidelity == "low" else []))
    return Table(f"{found.protocol}: confusion, % of the row", columns, rows, notes)


def position_table(found: Position) -> Table:
    """Which places a judge chooses when options are shuffled."""
    total, right = sum(found.chosen.values()), sum(found.right.values())
    rows = tuple(
        (letter, f"{_share(n, total)} ({n})", f"{_share(found.right[letter], right)}")
        for letter, n in found.chosen.items()
    )
    p = "p = -" if found.p_value is None else p_text(found.p_value)
    notes = (
        f"even choice over the places: {p}",
        f"same option under both orders: {written(found.same_content)}",
    )
    return Table(
        "reading: places chosen, options shuffled", ("Place", "Chosen %", "Right %"), rows, notes
    )


def _share(n: int, total: int) -> str:
    return f"{100 * n / total:.1f}" if total else "-"


def effort_table(check: JudgeCheck) -> Table:
    """Speed and cost by protocol; replies from the journal or the cache took no call."""
    rows = []
    for name, found in check.protocols.items():
        judge = [_judge(usage) for usage in found.usage.values()]
        tokens = sum(u.get("prompt_tokens", 0) + u.get("completion_tokens", 0) for u in judge)
        rate = f"{found.calls / found.seconds:.1f}" if found.calls and found.seconds else "-"
        rows.append(
            (name, str(found.calls), f"{found.seconds:.1f}", rate, str(tokens), _cost(found))
        )
    columns = ("Protocol", "Calls", "Seconds", "Calls/s", "Tokens", "Cost USD")
    return Table("Speed and cost", columns, tuple(rows))


def _judge(usage: Mapping[str, Any]) -> dict[str, int]:
    """The tokens of all roles of one run, added up."""
    added: dict[str, int] = {}
    for entry in usage.values():
        if isinstance(entry, Mapping):
            for key in ("prompt_tokens", "completion_tokens"):
                added[key] = added.get(key, 0) + int(entry.get(key) or 0)
    return added


def _cost(found: ProtocolCheck) -> str:
    costs = [usage.get("cost_usd") for usage in found.usage.values()]
    known = [cost for cost in costs if cost is not None]
    return f"{sum(known):.4f}" if costs and len(known) == len(costs) else "unknown"
