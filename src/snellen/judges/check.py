"""Measure a judge's errors from its verdicts on material of known truth.

Everything is counted by picture, so that intervals are clustered. An unscored verdict counts as
not right, and stands in a column of its own in the confusion matrix.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snellen.judges.material import Material
from snellen.metrics import ratio
from snellen.protocols import PROTOCOLS
from snellen.protocols.reading import ReadingOptions, show_options
from snellen.records import ProtocolName, Verdict
from snellen.runs.judge_errors import RIGHT, UNCERTAIN, WRONG, Confusion, Position, Rate
from snellen.stats.bootstrap import Resampling, intervals

RESAMPLES = 4_000


UNSCORED = "unscored"


Mask = NDArray[np.bool_]


Verdicts = Mapping[tuple[str, int, str], Verdict]


@dataclass(frozen=True, slots=True)
class Answered:
    """A judge's verdicts on known probes in columns, one row a probe (of the first repeat)."""

    cluster: NDArray[np.intp]
    truth: NDArray[np.str_]
    said: NDArray[np.str_]
    exact: Mask
    treatment: NDArray[np.str_]
    source: NDArray[np.str_]

    @property
    def is_known(self) -> Mask:
        """Where there is a verdict."""
        known: Mask = self.said != UNSCORED
        return known


def answered(material: Material, verdicts: Verdicts) -> Answered:
    """The columns of the verdicts that a run gave on material."""
    names: dict[str, int] = {}
    rows = []
    has_letters = UNCERTAIN in PROTOCOLS[material.benchmark.protocol].classes
    for item in material.benchmark.items:
        cluster = names.setdefault(item.cluster, len(names))
        for probe in item.probes:
            known = material.known[item.id, probe.id]
            verdict = verdicts.get((item.id, 0, probe.id))
            value = None if verdict is None else verdict.verdict
            own = probe.answer if has_letters else ""
            rows.append(
                (cluster, _class(known.truth, own), _class(value, own), value == known.truth, known)
            )
    return Answered(
        np.array([row[0] for row in rows], np.intp),
        np.array([row[1] for row in rows], str),
        np.array([row[2] for row in rows], str),
        np.array([row[3] for row in rows], bool),
        np.array([row[4].treatment for row in rows], str),
        np.array([row[4].source for row in rows], str),
    )


def _class(value: str | bool | None, own: str) -> str:
    if value is None:
        return UNSCORED
    if isinstance(value, bool):
        return str(value).lower()
    return UNCERTAIN if value == UNCERTAIN else RIGHT if value == own else WRONG


def rates_of(found: Answered, protocol: ProtocolName) -> dict[str, Rate]:
    """The named rates of a judge; those without a try are left out."""
    stated, absent = found.treatment == "stated", found.treatment == "absent"
    credits = (found.said == RIGHT) | (found.said == "true")
    wanted: dict[str, tuple[Mask, Mask]] = {
        "accuracy": (np.ones(len(found.exact), bool), found.exact),
        "right_when_stated": (stated, found.exact),
        "right_when_absent": (absent, found.exact),
    }
    for name in ("changed", "negated", "false"):
        wanted[f"right_when_{name}"] = (found.treatment == name, found.exact)
        if name != "false":
            wanted[f"fooled_when_{name}"] = (found.treatment == name, credits)
    if UNCERTAIN in PROTOCOLS[protocol].classes:
        said_e = found.said == UNCERTAIN
        wanted["abstained_when_stated"] = (stated, said_e)
        wanted["committed_when_absent"] = (absent, found.is_known & ~said_e)
    return clustered_rates(found.cluster, {k: v for k, v in wanted.items() if v[0].any()})


