"""What questions about captions add up to: accuracy, coverage, and density by caption length.

Source: CapProbe (arXiv 2608.11074), section 4, tables 2 and 3.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from snellen.metrics import Array, Metric, ProbeTable, Sums, Tally, column, pool, quotient, ratio
from snellen.records import ReplyRow

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


METRICS: tuple[Metric, ...] = (
    Metric(
        "overall_acc",
        quotient("C", "M"),
        lambda s: ratio(s["C"], s["M"] - s["X"]),
        lambda s: ratio(s["C"] + s["X"], s["M"]),
        column("M"),
        title="Overall",
        is_main=True,
    ),
    Metric(
        "effective_acc",
        lambda s: ratio(s["C"], s["M"] - s["U"]),
        lambda s: ratio(s["C"], s["M"] - s["X"] - s["U"]),
        lambda s: ratio(s["C"] + s["X"], s["M"] - s["U"]),
        lambda s: s["M"] - s["U"],
        title="Effective",
        is_main=True,
    ),
    Metric(
        "uncertain_ratio",
        quotient("U", "M"),
        lambda s: ratio(s["U"], s["M"] - s["X"]),
        quotient("U", "M"),
        column("M"),
        title="Uncertain",
        better=-1,
    ),
    Metric(
        "coverage",
        lambda s: ratio(s["M"] - s["U"], s["M"]),
        lambda s: ratio(s["M"] - s["X"] - s["U"], s["M"] - s["X"]),
        lambda s: ratio(s["M"] - s["U"], s["M"]),
        column("M"),
        title="Coverage",
        is_main=True,
        lower=lambda s: ratio(s["M"] - s["U"] - s["X"], s["M"]),
    ),
    Metric(
        "tokens_per_image",
        quotient("T", "ok"),
        quotient("T", "ok"),
        None,
        column("ok"),
        title="Tokens/image",
        unit="tokens",
        digits=0,
        better=0,
    ),
    Metric(
        "mean_density",
        quotient("d", "n"),
        quotient("ds", "os"),
        quotient("du", "ok"),
        column("n"),
        title="Mean dens.",
        unit="‰",
        digits=2,
        is_main=True,
    ),
    Metric(
        "global_density",
        lambda s: 1000 * ratio(s["C"], s["W"]),
        lambda s: 1000 * ratio(s["C"], s["Ws"]),
        lambda s: 1000 * ratio(s["C"] + s["Xo"], s["W"]),
        column("W"),
        title="Global dens.",
        unit="‰",
        digits=2,
    ),
    Metric(
        "density_cv",
        lambda s: _density_cv(s, "d", "dd", "n"),
        lambda s: _density_cv(s, "ds", "dds", "os"),
        None,
        column("n"),
        title="Density CV",
        unit="",
        digits=3,
        better=-1,
    ),
)


def tally(table: ProbeTable, replies: Mapping[tuple[str, int], ReplyRow]) -> Tally:
    """Counts by cluster, from the probes and the caption of each (item, repeat)."""
    table = table.where(~table.skipped)
    return table.by_cluster(COLUMNS, columns_by_unit(table, replies), METRICS)


def columns_by_unit(
    table: ProbeTable, replies: Mapping[tuple[str, int], ReplyRow]
) -> dict[str, Array]:
    """The columns that the metrics are made of, each (n_units,).

    A caption of no tokens has density 0. A failed caption has density 0 in the strict value and
    is absent from the scored one, from token means and from global weights.
    """
    n = len(table.units)
    tokens, answered = _captions(table, replies)
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


def _captions(
    table: ProbeTable, replies: Mapping[tuple[str, int], ReplyRow]
) -> tuple[Array, Array]:
    """Caption tokens, and 1 where there is a caption, else 0: both (n_units,)."""
    rows = [replies.get(unit) for unit in table.units]
    tokens = np.array([0 if row is None else row.tokens for row in rows], float)
    failed = [row is None or row.status.startswith("failed:") for row in rows]
    return tokens, 1.0 - np.array(failed, float)
