"""What is behind the scores of captions: response patterns, silence, and doubtful questions.

Source: CapProbe (arXiv 2608.11074), sections 4.1 and 4.2, diagnostic interpretation. The paper
names the patterns and gives no thresholds; those here are Snellen's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from snellen.errors import ComparisonError
from snellen.records import LETTERS, Item, Probe, Verdict
from snellen.runs.folder import Run
from snellen.runs.spec import Value
from snellen.tables.runs import breakdown, summary_of
from snellen.tables.table import Table

# Overall within 5% of effective accuracy: hardly any abstention.
RARELY = 0.05
CONSERVATIVE_COVERAGE = 0.5
ACCURATE = 0.8
LOW_OVERALL = 0.5
FEW_UNCERTAIN = 0.25
DENSITY_GAP = 1.1
STEADY_CV, VOLATILE_CV = 0.3, 0.5
MOST_LISTED = 30
MOST_LABELS = 12
QUIET_PROBES = 2

Question = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A response pattern and the numbers that led to it."""

    name: str
    because: str


def patterns(metrics: Mapping[str, Value]) -> list[Pattern]:
    """The patterns that a run's metrics show; all are proxies under one judge, not causes."""
    return [*_answering(metrics), *_density(metrics)]


def _answering(metrics: Mapping[str, Value]) -> list[Pattern]:
    overall, effective = _value(metrics, "overall_acc"), _value(metrics, "effective_acc")
    uncertain = _value(metrics, "uncertain_ratio")
    if overall is None or effective is None or uncertain is None:
        return []
    found = []
    shown = f"overall {100 * overall:.1f}%, effective {100 * effective:.1f}%"
    if effective - overall <= RARELY * effective:
        found.append(Pattern("rarely uncertain", shown))
    if 1 - uncertain <= CONSERVATIVE_COVERAGE and effective >= ACCURATE:
        found.append(Pattern("conservative", f"{shown}, uncertain {100 * uncertain:.1f}%"))
    if overall < LOW_OVERALL and uncertain < FEW_UNCERTAIN:
        because = f"overall {100 * overall:.1f}%, uncertain only {100 * uncertain:.1f}%"
        found.append(Pattern("committed but wrong", because))
    return found


def _density(metrics: Mapping[str, Value]) -> list[Pattern]:
    mean, whole = _value(metrics, "mean_density"), _value(metrics, "global_density")
    cv = _value(metrics, "density_cv")
    found = []
    if mean and whole:
        shown = f"mean {mean:.2f}, global {whole:.2f} per mille"
        if mean / whole >= DENSITY_GAP:
            name = "long captions or many probes are less dense"
        elif whole / mean >= DENSITY_GAP:
            name = "long captions or many probes are denser"
        else:
            name = "alike under both weights"
        found.append(Pattern(name, shown))
    if cv is not None and (cv <= STEADY_CV or cv >= VOLATILE_CV):
        name = "steady density" if cv <= STEADY_CV else "volatile density"
        found.append(Pattern(name, f"CV {cv:.3f}"))
    return found


def _value(metrics: Mapping[str, Value], name: str) -> float | None:
    return metrics[name].value if name in metrics else None


def patterns_table(runs: Sequence[Run]) -> Table:
    """The patterns of each run, with the numbers that led to them."""
    rows = [
        (run.name, pattern.name, pattern.because)
        for run in runs
        for pattern in patterns(summary_of(run).metrics) or [Pattern("none", "-")]
    ]
    notes = ("patterns under this judge: proxies, neither proof of omission nor of invention",)
    return Table("Response patterns", ("Model", "Pattern", "Numbers"), tuple(rows), notes)


def is_silent(verdict: Verdict | None, probe: Probe) -> bool:
    """Whether the judge found nothing about a question in the caption."""
    return verdict is not None and verdict.verdict == LETTERS[len(probe.options)]


def silent_labels(run: Run, dimension: str) -> dict[str, int]:
    """The labels of a dimension of which all scored probes are E, with how many there are.

    A label with fewer than two scored probes is never called silent.
    """
    heard: dict[str, list[bool]] = defaultdict(list)
    for item, repeat, probe in _asked(run):
        verdict = run.verdicts.get((item.id, repeat, probe.id))
        label = probe.groups.get(dimension)
        if label and verdict is not None and verdict.status == "scored":
            heard[label].append(is_silent(verdict, probe))
    return {
        label: len(silent)
        for label, silent in heard.items()
        if len(silent) >= QUIET_PROBES and all(silent)
    }


def _asked(run: Run) -> list[tuple[Item, int, Probe]]:
    return [(i, r, p) for i in run.items for r in range(run.spec.repeats) for p in i.probes]


def silence_table(runs: Sequence[Run]) -> Table:
    """For each model the regions and categories that its captions never speak of."""
    rows = []
    for run in runs:
        regions = silent_labels(run, "region_id")
        n_regions = len(
            {p.groups["region_id"] for _, _, p in _asked(run) if "region_id" in p.groups}
        )
        named = [name for name, _ in sorted(regions.items(), key=lambda e: (-e[1], e[0]))]
        rows.append(
            (
                run.name,
                f"{len(regions)}/{n_regions}",
                *(_share_silent(run, regions, nature) for nature in ("thing", "stuff")),
                ", ".join(sorted(silent_labels(run, "category"))) or "-",
                _some(named),
            )
        )
    columns = (
        "Model", "Silent regions", "Things", "Stuff", "Silent categories", "Regions, largest first",
    )  # fmt: skip
    notes = (
        "silent: every scored question about it was answered E, and there were at least "
        f"{QUIET_PROBES}",
    )
    return Table("What the captions never speak of", columns, tuple(rows), notes)


