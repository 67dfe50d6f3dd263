"""The tables about judges: a check on known truth, reliability between judges, an audit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from snellen.judges.audit import Audit, LabelAgreement
from snellen.judges.fitness import Fitness, check_fitness, study_fitness
from snellen.judges.labelled import JudgeRow
from snellen.judges.reliability import JudgeStudy, Scores
from snellen.runs.folder import Run
from snellen.runs.judge_errors import JudgeCheck, Position, ProtocolCheck, Rate
from snellen.runs.summary import summary_of
from snellen.stats.correction import Corrected, Trials
from snellen.tables.runs import USD
from snellen.tables.table import (
    RATE,
    Cell,
    Column,
    Format,
    Label,
    Number,
    Rows,
    Share,
    Table,
    format_of,
    known,
    metric_column,
    metric_label,
    plain,
)
from snellen.tables.writers import p_text, written

KAPPA = Format(digits=3)
TWO = Format(digits=2)
WHO = ("1st only", "2nd only", "both")
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
    "right_when_false": "right when false",
}
SOURCE_TITLES: Mapping[str, str] = {
    "frozen": "labelled, frozen half",
    "dev": "labelled, tuning half",
    "facts": "written from facts",
}
TRUTH_NOTES: Mapping[str, str] = {
    "reading": "right: the benchmark's answer, wrong: another one, E: the caption does not say",
    "rubric": "whether a statement holds for the caption",
    "direct": "whether a reply gives the reference",
}
CONCLUDE = (
    "these rates hold for this judge, these prompts and this material; other replies may be "
    "harder: see docs/concepts/judge-check.md"
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
        yield _rates_table(check, found)
        rows: Rows = tuple(
            (truth, *map(rate_cell, row))
            for truth, row in zip(found.confusion.truths, found.confusion.shares, strict=True)
        )
        verdicts = (Column(f"verdict {name}", RATE) for name in found.confusion.said)
        untuned = (UNTUNED_NOTE,) if check.judge.fidelity == "low" else ()
        notes = (TRUTH_NOTES[found.protocol], NEGATED_NOTE, *untuned)
        title = f"{found.protocol}: confusion, % of the row"
        yield Table(title, (Column("Truth"), *verdicts), rows, notes)
        if found.position is not None:
            yield position_table(found.position)
    yield _effort_table(check)


def rate_cell(rate: Rate | None) -> Number:
    """A rate with its interval and counts."""
    if rate is None or rate.value is None:
        return Number(None)
    return Number(rate.value, rate.ci95, Share(rate.hits, rate.n))


def _rates_table(check: JudgeCheck, found: ProtocolCheck) -> Table:
    """The measured rates of one protocol: over all material, and by source."""
    sources = found.sources
    rows: list[tuple[Cell, ...]] = []
    for name, rate in found.rates.items():
        by_source = (sources[s].get(name) for s in sources)
        cells = (one.value if one is not None else None for one in by_source)
        rows.append((Label(RATE_TITLES.get(name, name), name), rate_cell(rate), *cells))
    if found.same_again is not None:
        same = Label("same verdict again", "same_again")
        rows.append((same, rate_cell(found.same_again), *[None] * len(sources)))
    unscored = sum(row[-1] for row in found.confusion.counts)
    notes = [f"{found.n_items} replies, {found.n_pictures} pictures, {unscored} unscored"]
    notes += [EMBEDDED_NOTE] if check.judge.fidelity == "low" else []
    columns = (
        Column("Rate"),
        Column("All", RATE),
        *(Column(SOURCE_TITLES[s], RATE, s) for s in sources),
    )
    title = f"{found.protocol}: judge {check.judge.name} on material of known truth"
    return Table(title, columns, tuple(rows), (*notes, CONCLUDE))


def position_table(found: Position) -> Table:
    """The places that a judge chooses when options are shuffled."""
    total, right = sum(found.chosen.values()), sum(found.right.values())
    rows: Rows = tuple(
        (letter, n, Share(n, total).value, Share(found.right[letter], right).value)
        for letter, n in found.chosen.items()
    )
    same = found.same_content
    notes = (
        f"even choice over the places: {p_text(found.p_value)}",
        f"same option under both orders: {written(same.value, RATE)}% ({same.hits}/{same.n})",
    )
    columns = (*plain("Place", "Chosen"), Column("Of all", RATE), Column("Right", RATE))
    return Table("reading: places chosen, options shuffled", columns, rows, notes)


MISS_TITLES: Mapping[str, str] = {
    **RATE_TITLES,
    "accuracy": "right, of all (lower limit)",
    "unscored": "unscored",
    "kappa": "kappa (lower limit)",
    "tau": "Kendall's tau of the order",
    "difference": "mean difference",
}


def check_sentence(check: JudgeCheck) -> str:
    """One sentence: what the judge is fit for under each protocol, and why not for more."""
    said = [f"{name} {_fitness(check_fitness(found))}" for name, found in check.protocols.items()]
    return f"{check.judge.name}: {'; '.join(said)}."


def study_sentence(study: JudgeStudy) -> str:
    """One sentence: what each second judge is fit for in the first one's place, and why."""
    is_rate = format_of(study.metric).unit in {"%", "points"}
    said = [
        f"{pair.second} in place of {pair.first}: {_fitness(found)}"
        for pair, found in study_fitness(study, is_rate=is_rate)
    ]
    return f"{'; '.join(said)}."


