"""The tables of `snellen build statistics` for perception questions."""

from __future__ import annotations

from snellen.builders.perception.attributing import AgreementReport
from snellen.builders.perception.counts import PerceptionCounts
from snellen.builders.perception.mapping import BenchmarkMix, ErrorMap
from snellen.builders.perception.rows import STRATA
from snellen.tables.table import RATE, Cell, Column, Format, Number, Rows, Table, plain

MEAN = Format(digits=2)
# As many pairs of benchmarks as are listed one by one.
MOST_PAIRS = 45


def perception_tables(counts: PerceptionCounts, stage: str) -> tuple[Table, ...]:
    """What the public set's pages print: sizes, capabilities, and source benchmarks."""
    sizes: list[tuple[Cell, ...]] = [
        ("Questions", counts.questions),
        ("From failures", counts.decomposed),
        ("New", counts.new),
        ("Share of new ones", Number(counts.new_share, format=RATE)),
        ("Pictures", counts.pictures),
        ("Questions with several", counts.several_pictures),
        ("Most pictures a question", counts.most_pictures),
        ("With a hint", counts.hints),
        ("Question, characters", Number(counts.problem_chars, format=MEAN)),
        ("Answer, characters", Number(counts.answer_chars, format=MEAN)),
        *((f"Difficulty: {name}", counts.strata.get(name, 0)) for name in STRATA),
    ]
    capabilities: Rows = tuple(
        (
            name,
            one.questions,
            one.decomposed,
            one.new,
            one.pictures,
            one.answer_chars,
            *(one.strata.get(name, 0) for name in STRATA),
        )
        for name, one in counts.capabilities.items()
    )
    columns = (
        *plain("Capability", "Questions", "From failures", "New", "Pictures"),
        Column("Answer, characters", MEAN),
        *plain(*(name.capitalize() for name in STRATA)),
    )
    tables = [
        Table(f"After {stage}", plain("Count", "Value"), tuple(sizes)),
        Table("Questions by capability", columns, capabilities),
    ]
    if counts.sources:
        rows: Rows = tuple(counts.sources.items())
        tables.append(Table("Questions by source benchmark", plain("Benchmark", "Questions"), rows))
    return tuple(tables)


def agreement_table(report: AgreementReport) -> Table:
    """How far each two attributors agree on the type, and on perceptual or not."""
    kappa = Format(digits=2)
    rows = tuple(
        (
            " and ".join(one.pair),
            one.n,
            Number(one.types, one.types_interval, format=RATE),
            Number(one.kappa, one.kappa_interval, format=kappa),
            Number(one.branch, format=RATE),
            Number(one.branch_kappa, format=kappa),
        )
        for one in report.pairs
    )
    titles = ("Attributors", "Failures", "Same type", "Kappa", "Same branch", "Kappa of branch")
    notes = [", ".join(f"{name} {n:,}" for name, n in report.decided_by.items())]
    if report.fleiss is not None and len(report.pairs) > 1:
        notes.append(f"Fleiss' kappa over all attributors: {report.fleiss:.2f}")
    notes.append("branch: perceptual or beyond perception; intervals are resampled by question")
    return Table("Agreement of attributors", plain(*titles), rows, tuple(notes))


def map_tables(found: ErrorMap) -> tuple[Table, ...]:
    """Failures by benchmark, by model and by type, and the likenesses of the benchmarks."""
    total = sum(one.failures for one in found.benchmarks)
    rows = []
    for label in found.types:
        counts = [one.types.get(label, 0) for one in found.benchmarks]
        branch = "perceptual" if label in found.perceptual_types else "beyond perception"
        share = sum(counts) / total if total else None
        rows.append((label, branch, sum(counts), share, sum(map(bool, counts))))
    return (
        _mix_table("Failures by source benchmark", "Benchmark", found.benchmarks),
        _mix_table("Failures by model", "Model", found.models),
        Table(
            "Failures by type",
            (*plain("Type", "Branch", "Failures"), Column("Share", RATE), *plain("Benchmarks")),
            tuple(rows),
            (f"benchmarks: in how many of {len(found.benchmarks)} the type occurs",),
        ),
        *_likeness_tables(found),
    )


def _mix_table(title: str, first: str, mixes: tuple[BenchmarkMix, ...]) -> Table:
    rows = tuple(
        (
            one.name,
            one.failures,
            one.perceptual / one.failures,
            ", ".join(f"{label} {100 * share:.0f}%" for label, share in one.leading) or None,
        )
        for one in mixes
    )
    notes = ("tests: the commonest perceptual types that make up half of the perceptual failures",)
    columns = (*plain(first, "Failures"), Column("Perceptual", RATE), *plain("Tests"))
    return Table(title, columns, rows, notes)


def _likeness_tables(found: ErrorMap) -> tuple[Table, ...]:
    rows = tuple(
        (
            name,
            Number(one.mean, format=MEAN),
            Number(one.same_mix, one.span, format=MEAN),
            Number(one.p, format=Format(digits=3, least=0.001)),
        )
        for name, one in (("perceptual types", found.perceptual), ("all types", found.all_types))
    )
    notes = (
        f"published for perceptual types over 42 benchmarks: {found.published_mean:.2f}",
        "same mix: the index if benchmarks did not differ; few failures alone make it low",
    )
    columns = plain("Compared by", "Mean index", "Same mix", "p")
    mean = Table("Weighted Jaccard index of benchmarks", columns, rows, notes)
    alike = found.perceptual
    pairs = tuple(
        (a, b, Number(alike.matrix[i][j], format=MEAN))
        for i, a in enumerate(alike.benchmarks)
        for j, b in enumerate(alike.benchmarks)
        if i < j and alike.matrix[i][j] is not None
    )
    if not 0 < len(pairs) <= MOST_PAIRS:
        return (mean,)
    titles = ("Benchmark", "and", "Weighted Jaccard")
    return mean, Table("Pairs of benchmarks, by perceptual types", plain(*titles), pairs)
