"""What questions about captions add up to: accuracy, coverage, and density by caption length.

Source: CapProbe (arXiv 2608.11074), section 4, tables 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from snellen.metrics import (
    Array,
    Metric,
    ProbeTable,
    Sums,
    Tally,
    column,
    hit_rate,
    pool,
    quotient,
    ratio,
)
from snellen.protocols.protocol import Extra, Replies, RunView, Verdicts
from snellen.records import Item, Params, abstains
from snellen.stats.agreement import calibration

# Why the questions of an image are skipped that a file of captions does not have.
NO_CAPTION = "no_caption"
# The charts of runs whose captions are read, by name.
CHARTS = (
    "radar-category", "trade", "length", "length-curves", "bars-generator", "reliability",
    "shares", "bars-l1", "bars-domain", "tree", "rings",
)  # fmt: skip
# What a judge says of a question: the right option, another one, or that it cannot tell.
CLASSES = ("right", "wrong", "E")
TABLES = ("controls", "neutrality", "diagnose")

# By unit (a picture, or one repeat of it), then added up by cluster: M probes, C right,
# U abstained, X unscored (Xo: with a caption); n units, ok units with a caption, os those
# with a scored probe too, T caption tokens;
# W = M*T request tokens; d densities and their squares, as strict / over scored / upper.
COLUMNS = (
    "M", "C", "U", "X", "Xo", "n", "ok", "os", "T", "W", "d", "dd", "Ws", "ds", "dds", "du",
)  # fmt: skip


def _density_cv(s: Sums, first: str, second: str, n: str) -> Array:
    """Population sigma over mean, from sums of densities and of their squares."""
    mean = ratio(s[first], s[n])
    variance = ratio(s[second], s[n]) - mean * mean
    return ratio(np.sqrt(np.maximum(variance, 0.0)), mean)


OVERALL = replace(
    hit_rate("overall_acc", "C", "M", "X", title="Overall"),
    is_main=True,
    definition="Share of the questions that the judge answers rightly from the caption.",
    formula="right / questions",
    example="30 questions, 18 right: 60.0 %.",
)
EFFECTIVE = Metric(
    "effective_acc",
    lambda s: ratio(s["C"], s["M"] - s["U"]),
    lambda s: ratio(s["C"], s["M"] - s["X"] - s["U"]),
    lambda s: ratio(s["C"] + s["X"], s["M"] - s["U"]),
    lambda s: s["M"] - s["U"],
    title="Effective",
    is_main=True,
    definition="Share of right answers among the questions that the judge does not abstain from.",
    formula="right / (questions - abstentions)",
    example="30 questions, 6 abstentions, 18 right: 75.0 %.",
)
UNCERTAIN = Metric(
    "uncertain_ratio",
    quotient("U", "M"),
    lambda s: ratio(s["U"], s["M"] - s["X"]),
    quotient("U", "M"),
    column("M"),
    title="Uncertain",
    better=-1,
    definition="Share of the questions that the judge abstains from, since the caption does "
    "not tell.",
    formula="abstentions / questions",
    example="30 questions, 6 abstentions: 20.0 %.",
)
COVERAGE = Metric(
    "coverage",
    lambda s: ratio(s["M"] - s["U"], s["M"]),
    lambda s: ratio(s["M"] - s["X"] - s["U"], s["M"] - s["X"]),
    lambda s: ratio(s["M"] - s["U"], s["M"]),
    column("M"),
    title="Coverage",
    is_main=True,
    lower=lambda s: ratio(s["M"] - s["U"] - s["X"], s["M"]),
    definition="Share of the questions that the judge commits itself on. Overall is effective "
    "times coverage.",
    formula="(questions - abstentions) / questions",
    example="30 questions, 6 abstentions: 80.0 %.",
)
TOKENS = Metric(
    "tokens_per_image",
    quotient("T", "ok"),
    quotient("T", "ok"),
    None,
    column("ok"),
    title="Tokens/image",
    unit="tokens",
    digits=0,
    better=0,
    definition="Mean length of the captions in o200k_base tokens. Failed captions are left out.",
    formula="caption tokens / captions",
    example="Captions of 90 and 110 tokens: 100.",
)
MEAN_DENSITY = Metric(
    "mean_density",
    quotient("d", "n"),
    quotient("ds", "os"),
    quotient("du", "ok"),
    column("n"),
    title="Mean dens.",
    unit="‰",
    digits=2,
    is_main=True,
    definition="Information a token, averaged over images: an image's right answers a "
    "question and a thousand tokens.",
    formula="mean over images of 1000 * right / (questions * tokens)",
    example="10 questions, 6 right, 120 tokens: 5.00 ‰ for that image.",
)
GLOBAL_DENSITY = Metric(
    "global_density",
    lambda s: 1000 * ratio(s["C"], s["W"]),
    lambda s: 1000 * ratio(s["C"], s["Ws"]),
    lambda s: 1000 * ratio(s["C"] + s["Xo"], s["W"]),
    column("W"),
    title="Global dens.",
    unit="‰",
    digits=2,
    definition="Information a token over all images together: long captions weigh more.",
    formula="1000 * sum of right / sum of (questions * tokens)",
    example="Images with 6 of 10 right in 120 tokens and 5 of 10 in 380: 11 of 5,000, 2.20 ‰.",
)
DENSITY_CV = Metric(
    "density_cv",
    lambda s: _density_cv(s, "d", "dd", "n"),
    lambda s: _density_cv(s, "ds", "dds", "os"),
    None,
    column("n"),
    title="Density CV",
    unit="",
    digits=3,
    better=-1,
    definition="How unevenly density is spread over images: population standard deviation "
    "over mean.",
    formula="sigma(density) / mean(density)",
    example="Densities of 4 and 6: sigma 1, mean 5, CV 0.200.",
)
METRICS: tuple[Metric, ...] = (
    OVERALL, EFFECTIVE, UNCERTAIN, COVERAGE, TOKENS, MEAN_DENSITY, GLOBAL_DENSITY, DENSITY_CV,
)  # fmt: skip


def tally(table: ProbeTable, replies: Replies) -> Tally:
    """Counts by cluster, from the probes and the caption of each (item, repeat)."""
    table = table.where(~table.skipped)
    return table.by_cluster(COLUMNS, columns_by_unit(table, replies), METRICS)


def columns_by_unit(table: ProbeTable, replies: Replies) -> dict[str, Array]:
    """The columns that the metrics are made of, each (n_units,).

    A caption of no tokens has density 0. A failed caption has density 0 in the strict value and
    is absent from the scored one, from token means and from global weights.
    """
    n = len(table.units)
    rows = [replies.get(unit) for unit in table.units]
    tokens = np.array([0 if row is None else row.tokens for row in rows], float)
    failed = [row is None or bool(row.failure) for row in rows]
    answered = 1.0 - np.array(failed, float)
    probes = table.where(~table.skipped)
    m = pool(probes.unit, np.ones(probes.n), n)
    c = pool(probes.unit, probes.correct, n)
    u = pool(probes.unit, probes.uncertain, n)
    x = pool(probes.unit, probes.unscored, n)
    present = (m > 0).astype(float)
    ok = answered * present
    os = ok * (m > x)
    t = tokens * ok
    d = 1000 * np.nan_to_num(ratio(c, m * t))
    ds = 1000 * np.nan_to_num(ratio(c, (m - x) * t))
    du = 1000 * np.nan_to_num(ratio(c + x, m * t))
    return {
        "M": m, "C": c, "U": u, "X": x, "Xo": x * ok, "n": present, "ok": ok, "os": os, "T": t,
        "W": m * t, "d": d, "dd": d * d, "Ws": (m - x) * t, "ds": ds * os, "dds": ds * ds * os,
        "du": du * ok,
    }  # fmt: skip


CONTROL_NOTES = {
    "blind": "control blind: the judge got no caption and had to choose; this is no score of a "
    "model",
    "swapped": "control swapped: each picture was read from another picture's caption; this is no "
    "score of a model",
}


def caption_notes(view: RunView, extra: Params) -> Iterator[str]:
    """How captions were read where that was not the published way, and how sure the judge was."""
    options = view.options
    control = str(options.get("control") or "")
    if control in CONTROL_NOTES:
        yield CONTROL_NOTES[control]
    several = int(options.get("questions_a_call") or 1)
    if several > 1:
        yield f"{several} questions in one judge call: not the protocol"
    if options.get("option_seed") is not None:
        yield f"options shuffled with seed {options['option_seed']}"
    if options.get("decide") == "logprob":
        yield "the judge's most probable letter counts, not the one that it wrote"
    missing = [v for v in view.verdicts.values() if v.reason == NO_CAPTION]
    if missing:
        images = len({v.id for v in missing})
        yield f"{len(missing)} questions skipped: no caption for {images} images"
    if "calibration" in extra:
        found = extra["calibration"]
        yield f"expected calibration error of the judge: {found['ece']:.3f} (n={found['n']})"


def calibration_extra(view: RunView) -> Extra:
    """The judge's calibration for `summary.json`; empty where no probabilities were stored."""
    answers = committed_answers(view.items, view.verdicts)
    if not answers:
        return {}
    found = calibration(*zip(*answers, strict=True))
    bins = [
        {"low": b.low, "high": b.high, "n": b.n, "confidence": b.confidence, "accuracy": b.accuracy}
        for b in found.bins
        if b.n
    ]
    return {"calibration": {"ece": found.ece, "n": sum(b["n"] for b in bins), "bins": bins}}


def committed_answers(items: Sequence[Item], verdicts: Verdicts) -> list[tuple[float, float]]:
    """The probability of each letter that the judge gave, 0 to 1, and whether it was right.

    Abstentions are left out, since an abstention is never right.
    """
    probes = {(item.id, probe.id): probe for item in items for probe in item.probes}
    return [
        (min(1.0, v.probabilities.get(str(v.verdict), 0.0)), float(v.correct is True))
        for v in verdicts.values()
        if v.status == "scored" and v.probabilities and not abstains(v, probes[v.id, v.probe_id])
    ]
