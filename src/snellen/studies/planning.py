"""What so many images can show, and what it costs: from a pilot run, or from stated assumptions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from snellen.comparisons.comparing import compare
from snellen.errors import UsageError
from snellen.records import Benchmark
from snellen.runs.folder import Run
from snellen.stats.power import (
    clusters_needed,
    design_effect,
    detectable_difference,
    halfwidth,
)

# Where no pilot says otherwise: a rate in the middle, questions of an image that go together a
# little, and two models that find mostly the same images hard.
ASSUMED_RATE = 0.7
ASSUMED_ICC = 0.1
ASSUMED_CORRELATION = 0.5
# Beside the number at hand.
USUAL_IMAGES = (50, 100, 200, 500, 1000, 3000)


@dataclass(frozen=True, slots=True)
class Pilot:
    """What is known, or assumed, before a run.

    `rate` is the metric, 0 to 1, `probes` the questions an image, `icc` the correlation of two
    verdicts on one image. `deviation` is the standard deviation over images of what each adds to
    the rate, `paired` that of a difference of two runs. `correlation` is that of the two runs over
    images, taken from a second run where there is one. `usd` and `tokens` are the cost and the
    tokens (model and judge) of an image; None where unknown. `source` says where all that is from.
    """

    metric: str
    images: int
    probes: float
    rate: float
    icc: float
    deviation: float
    paired: float
    correlation: float
    source: str
    usd: float | None = None
    tokens: float | None = None

    @property
    def design(self) -> float:
        """The design effect: how many times the variance of independent questions."""
        return design_effect(self.probes, self.icc)


@dataclass(frozen=True, slots=True)
class Reach:
    """What a number of images shows: the half-width of an interval, and the smallest difference
    that is found in 8 of 10 tries; with the cost and tokens of one run. Rates are fractions of 1.
    """

    images: int
    halfwidth: float
    detectable: float
    usd: float | None
    tokens: float | None


@dataclass(frozen=True, slots=True)
class Worth:
    """What more of something gains: `error` is the standard error against that of the pilot (1.0),
    `calls` are the calls against those of the pilot; what it rests on stands in `note`.
    """

    change: str
    error: float
    calls: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A pilot, what numbers of images show, how many images a wanted difference needs (None where
    none was asked for), and what more images, questions, repeats and judges are worth.
    """

    pilot: Pilot
    reach: tuple[Reach, ...]
    worth: tuple[Worth, ...]
    difference: float | None
    needed: int | None
    power: float
    level: float


def pilot_of(
    run: Run, other: Run | None = None, *, metric: str = "", correlation: float | None = None
) -> Pilot:
    """The pilot that one run is, or two runs of different models on the same items.

    Raises:
        UsageError: the metric is no rate of the protocol, or the run has too few images.
        ComparisonError: the two runs cannot be compared.
    """
    tally = run.tally()
    name = metric or run.protocol.headline
    found = next((m for m in tally.metrics if m.name == name), None)
    if found is None or found.unit != "%":
        rates = [m.name for m in tally.metrics if m.unit == "%"]
        raise UsageError(f"`{name}` is no rate of this run", hint=f"there are: {', '.join(rates)}")
    if tally.n_clusters < 3:
        raise UsageError(
            f"{tally.n_clusters} images are too few for a pilot", hint="give a run on 10 or more"
        )
    k = tally.metrics.index(found)
    spread = tally.intervals()
    rate, error = float(spread.estimate[k]), float(spread.standard_error[k])
    trials = float(found.n(tally.sums()))
    n, probes = tally.n_clusters, trials / tally.n_clusters
    deviation = error * math.sqrt(n)
    alone = rate * (1.0 - rate)
    observed = error**2 * trials / alone if alone > 0.0 else 1.0
    icc = min(1.0, max(0.0, (observed - 1.0) / (probes - 1.0))) if probes > 1.0 else 0.0
    together = ASSUMED_CORRELATION if correlation is None else correlation
    paired = deviation * math.sqrt(2.0 * (1.0 - together))
    source = f"{run.name} on {n} images; correlation of two runs assumed {together:.2f}"
    if other is not None:
        pair = compare([run, other], metrics=[name], common=True).metrics[0].pairs[0]
        if pair.detectable is None:
            raise UsageError("the two runs do not differ on any image", hint="give other runs")
        reach = detectable_difference(1.0, pair.n_clusters)
        paired = pair.detectable / reach
        together = max(-1.0, 1.0 - (paired / deviation) ** 2 / 2.0) if deviation else math.nan
        source = f"{run.name} and {other.name} on {pair.n_clusters} images"
    usage = {} if run.summary is None else run.summary.usage
    tokens = sum(
        (usage.get(role, {}).get(kind) or 0)
        for role in ("model", "judge")
        for kind in ("prompt_tokens", "completion_tokens")
    )
    cost = usage.get("cost_usd")
    return Pilot(
        name, n, probes, rate, icc, deviation, paired, together, source,
        usd=cost / n if cost else None, tokens=tokens / n if tokens else None,
    )  # fmt: skip


