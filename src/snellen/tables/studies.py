"""The tables of studies of finished runs: controls, diagnosis, repeats, generators, providers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from snellen.protocols.direct import Consistency
from snellen.readers import known
from snellen.records import LETTERS
from snellen.runs import naming
from snellen.runs.folder import Run
from snellen.runs.summary import summary_of
from snellen.studies import controls, diagnosis, neutrality, providers, published, repeats
from snellen.studies.alignment import SCALAR, Alignment
from snellen.studies.overlap import TITLES as OVERLAP_TITLES
from snellen.tables.runs import breakdown
from snellen.tables.table import (
    P_VALUE,
    POINTS,
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
    measured,
    metric_column,
    number_in,
    plain,
    title_of,
)
from snellen.tables.writers import interval_text, p_text, written

MOST_LISTED = 30
MOST_LABELS = 12
FEW_ORDERS = 4
WHOLE_PERCENT = replace(RATE, digits=0)
SIGNED_POINTS = replace(POINTS, signed=True)
LENGTH_METRICS = (
    "tokens_per_image", "coverage", "effective_acc", "overall_acc", "global_density",
)  # fmt: skip
GATED_TITLES: Mapping[str, str] = {
    "score": "Score (gated)",
    "easy_wrong_avg": "Score without the gate",
    SCALAR: "One-to-ten judge",
}


def extra_tables(runs: Sequence[Run], wanted: Mapping[str, bool]) -> Iterator[Table]:
    """The tables of runs of one benchmark and judge beyond their numbers.

    Controls, repeats and generators are shown wherever the runs allow; `wanted` asks for
    `diagnose`, `provider` and `published`.
    """
    own = naming.named_apart([run for run in runs if not controls.control_of(run)])
    names = runs[0].protocol.tables
    for case in controls.find_controlled(runs):
        yield controls_table(case)
        flagged = leaks_table(case)
        if flagged.rows:
            yield flagged
    alike = all(run.spec.items == own[0].spec.items for run in own)
    if "neutrality" in names and len(own) > 1 and alike:
        neutral = neutrality_table(own)
        yield from [] if neutral is None else [neutral]
    if "diagnose" in names and wanted["diagnose"] and own:
        yield from diagnose(own)
    if "repeats" in names:
        yield from direct_tables(runs)
    if wanted["provider"]:
        yield provider_table(own or naming.named_apart(runs))
    if wanted["published"]:
        yield published_table(runs[0].spec.benchmark, own or naming.named_apart(runs))


def controls_table(case: controls.Controlled) -> Table:
    """The real score beside its controls, and the rest of it on questions without a leak.

    Raises:
        ComparisonError: the runs are not about the same pictures.
    """
    rows: list[tuple[Cell, ...]] = []
    for row in controls.control_rows(case):
        below = Number(row.below.value, row.below.interval) if row.below else None
        rows.append((row.caption, *row.values, below, row.n_questions))
    columns = (
        Column("Caption"),
        *map(metric_column, controls.METRICS),
        Column("Own minus this", SIGNED_POINTS),
        Column("Questions"),
    )
    title = f"Controls of {case.real.name} on {case.real.spec.benchmark}"
    return Table(title, columns, tuple(rows), tuple(_control_notes(case)))


def _control_notes(case: controls.Controlled) -> Iterator[str]:
    found = controls.leaks(case)
    sizes = [len(p.options) for item in case.real.items for p in item.probes]
    chance = float(np.mean([1 / k for k in sizes]))
    yield f"a blind guess is right {written(chance, RATE)}% of the time"
    if case.blind:
        orders, hits = len(case.blind), sum(leak.is_guessable for leak in found.values())
        lucky = controls.flagged_by_chance(sizes, orders)
        yield (
            f"guessable: {hits} of {len(found)} questions, right blind in most of {orders} orders "
            f"(guessing alone would flag {lucky:.0f})"
        )
        if orders < FEW_ORDERS:
            yield "one blind order flags lucky guesses: repeat it with several --option-order"
    if case.swapped:
        hits = sum(leak.is_leaking for leak in found.values())
        yield f"leaking: {hits} of {len(found)} questions are answered right from other captions"
    if case.blind and case.swapped:
        above = controls.difference(controls.pooled(case.blind), controls.pooled(case.swapped))
        ends = interval_text(above.interval, POINTS)
        yield (
            f"swapped minus blind: {written(above.value, SIGNED_POINTS)} {ends} points of overall "
            "accuracy; above 0 other captions leak answers"
        )


def leaks_table(case: controls.Controlled) -> Table:
    """The flagged questions, the most often right without their caption first."""
    questions = {(i.id, p.id): p for i in case.real.items for p in i.probes}
    flagged = [
        leak for leak in controls.leaks(case).values() if leak.is_guessable or leak.is_leaking
    ]
    flagged.sort(key=lambda leak: -((leak.blind or 0.0) + (leak.swapped or 0.0)))
    rows: list[tuple[Cell, ...]] = []
    for leak in flagged[:MOST_LISTED]:
        flags = ["guessable"] * leak.is_guessable + ["leaking"] * leak.is_leaking
        question = questions[leak.item, leak.probe].question
        rows.append((leak.probe, question, leak.blind, leak.swapped, " ".join(flags)))
    columns = (
        *plain("Question id", "Question"),
        Column("Right blind", WHOLE_PERCENT),
        Column("Right swapped", WHOLE_PERCENT),
        Column("Flags"),
    )
    title = f"Flagged questions of {case.real.spec.benchmark}"
    return Table(title, columns, tuple(rows), _more(len(flagged), len(rows)))


def _more(found: int, shown: int) -> tuple[str, ...]:
    return (f"and {found - shown} more",) if found > shown else ()


def diagnose(runs: Sequence[Run]) -> list[Table]:
    """All tables of the diagnosis of runs on the same items; fewer where data is missing."""
    tables = [patterns_table(runs), silence_table(runs)]
    for run in runs:
        by = summary_of(run).by
        tables += [breakdown(run, name) for name in ("nature", "area") if name in by]
    if len(runs) > 1:
        tables += [difficulty_table(runs), doubtful_table(runs)]
    return tables


def patterns_table(runs: Sequence[Run]) -> Table:
    """The patterns of each run, with the numbers that led to them."""
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        metrics = summary_of(run).metrics
        for pattern in diagnosis.patterns(metrics) or [diagnosis.Pattern("none")]:
            numbers = (
                f"{metric_column(name).heading} {written(metrics[name].value, format_of(name))}"
                for name in pattern.metrics
            )
            rows.append((Label(run.name), pattern.name, ", ".join(numbers) or None))
    notes = ("patterns under this judge: proxies, neither proof of omission nor of invention",)
    return Table("Response patterns", plain("Model", "Pattern", "Numbers"), tuple(rows), notes)


def silence_table(runs: Sequence[Run]) -> Table:
    """For each model the regions and categories that its captions never mention."""
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        silent = diagnosis.silent_labels(run, "region_id")
        names = [name for name, _ in sorted(silent.items(), key=lambda e: (-e[1], e[0]))]
        shares = []
        for nature in ("", "thing", "stuff"):
            regions = diagnosis.regions_of(run, nature)
            shares.append(Share(len(regions & set(silent)), len(regions)) if regions else None)
        listed = ", ".join([*names[:MOST_LABELS], *_more(len(names), MOST_LABELS)])
        categories = ", ".join(sorted(diagnosis.silent_labels(run, "category")))
        rows.append((Label(run.name), *shares, categories or None, listed or None))
    columns = plain(
        "Model", "Silent regions", "Things", "Stuff", "Silent categories", "Regions, largest first"
    )
    notes = (
        "silent: every scored question about it was answered E, and there were at least "
        f"{diagnosis.QUIET_PROBES}",
    )
    return Table("Regions that the captions never mention", columns, tuple(rows), notes)


def difficulty_table(runs: Sequence[Run]) -> Table:
    """How many questions how many of the models get right."""
    found = diagnosis.difficulties(runs)
    counts = Counter(d.right for d in found)
    silent = Counter(d.right for d in found if d.abstained == d.n)
    most = max((d.n for d in found), default=0)
    rows: Rows = tuple(
        (f"{k} of {most}", counts[k], Share(counts[k], len(found)).value, silent[k])
        for k in range(most + 1)
    )
    columns = (*plain("Right in", "Questions"), Column("Share", RATE), Column("Of them: E in all"))
    return Table("Difficulty of the questions", columns, rows)


def doubtful_table(runs: Sequence[Run]) -> Table:
    """The questions that all models get wrong, the most suspicious label first."""
    found = diagnosis.doubtful_questions(runs)
    rows: Rows = tuple(
        (
            d.probe.id,
            d.probe.question,
            *(
                f"{letter}: {d.probe.options[LETTERS.index(letter)]}"
                for letter in (d.probe.answer, d.favourite)
            ),
            Share(d.n_favourite, d.n),
            Share(d.abstained, d.n),
        )
        for d in found[:MOST_LISTED]
    )
    notes = (
        "no model is right here: a hard question, a shared blind spot, or a wrong label",
        *_more(len(found), len(rows)),
    )
    columns = plain("Question id", "Question", "Stored answer", "Most chosen", "By", "E")
    return Table("Questions that all models get wrong", columns, rows, notes)


def neutrality_table(runs: Sequence[Run]) -> Table | None:
    """Overall accuracy by generator, and whether models do better on their own family's questions.

    None where the questions do not name at least two generators.
    """
    generators = neutrality.generators_of(runs)
    if len(generators) < 2:
        return None
    cells = neutrality.cells_of(runs, generators)
    own = np.array(
        [[neutrality.is_own(r.spec.model.family, g) for g in generators] for r in runs], bool
    )
    rows: Rows = tuple(
        (
            Label(run.name),
            run.spec.model.family or None,
            *(
                Number(float(cells.accuracy[m, g]), remark="*" if own[m, g] else "")
                for g in range(len(generators))
            ),
            summary_of(run).metrics["overall_acc"].value,
        )
        for m, run in enumerate(runs)
    )
    accuracy = format_of("overall_acc")
    columns = (
        *plain("Model", "Family"),
        *(Column(f"by {g}", accuracy) for g in generators),
        Column("All", accuracy),
    )
    notes = ["* questions of the model's own family"]
    found = neutrality.family_advantage(cells, own)
    if found is None:
        notes.append(
            "no test: it needs a model of a generator's family (`family` in snellen.toml) and "
            "one of another"
        )
    else:
        notes.append(
            f"own-family advantage {written(found.difference, SIGNED_POINTS)} points "
            f"{interval_text((found.low, found.high), POINTS)}, {p_text(found.p_images)} over "
            f"{found.n_images} images"
        )
        notes.append(
            "too few models to tell families from other traits of these models"
            if found.p_families is None
            else f"{p_text(found.p_families)} over other assignments of families to models"
        )
    return Table("Overall accuracy by the questions' generator", columns, rows, tuple(notes))


def direct_tables(runs: Sequence[Run]) -> Iterator[Table]:
    """The tables of direct runs that asked several times, or stand beside their control."""
    steady = [(run, found) for run in runs if (found := repeats.consistency_of(run)) is not None]
    if steady:
        yield consistency_table(steady)
    pairs = repeats.find_unseen(runs)
    if pairs:
        yield unseen_table(pairs)


def consistency_table(steady: Sequence[tuple[Run, Consistency]]) -> Table:
    """How often each question was answered right over the repeats."""
    rows: Rows = tuple(
        (
            Label(run.name),
            found.repeats,
            found.n,
            found.mean_accuracy,
            found.always,
            found.sometimes,
            found.never,
            found.agreement,
        )
        for run, found in steady
    )
    rates = ("Mean accuracy", "Always right", "Sometimes", "Never", "Agreement")
    columns = (*plain("Model", "Repeats", "Questions"), *(Column(title, RATE) for title in rates))
    notes = (
        "questions that are scored in all repeats",
        "agreement: the chance that two repeats of one question are judged alike",
    )
    return Table("Asked again", columns, rows, notes)


def unseen_table(pairs: Sequence[repeats.Unseen]) -> Table:
    """How much of each score is reached without the pictures."""
    rows: Rows = tuple(
        (
            Label(pair.run.name),
            *(measured(summary_of(run).metrics["accuracy"]) for run in (pair.run, pair.control)),
            pair.accuracy - pair.unseen,
            pair.share,
        )
        for pair in pairs
    )
    columns = (
        Column("Model"),
        Column("With pictures", RATE),
        Column("Without pictures", RATE),
        Column("Difference", POINTS),
        Column("Share of the score without pictures", RATE),
    )
    note = "snellen compare RUN CONTROL --across control gives the interval of the difference"
    return Table("Without the pictures", columns, rows, (note,))


def length_table(runs: Sequence[tuple[float, Run]]) -> Table:
    """The curve: one row a share of each caption that was kept, shortest first."""
    ordered = sorted(runs, key=lambda entry: entry[0])
    some = summary_of(ordered[0][1]).metrics
    names = [n for n in LENGTH_METRICS if n in some] or list(some)[:3]
    rows: Rows = tuple(
        (share, *(measured(summary_of(run).metrics.get(name)) for name in names))
        for share, run in ordered
    )
    last = ordered[-1][1]
    notes = dict.fromkeys(note for _, run in ordered for note in summary_of(run).notes)
    return Table(
        f"{last.name} on {last.spec.benchmark} by caption length: judge {last.spec.judge.name}",
        (Column("Caption kept", WHOLE_PERCENT), *map(metric_column, names)),
        rows,
        ("cut at the sentence end nearest to the share of characters", *notes),
    )


def provider_table(runs: Sequence[Run]) -> Table:
    """Latency, tokens, cost, failures and refusals of each run's model."""
    rows: list[tuple[Cell, ...]] = []
    for run in runs:
        found = providers.service_of(run)
        rows.append(
            (
                Label(run.name),
                found.n,
                found.latency_p50_s,
                found.latency_p95_s,
                found.output_tokens,
                found.thinking_tokens,
                found.cost_item_usd,
                found.cost_right_usd,
                found.failed,
                found.refused,
                found.cut,
            )
        )
    columns = (
        *plain("Model", "Replies"),
        *(Column(title, Format(digits=2)) for title in ("p50 s", "p95 s")),
        *(Column(title, Format(digits=0)) for title in ("Output tokens", "Thinking tokens")),
        *(Column(title, Format(digits=6)) for title in ("USD/item", "USD/right fact")),
        *plain("Failed", "Refused", "Cut off"),
    )
    notes = (
        "costs are the model's, without the judge's; `-` where the endpoint or the settings do "
        "not say",
    )
    return Table("Latency, tokens and cost of the model", columns, tuple(rows), notes)


