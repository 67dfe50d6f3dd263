"""The own-family test: its size and power by simulation, and its table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.worlds.benchmark_files import reading_folder

import snellen
from snellen.runs.folder import Run
from snellen.studies.neutrality import Cells, family_advantage
from snellen.tables.studies import neutrality_table
from snellen.tables.writers import texts

OWN = np.array([[True, False], [False, True], [False, False]])


def simulate(rng: np.random.Generator, advantage: float, *, n: int = 60) -> Cells:
    """Images of unequal difficulty and size; models and generators differ, families may matter."""
    image = rng.normal(0, 0.12, (n, 1, 1))
    shared = rng.normal(0, 0.06, (n, 1, 2))
    model = np.array([0.05, -0.05, 0.0]).reshape(1, 3, 1)
    generator = np.array([0.04, -0.04]).reshape(1, 1, 2)
    rates = np.clip(0.55 + image + shared + model + generator + advantage * OWN, 0, 1)
    asked = np.broadcast_to(rng.integers(5, 60, (n, 1, 2)), (n, 3, 2))
    return Cells(rng.binomial(asked, rates).astype(float), asked.astype(float))


def rejections(advantage: float, studies: int) -> float:
    rng = np.random.default_rng(11)
    found = [family_advantage(simulate(rng, advantage), OWN) for _ in range(studies)]
    return float(np.mean([f is not None and f.p_images < 0.05 for f in found]))


def test_the_test_keeps_its_size() -> None:
    """Without an own-family effect 5% of studies find one, within simulation error."""
    assert 0.02 <= rejections(0.0, 600) <= 0.08


def test_the_test_finds_an_effect_and_its_size() -> None:
    """Six points are found most of the time, and estimated without bias."""
    assert rejections(0.06, 200) > 0.8
    rng = np.random.default_rng(3)
    found = [family_advantage(simulate(rng, 0.06), OWN) for _ in range(200)]
    mean = np.mean([f.difference for f in found if f is not None])
    assert mean == pytest.approx(0.06, abs=0.005)


def test_better_models_and_harder_questions_are_no_advantage() -> None:
    """A table of main effects alone has an interaction of exactly zero."""
    rates = np.array([[0.7, 0.6], [0.5, 0.4], [0.6, 0.5]])
    cells = Cells(np.array([rates * 10] * 3), np.full((3, 3, 2), 10.0))
    found = family_advantage(cells, OWN)
    assert found is not None
    assert found.difference == pytest.approx(0.0)


@pytest.mark.parametrize("own", [np.zeros((3, 2), bool), np.array([[True, True]] * 3)])
def test_without_a_contrast_there_is_no_test(own: np.ndarray) -> None:
    """Where no model, or every model, is of a generator's family nothing can be told."""
    assert family_advantage(simulate(np.random.default_rng(0), 0.0), own) is None


def test_families_are_relabelled_only_where_there_are_enough_models() -> None:
    """Three models have six assignments, too few for a p value; eight have enough."""
    rng = np.random.default_rng(5)
    few = family_advantage(simulate(rng, 0.1), OWN)
    assert few is not None
    assert few.p_families is None
    own = np.array([[True, False], [True, False], [False, True], [False, True]] + [[False] * 2] * 4)
    rates = 0.5 + 0.1 * own + rng.normal(0, 0.005, (8, 2))
    many = family_advantage(Cells(np.array([rates * 50] * 4), np.full((4, 8, 2), 50.0)), own)
    assert many is not None
    assert many.p_families is not None
    assert many.p_families < 0.02


def named(run: Run, name: str, family: str) -> Run:
    return replace(
        run, spec=replace(run.spec, model=replace(run.spec.model, name=name, family=family))
    )


def test_the_table_marks_a_models_own_questions(tmp_path: Path) -> None:
    """Scores by generator, own ones starred, and the test's outcome in a note."""
    run = snellen.run(
        str(reading_folder(tmp_path / "bench")),
        judge=lambda _: "B",
        replies={"a": "x", "b": "x"},
        out=tmp_path / "run",
    )
    table = neutrality_table([named(run, "one", "G1"), named(run, "two", "other")])
    assert table is not None
    assert table.headings[2:4] == ("by g1 %", "by g2 %")
    assert texts(table)[0][2].endswith("*")
    assert not texts(table)[1][2].endswith("*")
    assert any("own-family advantage" in note for note in table.notes)
    plain = neutrality_table([named(run, "one", ""), named(run, "two", "")])
    assert plain is not None
    assert any("no test" in note for note in plain.notes)
