"""Plans: what a pilot says of further images, and what is assumed without one."""

from __future__ import annotations

import math

import pytest
from tests.worlds.compared_runs import bundled, simulated

from snellen.errors import UsageError
from snellen.readers import load_benchmark
from snellen.stats.simulation import Captioner, simulate_rivals
from snellen.studies.planning import assumed_pilot, in_a_sentence, pilot_of, plan


def pilot_runs(n_images: int) -> list:
    """Two captioners that differ by some points, on the same pictures."""
    captioners = [Captioner(mention=0.75), Captioner(mention=0.8)]
    rivals = simulate_rivals(n_images, captioners, seed=3)
    return [simulated(*rival, name=f"m{k}") for k, rival in enumerate(rivals)]


def test_a_pilot_knows_how_much_questions_of_an_image_go_together() -> None:
    """The correlation within an image is near the 0.05 that the captioner was made with."""
    found = pilot_of(pilot_runs(150)[0], metric="coverage")
    assert 0.02 < found.icc < 0.09
    assert found.design == pytest.approx(1.0 + (found.probes - 1.0) * found.icc)
    assert found.deviation == pytest.approx(
        math.sqrt(found.rate * (1 - found.rate) * found.design / found.probes), rel=0.02
    )


def test_two_runs_tell_how_much_pairing_gains() -> None:
    """With a second run the spread of the difference is measured, not assumed."""
    first, second = pilot_runs(80)
    alone, both = pilot_of(first), pilot_of(first, second)
    assert "assumed" in alone.source
    assert "assumed" not in both.source
    assert both.paired < alone.deviation * math.sqrt(2.0)


def test_more_images_show_smaller_differences_by_the_square_root() -> None:
    """Four times the images halve the interval and the detectable difference, nearly."""
    found = plan(assumed_pilot(load_benchmark("mini-reading")), images=(100, 400))
    rows = {row.images: row for row in found.reach}
    assert rows[100].halfwidth / rows[400].halfwidth == pytest.approx(2.0, rel=0.02)
    assert rows[100].detectable / rows[400].detectable == pytest.approx(2.0, rel=0.02)


def test_the_number_for_a_wanted_difference_is_a_row_of_the_plan() -> None:
    """A wanted difference gets its number of images, whose detectable difference it is."""
    found = plan(assumed_pilot(load_benchmark("mini-direct")), difference=0.05)
    assert found.needed is not None
    row = next(row for row in found.reach if row.images == found.needed)
    assert row.detectable == pytest.approx(0.05, rel=0.02)
    assert f"needs {found.needed:,} images" in in_a_sentence(found)


def test_more_questions_of_the_same_images_gain_little_where_they_go_together() -> None:
    """With a high correlation twice the questions are worth less than twice the images."""
    worth = {
        one.change: one
        for one in plan(assumed_pilot(load_benchmark("mini-reading"), icc=0.3)).worth
    }
    assert worth["twice the images"].error == pytest.approx(math.sqrt(0.5))
    assert 0.9 < worth["twice the questions an image"].error < 1.0
    assert worth["half the questions an image"].error > 1.0


def test_what_is_no_rate_is_refused_by_name() -> None:
    """Densities have no such plan, and the rates are named."""
    with pytest.raises(UsageError, match="tokens_per_image") as refused:
        pilot_of(bundled("terse"), metric="tokens_per_image")
    assert "overall_acc" in refused.value.hint