def published_table(benchmark: str, runs: Sequence[Run] = ()) -> Table:
    """The published rows of a benchmark, and own runs of it among them, the best headline first.

    Rates have as many decimals as the paper prints. An own row has intervals and says how many of
    the benchmark's items it is of, so that a part never stands for the whole.

    Raises:
        UsageError: nothing is published about this benchmark.
    """
    names = published.METRICS.get(benchmark, ())
    models = published.published_models(benchmark)
    whole = next((entry.items for entry in known() if entry.name == benchmark), None)
    rows: list[tuple[Cell, ...]] = [
        (Label(row.model), *(row.metrics.get(name) for name in names), whole, row.judge)
        for row in models
    ]
    for run in runs:
        summary = summary_of(run)
        values = (summary.metrics.get(name) for name in names)
        cells = (None if v is None else Number(v.value, v.ci95) for v in values)
        n = summary.counts.items
        items = f"{n:,} of {whole:,}" if whole else n
        rows.append((Label(f"{run.name} (yours)"), *cells, items, run.spec.judge.name))
    # A row without a number stands last.
    rows.sort(key=lambda row: (number_in(row[1]) is not None, number_in(row[1])), reverse=True)
    columns = []
    for column in map(metric_column, names):
        form = column.format
        columns.append(replace(column, format=replace(form, digits=form.printed or form.digits)))
    notes = (
        "scores depend on the judge, its settings and the parser: published rows are for "
        "orientation, and only rows under the same judge compare",
        f"published: {published.source_of(benchmark)}",
    )
    title = f"{benchmark}: published rows" + (" and yours" if runs else "")
    heads = (Column("Model"), *columns, Column("Items"), Column("Judge"))
    return Table(title, heads, tuple(rows), notes)


