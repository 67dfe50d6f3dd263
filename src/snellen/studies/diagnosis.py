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

# Overall within 5% of effective accuracy: hardly any abstention.
RARELY = 0.05
CONSERVATIVE_COVERAGE = 0.5
ACCURATE = 0.8
LOW_OVERALL = 0.5
FEW_UNCERTAIN = 0.25
DENSITY_GAP = 1.1
STEADY_CV, VOLATILE_CV = 0.3, 0.5
QUIET_PROBES = 2

Question = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A response pattern and the metrics, by name, that led to it."""

    name: str
    metrics: tuple[str, ...] = ()


def patterns(metrics: Mapping[str, Value]) -> list[Pattern]:
    """The patterns that a run's metrics show; all are proxies under one judge, not causes."""
    values = {name: one.value for name, one in metrics.items()}
    found = []
    overall, effective = values.get("overall_acc"), values.get("effective_acc")
    uncertain = values.get("uncertain_ratio")
    if overall is not None and effective is not None and uncertain is not None:
        shown = ("overall_acc", "effective_acc")
        if effective - overall <= RARELY * effective:
            found.append(Pattern("rarely uncertain", shown))
        if 1 - uncertain <= CONSERVATIVE_COVERAGE and effective >= ACCURATE:
            found.append(Pattern("conservative", (*shown, "uncertain_ratio")))
        if overall < LOW_OVERALL and uncertain < FEW_UNCERTAIN:
            found.append(Pattern("committed but wrong", ("overall_acc", "uncertain_ratio")))
    mean, whole = values.get("mean_density"), values.get("global_density")
    if mean and whole:
        name = "alike under both weights"
        if mean / whole >= DENSITY_GAP:
            name = "long captions or many probes are less dense"
        elif whole / mean >= DENSITY_GAP:
            name = "long captions or many probes are denser"
        found.append(Pattern(name, ("mean_density", "global_density")))
    cv = values.get("density_cv")
    if cv is not None and (cv <= STEADY_CV or cv >= VOLATILE_CV):
        name = "steady density" if cv <= STEADY_CV else "volatile density"
        found.append(Pattern(name, ("density_cv",)))
    return found


def is_silent(verdict: Verdict | None, probe: Probe) -> bool:
    """Whether the judge found nothing about a question in the caption."""
    return verdict is not None and verdict.verdict == LETTERS[len(probe.options)]


def silent_labels(run: Run, dimension: str) -> dict[str, int]:
    """The labels of a dimension of which all scored probes are E, with how many there are.

    A label with fewer than two scored probes is never called silent.
    """
    heard: dict[str, list[bool]] = defaultdict(list)
    for item, repeat, probe in asked(run):
        verdict = run.verdicts.get((item.id, repeat, probe.id))
        label = probe.groups.get(dimension)
        if label and verdict is not None and verdict.status == "scored":
            heard[label].append(is_silent(verdict, probe))
    return {
        label: len(silent)
        for label, silent in heard.items()
        if len(silent) >= QUIET_PROBES and all(silent)
    }


def asked(run: Run) -> list[tuple[Item, int, Probe]]:
    """Each probe of a run with its item and repeat."""
    return [(i, r, p) for i in run.items for r in range(run.spec.repeats) for p in i.probes]


def regions_of(run: Run, nature: str = "") -> set[str]:
    """The regions that a run's questions are about; only `thing` or `stuff` where one is named."""
    return {
        p.groups["region_id"]
        for _, _, p in asked(run)
        if "region_id" in p.groups and nature in ("", p.groups.get("nature"))
    }


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


def doubtful_questions(runs: Sequence[Run]) -> list[Difficulty]:
    """Questions that no model gets right and some commit on: candidates for a wrong label.

    Those on which most models agree on one wrong option come first. Fewer than two runs say
    nothing about a label.
    """
    if len(runs) < 2:
        return []
    found = [d for d in difficulties(runs) if d.n > 1 and not d.right and d.committed_wrong]
    return sorted(found, key=lambda d: (-d.n_favourite, -d.committed_wrong, d.probe.id))