def _share_silent(run: Run, silent: Mapping[str, int], nature: str) -> str:
    regions = {p.groups["region_id"] for _, _, p in _asked(run) if p.groups.get("nature") == nature}
    return f"{len(regions & set(silent))}/{len(regions)}" if regions else "-"


def _some(names: Sequence[str]) -> str:
    rest = len(names) - MOST_LABELS
    shown = ", ".join(names[:MOST_LABELS]) or "-"
    return f"{shown} and {rest} more" if rest > 0 else shown


@dataclass(frozen=True, slots=True)
class Difficulty:
    """How several models did on one question; unscored verdicts are left out.

    `favourite` is the wrong letter that most of them chose, with how many did.
    """

    item: Item
    probe: Probe
    n: int
    right: int
    abstained: int
    favourite: str
    n_favourite: int

    @property
    def committed_wrong(self) -> int:
        """How many chose a wrong option."""
        return self.n - self.right - self.abstained


def difficulties(runs: Sequence[Run]) -> list[Difficulty]:
    """Each question over all runs, the hardest first.

    Raises:
        ComparisonError: the runs are not about the same questions.
    """
    first = runs[0]
    if any(run.spec.items != first.spec.items for run in runs):
        raise ComparisonError(
            "runs on different items cannot be laid side by side",
            hint="give runs of the same benchmark with the same --limit and --subset",
        )
    found = [_difficulty(item, probe, runs) for item in first.items for probe in item.probes]
    return sorted(found, key=lambda d: (d.right / d.n if d.n else 1.0, -d.n_favourite, d.probe.id))


def _difficulty(item: Item, probe: Probe, runs: Sequence[Run]) -> Difficulty:
    verdicts = [
        v
        for run in runs
        for repeat in range(run.spec.repeats)
        if (v := run.verdicts.get((item.id, repeat, probe.id))) is not None and v.status == "scored"
    ]
    silent = sum(is_silent(v, probe) for v in verdicts)
    wrong = Counter(str(v.verdict) for v in verdicts if not v.correct and not is_silent(v, probe))
    favourite, most = wrong.most_common(1)[0] if wrong else ("", 0)
    right = sum(v.correct is True for v in verdicts)
    return Difficulty(item, probe, len(verdicts), right, silent, favourite, most)


def difficulty_table(runs: Sequence[Run]) -> Table:
    """How many questions how many of the models get right."""
    found = difficulties(runs)
    counts = Counter(d.right for d in found)
    silent = Counter(d.right for d in found if d.abstained == d.n)
    most = max((d.n for d in found), default=0)
    rows = tuple(
        (f"{k} of {most}", str(counts[k]), f"{100 * counts[k] / len(found):.1f}", str(silent[k]))
        for k in range(most + 1)
    )
    columns = ("Right in", "Questions", "Share %", "Of them: E in all")
    return Table("Difficulty of the questions", columns, rows)


def doubtful_questions(runs: Sequence[Run]) -> list[Difficulty]:
    """Questions that no model gets right and some commit on: candidates for a wrong label.

    Those on which most models agree on one wrong option come first. Fewer than two runs say
    nothing about a label.
    """
    if len(runs) < 2:
        return []
    found = [d for d in difficulties(runs) if d.n > 1 and not d.right and d.committed_wrong]
    return sorted(found, key=lambda d: (-d.n_favourite, -d.committed_wrong, d.probe.id))


def doubtful_table(runs: Sequence[Run]) -> Table:
    """The questions that all models get wrong, the most suspicious label first."""
    found = doubtful_questions(runs)
    rows = tuple(
        (
            d.probe.id,
            d.probe.question,
            f"{d.probe.answer}: {d.probe.options[LETTERS.index(d.probe.answer)]}",
            f"{d.favourite}: {d.probe.options[LETTERS.index(d.favourite)]}",
            f"{d.n_favourite}/{d.n}",
            f"{d.abstained}/{d.n}",
        )
        for d in found[:MOST_LISTED]
    )
    rest = len(found) - len(rows)
    notes = (
        "no model is right here: a hard question, a shared blind spot, or a wrong label",
        *((f"and {rest} more",) if rest > 0 else ()),
    )
    columns = ("Question id", "Question", "Stored answer", "Most chosen", "By", "E")
    return Table("Questions that all models get wrong", columns, rows, notes)


def diagnose(runs: Sequence[Run]) -> list[Table]:
    """All tables of the diagnosis of runs on the same items; fewer where data is missing."""
    tables = [patterns_table(runs), silence_table(runs)]
    for run in runs:
        by = summary_of(run).by
        tables += [breakdown(run, name) for name in ("nature", "area") if name in by]
    if len(runs) > 1:
        tables += [difficulty_table(runs), doubtful_table(runs)]
    return tables