def checks_table(benchmark: str) -> Table:
    """How well the published numbers of a benchmark agree with each other, rule by rule.

    Raises:
        UsageError: nothing is published about this benchmark.
    """
    by_rule: dict[str, list[published.Check]] = {}
    for check in published.published_checks(benchmark):
        by_rule.setdefault(check.rule, []).append(check)
    rows: list[tuple[Cell, ...]] = []
    for rule, checks in by_rule.items():
        worst = max(checks, key=lambda check: abs(check.printed - check.computed))
        holding = Share(sum(check.holds for check in checks), len(checks))
        apart = abs(worst.printed - worst.computed)
        rows.append((rule, holding, apart, checks[0].allowed, worst.model))
    digits = Format(digits=3)
    columns = (
        Column("Rule"),
        Column("Holds"),
        Column("Largest difference", digits),
        Column("Rounding allows", digits),
        Column("Where"),
    )
    notes = ("in the unit of the paper; a rule holds where rounding explains the difference",)
    return Table(f"{benchmark}: consistency of the published numbers", columns, tuple(rows), notes)


def alignment_table(alignment: Alignment) -> Table:
    """Each metric's correlations with the ratings, with intervals and p values."""
    rows: list[tuple[Cell, ...]] = []
    for row in alignment.rows:
        found = (row.pearson, row.spearman, row.kendall)
        cells: list[Cell] = []
        for one in found:
            cells += [Number(one.value, one.interval), None if np.isnan(one.value) else one.p]
        rows.append((Label(aligned_title(row.metric), row.metric), *cells, row.n))
    columns = (
        column
        for kind in ("Pearson", "Spearman", "Kendall")
        for column in (Column(kind, Format(digits=3)), Column(f"p, {kind}", P_VALUE))
    )
    notes = (
        "in brackets: 95% intervals by Fisher's transformation, none at a correlation of exactly 1 "
        "or for fewer than four models (Kendall: five); p: two-sided, by permutation",
        *alignment.notes,
    )
    return Table(
        f"{alignment.benchmark}: alignment with outside ratings",
        (Column("Metric"), *columns, Column("Models")),
        tuple(rows),
        notes,
    )


