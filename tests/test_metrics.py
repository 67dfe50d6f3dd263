"""The table of probes, and tallies by cluster: what is counted, and how far a metric can reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from snellen.metrics import (
    Metric,
    ProbeTable,
    Tally,
    column,
    pool,
    probe_table,
    quotient,
    ratio,
    reach,
)
from snellen.records import Item, Probe, Verdict

RIGHT = Metric("right", quotient("right", "all"), None, None, column("all"))
TOKENS = Metric("tokens", column("all"), None, None, column("all"), unit="tokens", digits=0)
GAP = Metric("gap", column("right"), None, None, column("all"), unit="points")


def item(name: str, *, cluster: str = "", **groups: tuple[str, ...]) -> Item:
    """An item of one probe."""
    probe = Probe("p", "?", "true", groups={"kind": f"kind of {name}"})
    return Item(name, (), (probe,), cluster=cluster, groups=groups)


def table_of(*items: Item, correct: Mapping[str, bool]) -> ProbeTable:
    """The probes of items of which some are scored."""
    verdicts = {
        (name, 0, "p"): Verdict(name, "p", is_right, is_right, "scored")
        for name, is_right in correct.items()
    }
    return probe_table(items, verdicts)


def tally_of(table: ProbeTable) -> Tally:
    """Right ones and all, by cluster."""
    n = len(table.units)
    right, every = pool(table.unit, table.correct, n), pool(table.unit, np.ones(table.n), n)
    return table.by_cluster(("right", "all"), {"right": right, "all": every}, (RIGHT,))


def test_no_metric_reaches_further_than_its_unit_allows() -> None:
    """Rates lie from 0 to 1, differences from -1 to 1, and what is counted has no upper end."""
    low, high = reach([RIGHT, GAP, TOKENS])
    assert low.tolist() == [0.0, -1.0, 0.0]
    assert high.tolist() == [1.0, 1.0, np.inf]


def test_items_of_one_cluster_are_one_row() -> None:
    """Two questions on one picture add up; an item without a cluster is its own."""
    items = item("a", cluster="x"), item("b", cluster="x"), item("c")
    tally = tally_of(table_of(*items, correct={"a": True, "b": False, "c": True}))
    assert tally.clusters == ("c", "x")
    assert tally.counts.tolist() == [[1, 1], [1, 2]]


def test_a_cluster_without_probes_is_no_row() -> None:
    """A part of the probes is a tally of the clusters that have some of them."""
    table = table_of(item("a"), item("b"), correct={"a": True, "b": True})
    tally = tally_of(table.where(table.labels["kind"] == "kind of b"))
    assert (tally.clusters, tally.counts.tolist()) == (("b",), [[1, 1]])


def test_a_probe_without_a_verdict_is_unscored() -> None:
    """It is neither right nor left out."""
    table = table_of(item("a"), item("b"), correct={"a": True})
    assert table.unscored.tolist() == [False, True]
    assert tally_of(table).counts.tolist() == [[1, 1], [0, 1]]


def test_only_dimensions_of_one_label_an_item_are_labels_of_probes() -> None:
    """An item with two labels has no single one."""
    items = item("a", l1=("x",), l2=("u", "v")), item("b", l1=("y",), l2=("u",))
    labels = table_of(*items, correct={}).labels
    assert labels.keys() == {"kind", "l1"}
    assert labels["l1"].tolist() == ["x", "y"]


def test_a_metric_says_how_it_is_printed() -> None:
    """The heading holds the unit, and the scale turns a value into the printed number."""
    rate = Metric("acc", column("right"), None, None, column("all"), title="Accuracy")
    assert (rate.heading, rate.scale) == ("Accuracy %", 100)
    assert (GAP.heading, GAP.scale) == ("gap, points", 100)
    assert (TOKENS.heading, TOKENS.scale) == ("tokens", 1)


def test_a_difference_gets_its_limits_from_its_parts() -> None:
    """A gap of rates that all images fulfil has an interval; without its parts it has none."""
    all_of = Metric("all_of", quotient("all", "all"), None, None, column("all"))
    gap = replace(GAP, value=lambda s: ratio(s["right"] - s["all"], s["all"]))
    with_parts = replace(gap, parts=("right", "all_of"))
    counts = np.ones((20, 2))
    names = tuple(f"image{k}" for k in range(20))
    found = Tally(names, ("right", "all"), counts, (RIGHT, all_of, with_parts)).intervals()
    assert found.low[2] == pytest.approx(found.low[0] - 1.0)
    alone = Tally(names, ("right", "all"), counts, (RIGHT, all_of, gap)).intervals()
    assert np.isnan(alone.low[2])


def test_the_order_of_items_does_not_move_an_interval() -> None:
    """Resamples go by the names of clusters, whatever the order of the data."""
    rng = np.random.default_rng(1)
    names = [f"image{k}" for k in range(30)]
    right = {name: bool(rng.random() < 0.7) for name in names}
    ends = []
    for order in (names, names[::-1]):
        tally = tally_of(table_of(*map(item, order), correct=right))
        found = tally.intervals()
        ends.append((found.low.tolist(), found.high.tolist()))
    assert ends[0] == ends[1]