def _fitness(found: Fitness) -> str:
    reasons = []
    for miss in found.misses:
        form = TWO if miss.name in {"kappa", "tau"} else RATE
        unit = "" if form is TWO else "%"
        bound = "at least" if miss.is_least else "at most"
        value, threshold = (written(v, form) for v in (miss.value, miss.threshold))
        title = MISS_TITLES[miss.name]
        reasons.append(f"{title} {value}{unit}, {bound} {threshold}{unit} is needed")
    why = f" ({', '.join(reasons)})" if reasons else ""
    return f"{found.level.value}{why}"


def _effort_table(check: JudgeCheck) -> Table:
    """Speed and cost by protocol; replies from the journal or the cache took no call."""
    rows: list[tuple[Cell, ...]] = []
    for name, found in check.protocols.items():
        roles = [
            entry
            for usage in found.usage.values()
            for entry in usage.values()
            if isinstance(entry, Mapping)
        ]
        keys = ("prompt_tokens", "completion_tokens")
        tokens = sum(int(entry.get(key) or 0) for entry in roles for key in keys)
        rate = found.calls / found.seconds if found.calls and found.seconds else None
        costs = [usage.get("cost_usd") for usage in found.usage.values()]
        priced = [float(cost) for cost in costs if cost is not None]
        cost = sum(priced) if costs and len(priced) == len(costs) else "unknown"
        rows.append((name, found.calls, found.seconds, rate, tokens, cost))
    columns = (
        *plain("Protocol", "Calls"),
        Column("Seconds", Format(digits=1)),
        Column("Calls/s", Format(digits=1)),
        Column("Tokens"),
        Column("Cost USD", USD),
    )
    return Table("Speed and cost", columns, tuple(rows))


def sensitivity_table(run: Run) -> Table | None:
    """How far an attached check's errors could move a run's numbers; None without ranges."""
    found: Mapping[str, Any] | None = summary_of(run).extra.get("judge_check")
    if not found or not found.get("ranges"):
        return None
    rows: list[tuple[Cell, ...]] = []
    for name, one in found["ranges"].items():
        numbers = (Number(one[end], format=format_of(name)) for end in ("raw", "low", "high"))
        rows.append((metric_label(name), *numbers))
    note = (
        f"from no error at all to the errors that the check of {found['judge']} measured "
        f"({found['at'][:10]}); a sensitivity range, not a corrected score: for that, "
        "`snellen audit`"
    )
    return Table(
        f"{run.name}: sensitivity to the judge's errors",
        plain("Metric", "As judged", "Lowest", "Highest"),
        tuple(rows),
        (note,),
        fidelity=run.spec.judge.fidelity,
    )


def fidelity_table(rows: Sequence[JudgeRow]) -> Table:
    """How good a judge is on the bundled material of known truth, by protocol and half."""
    lines = tuple(
        (
            f"{row.protocol}, {'frozen paraphrases' if row.half == 'frozen' else 'tuning half'}",
            row.n,
            row.accuracy,
            row.right_when_stated,
            row.uncertain_when_absent,
            row.fooled_when_changed,
        )
        for row in sorted(rows, key=lambda row: (row.half != "frozen", row.protocol))
    )
    rates = ("Right", "Right when stated", "E when absent", "Fooled")
    columns = (*plain("Material", "n"), *(Column(title, RATE) for title in rates))
    note = "the frozen half was reworded and set aside before any tuning: quote that one"
    return Table("The embedded judge against a perfect judge's labels", columns, lines, (note,))


def scores_table(study: JudgeStudy) -> Table:
    """Each model's score under each judge, with its rank there."""
    sign = -1.0 if study.lower_is_better else 1.0
    form = replace(format_of(study.metric), digits=2)

    def ranks_of(scores: Scores) -> dict[str, int]:
        # Equal scores share the better rank, NaN comes last.
        goodness = {m: -math.inf if math.isnan(s) else sign * s for m, s in scores.items()}
        return {m: 1 + sum(o > own for o in goodness.values()) for m, own in goodness.items()}

    ranks = {judge: ranks_of(study.scores[judge]) for judge in study.judges}
    rows: list[tuple[Cell, ...]] = []
    for model in sorted(study.models, key=lambda m: ranks[study.judges[0]][m]):
        cells: list[Cell] = []
        for judge in study.judges:
            score = known(study.scores[judge][model])
            rank = None if score is None else ranks[judge][model]
            cells += [Number(score, format=form), rank]
        rows.append((Label(model), *cells))
    columns = (
        column
        for judge in study.judges
        for column in (Column(judge, name=f"{judge} score"), Column("Rank", name=f"{judge} rank"))
    )
    title = f"{study.benchmark}: {metric_column(study.metric).heading} by judge"
    return Table(title, (Column("Model"), *columns), tuple(rows), study.notes)