def aligned_title(metric: str) -> str:
    """A metric's title in tables and figures of alignment, overlap measures included."""
    return {**OVERLAP_TITLES, **GATED_TITLES}.get(metric) or title_of(metric)


def alignment_scores_table(alignment: Alignment) -> Table:
    """Each model's rating and its scores, the best rated first.

    The longer of models and metrics goes down the page, so that the table stays narrow.
    """
    names = [row.metric for row in alignment.rows]
    models = sorted(alignment.ratings, key=lambda m: -alignment.ratings[m])
    title = "Ratings and scores that were correlated"
    if len(models) > len(names):
        own = [replace(metric_column(n), title=aligned_title(n)) for n in names]
        rows: Rows = tuple(
            (Label(m), alignment.ratings[m], *(alignment.scores[n][m] for n in names))
            for m in models
        )
        return Table(title, (*plain("Model", "Rating"), *own), rows)
    lines: list[tuple[Cell, ...]] = [("Rating", *(alignment.ratings[m] for m in models))]
    for name in names:
        column = replace(metric_column(name), title=aligned_title(name))
        scores = (Number(alignment.scores[name][m], format=column.format) for m in models)
        lines.append((Label(column.heading, name), *scores))
    return Table(title, plain("Metric", *models), tuple(lines))