def clustered_rates(
    cluster: NDArray[np.intp], wanted: Mapping[str, tuple[Mask, Mask]]
) -> dict[str, Rate]:
    """Rates with intervals: of the tries (first mask) the share of hits (second mask).

    >>> one = np.array([0, 0, 1, 1])
    >>> tries, hits = np.array([True, True, True, False]), np.array([True, False, True, True])
    >>> found = clustered_rates(one, {"r": (tries, hits)})["r"]
    >>> found.hits, found.n
    (2, 3)
    """
    if not wanted:
        return {}
    n = int(cluster.max(initial=-1)) + 1
    columns = [m for tries, hits in wanted.values() for m in (tries, tries & hits)]
    tally = np.stack([np.bincount(cluster, weights=m, minlength=n) for m in columns], axis=1)

    def shares(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        return ratio(sums[..., 1::2], sums[..., ::2])

    found = intervals(tally, shares, rates=[True] * len(wanted), resampling=Resampling(RESAMPLES))
    totals = tally.sum(axis=0).astype(int)
    return {
        name: Rate(int(totals[2 * k + 1]), int(totals[2 * k]), _pair(found.low[k], found.high[k]))
        for k, name in enumerate(wanted)
    }


def _pair(low: float, high: float) -> tuple[float, float] | None:
    return (float(low), float(high)) if math.isfinite(low) and math.isfinite(high) else None


def confusion_of(found: Answered, protocol: ProtocolName) -> Confusion:
    """The confusion matrix, with intervals of the rows' shares."""
    truths = PROTOCOLS[protocol].classes
    said = (*truths, UNSCORED)
    cells = {f"{t}/{s}": (found.truth == t, found.said == s) for t in truths for s in said}
    rates = clustered_rates(found.cluster, cells)
    shares = tuple(tuple(rates[f"{t}/{s}"] for s in said) for t in truths)
    counts = tuple(tuple(rate.hits for rate in row) for row in shares)
    return Confusion(truths, said, counts, shares)


def same_again(material: Material, verdicts: Verdicts, *, repeats: int) -> Rate | None:
    """Of pairs of repeats of one probe that both have a verdict, the share that agree."""
    if repeats < 2:
        return None
    clusters: list[int] = []
    agree: list[bool] = []
    names: dict[str, int] = {}
    for item in material.benchmark.items:
        cluster = names.setdefault(item.cluster, len(names))
        for probe in item.probes:
            said = [_verdict(verdicts, (item.id, k, probe.id)) for k in range(repeats)]
            known = [value for value in said if value is not None]
            pairs = [a == b for k, a in enumerate(known) for b in known[k + 1 :]]
            clusters += [cluster] * len(pairs)
            agree += pairs
    return _one_rate(clusters, agree)


def _verdict(verdicts: Verdicts, key: tuple[str, int, str]) -> str | bool | None:
    found = verdicts.get(key)
    return None if found is None else found.verdict


def _one_rate(clusters: Sequence[int], hits: Sequence[bool]) -> Rate:
    if not clusters:
        return Rate(0, 0)
    _, place = np.unique(np.array(clusters), return_inverse=True)
    every = np.ones(len(hits), bool)
    return clustered_rates(place.astype(np.intp), {"rate": (every, np.array(hits, bool))})["rate"]


def position_of(
    material: Material, plain: Verdicts, shuffled: Verdicts, *, options: ReadingOptions
) -> Position:
    """How the judge chose among shuffled options; `options` are those of the shuffled run."""
    chosen, right = dict.fromkeys("ABCD", 0), dict.fromkeys("ABCD", 0)
    clusters: list[int] = []
    same: list[bool] = []
    names: dict[str, int] = {}
    for item in material.benchmark.items:
        cluster = names.setdefault(item.cluster, len(names))
        for probe in item.probes:
            letters = show_options(probe, options).letters
            before = _verdict(plain, (item.id, 0, probe.id))
            after = _verdict(shuffled, (item.id, 0, probe.id))
            if before is not None and after is not None:
                clusters.append(cluster)
                same.append(before == after)
            truth = material.known[item.id, probe.id].truth
            if truth != UNCERTAIN and isinstance(truth, str):
                _count(right, letters, truth)
                _count(chosen, letters, after)
    return Position(chosen, right, _spread_p(chosen), _one_rate(clusters, same))


def _count(places: dict[str, int], letters: Sequence[str], stored: str | bool | None) -> None:
    if isinstance(stored, str) and stored in letters:
        shown = "ABCDE"[letters.index(stored)]
        if shown in places:
            places[shown] += 1


def _spread_p(chosen: Mapping[str, int]) -> float | None:
    """The chance of counts at least as uneven over four places, were all places alike.

    >>> round(_spread_p({"A": 30, "B": 10, "C": 10, "D": 10}), 5)
    0.00017
    """
    n = sum(chosen.values())
    if not n or len(chosen) != 4:
        return None
    x = sum((k - n / 4) ** 2 for k in chosen.values()) / (n / 4)
    # The upper tail of chi-square with 3 degrees of freedom.
    return math.erfc(math.sqrt(x / 2)) + math.sqrt(2 * x / math.pi) * math.exp(-x / 2)


def sources_of(found: Answered, protocol: ProtocolName) -> dict[str, dict[str, Rate]]:
    """The rates for each source of the material, apart."""
    parts = {}
    for source in ("frozen", "dev", "facts"):
        mask = found.source == source
        if mask.any():
            parts[source] = rates_of(part_of(found, mask), protocol)
    return parts


def part_of(found: Answered, mask: Mask) -> Answered:
    """The rows for which the mask holds."""
    _, place = np.unique(found.cluster[mask], return_inverse=True)
    return Answered(
        place.astype(np.intp),
        found.truth[mask],
        found.said[mask],
        found.exact[mask],
        found.treatment[mask],
        found.source[mask],
    )