def pairs_table(study: JudgeStudy) -> Table:
    """For each pair of judges: difference, order, agreement, kappa, and unscored probes."""
    rows: Rows = tuple(
        (
            f"{pair.first} / {pair.second}",
            pair.order.mean_difference,
            pair.order.tau,
            {True: "yes", False: "no"}[pair.order.same_order] if pair.order.n_models > 1 else None,
            Number(pair.agreement.raw, pair.agreement.raw_interval),
            Number(pair.agreement.kappa, pair.agreement.kappa_interval),
            pair.agreement.n,
            pair.only_first_passes,
            pair.only_second_passes,
            pair.both_pass,
            pair.only_first_abstains,
            pair.only_second_abstains,
            pair.both_abstain,
        )
        for pair in study.pairs
    )
    form = format_of(study.metric)
    unit = "points" if form.unit == "%" else form.unit
    columns = (
        Column("Judges"),
        Column("Mean difference", replace(form, unit=unit, digits=2)),
        Column("Tau", KAPPA),
        Column("Same order"),
        Column("Agreement", KAPPA),
        Column("Kappa", KAPPA),
        *plain("Probes", *(f"{what}: {who}" for what in ("Unreadable", "Abstains") for who in WHO)),
    )
    notes = (
        "difference: second judge minus first, over the models",
        "agreement and kappa: probes that both judges decided; 95% intervals clustered by image",
    )
    return Table("Pairs of judges", columns, rows, notes)


def abstentions_table(study: JudgeStudy) -> Table:
    """How often each judge abstains and is unreadable, over all and by the first dimension."""
    by = {(a.judge, a.label): a for a in study.abstentions}
    rows: list[tuple[Cell, ...]] = []
    for label in dict.fromkeys(a.label for a in study.abstentions):
        found = [by.get((judge, label)) for judge in study.judges]
        cells = [(a.abstains, a.passes) if a else (None, None) for a in found]
        rows.append((label, *(cell for pair in cells for cell in pair)))
    columns = (
        Column(f"{judge}: {what}", RATE)
        for judge in study.judges
        for what in ("abstains", "unreadable")
    )
    return Table(
        "Abstention" + (f" by {study.dimension}" if study.dimension else ""),
        (Column((study.dimension or "label").capitalize()), *columns),
        tuple(rows),
        ("per cent of the probes that the judge was asked about",),
    )


def audit_table(run: Run, found: Audit) -> Table:
    """Raw and corrected scores, with the judge's error rates in the audit."""
    rows: Rows = tuple(
        (
            metric_label(score.metric),
            score.powered.raw,
            _corrected(score.powered),
            _corrected(score.inverted),
            _trials(score.sensitivity),
            _trials(score.specificity),
        )
        for score in found.scores
    )
    titles = ("Raw", "Corrected", "Rogan-Gladen", "Sensitivity", "Specificity")
    columns = (Column("Metric"), *(Column(title, RATE) for title in titles))
    notes = (
        f"{found.n_audited} audited of {found.n_scored} scored verdicts; rates over scored probes",
        "corrected: prediction-powered; it assumes only that the sample was random",
        "in brackets: 95% intervals; sensitivity and specificity: of the judge, by the audit",
    )
    return Table(f"{run.name} on {run.spec.benchmark}: audited", columns, rows, notes)


def agreement_table(run: Run, found: Sequence[LabelAgreement]) -> Table:
    """Agreement of a person with the judge, over all audited verdicts and by label."""
    rows: Rows = tuple(
        (Label(one.label or "all"), Number(one.hits / one.n, one.interval, Share(one.hits, one.n)))
        for one in found
    )
    note = "a person gave each verdict before the judge's was shown; in brackets: Wilson intervals"
    title = f"{run.name} on {run.spec.benchmark}: agreement with {run.spec.judge.name}"
    return Table(title, (Column("Verdicts"), Column("Agree", RATE)), rows, (note,))


def _corrected(one: Corrected | None) -> Number:
    if one is None:
        return Number(None)
    return Number(one.estimate, None if math.isnan(one.low) else (one.low, one.high))


def _trials(one: Trials) -> Number:
    return Number(one.rate, share=Share(one.hits, one.n)) if one.n else Number(None)