def assumed_pilot(
    benchmark: Benchmark,
    *,
    rate: float = ASSUMED_RATE,
    icc: float = ASSUMED_ICC,
    correlation: float = ASSUMED_CORRELATION,
) -> Pilot:
    """The pilot of a benchmark that nothing is known of yet but its size."""
    images = len({item.cluster or item.id for item in benchmark.items})
    probes = sum(len(item.probes) for item in benchmark.items) / max(1, images)
    variance = rate * (1.0 - rate) * design_effect(probes, icc) / probes
    deviation = math.sqrt(variance)
    return Pilot(
        "rate", images, probes, rate, icc, deviation,
        deviation * math.sqrt(2.0 * (1.0 - correlation)), correlation,
        f"assumed: rate {rate:g}, correlation within an image {icc:g}, of two runs {correlation:g}",
    )  # fmt: skip


def plan(
    pilot: Pilot,
    *,
    difference: float | None = None,
    images: Sequence[int] = (),
    power: float = 0.8,
    level: float = 0.95,
) -> Plan:
    """What the pilot says of other numbers of images, questions, repeats and judges."""
    numbers = sorted({pilot.images, *(images or USUAL_IMAGES)})
    needed = None
    if difference is not None:
        needed = clusters_needed(pilot.paired, difference, power=power, level=level)
        numbers = sorted({*numbers, *([] if needed is None else [needed])})
    reach = tuple(
        Reach(
            n,
            halfwidth(pilot.deviation, n, level=level),
            detectable_difference(pilot.paired, n, power=power, level=level),
            None if pilot.usd is None else n * pilot.usd,
            None if pilot.tokens is None else n * pilot.tokens,
        )
        for n in numbers
    )
    return Plan(pilot, reach, tuple(_worths(pilot)), difference, needed, power, level)


def _worths(pilot: Pilot) -> list[Worth]:
    """What doubling one thing gains. A caption is one call; each question adds one of the judge."""
    one = pilot.design / pilot.probes
    calls = 1.0 + pilot.probes

    found = [Worth("twice the images", math.sqrt(0.5), 2.0)]
    for name, probes in (
        ("twice the questions an image", 2.0 * pilot.probes),
        ("half the questions an image", max(1.0, pilot.probes / 2.0)),
    ):
        error = math.sqrt(design_effect(probes, pilot.icc) / probes / one)
        found.append(Worth(name, error, (1.0 + probes) / calls))
    # A repeat or a second judge averages what is drawn anew each time: at most all of the part
    # that questions of one image do not share.
    shared = pilot.icc * pilot.probes / pilot.design
    least = math.sqrt(shared + (1.0 - shared) / 2.0)
    note = "at best: if all but the image were chance; it gains nothing if verdicts repeat"
    found.append(Worth("two replies an image (--repeat 2)", least, 2.0, note))
    found.append(Worth("a second judge", least, (1.0 + 2.0 * pilot.probes) / calls, note))
    return found


def in_a_sentence(found: Plan) -> str:
    """The plan in one sentence."""
    pilot = found.pilot
    own = next(row for row in found.reach if row.images == pilot.images)
    points = 100.0 * own.detectable
    said = (
        f"{pilot.images} images with {pilot.probes:.0f} questions each count as "
        f"{pilot.images * pilot.probes / pilot.design:.0f} independent questions and show "
        f"differences from {points:.1f} points on"
    )
    if found.difference is None:
        return said + "."
    wanted = 100.0 * abs(found.difference)
    if found.needed is None:
        return f"{said}; no number of images shows a difference of 0."
    return f"{said}; a difference of {wanted:g} points needs {found.needed:,} images."
