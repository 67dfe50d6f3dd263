"""The published tables of PerceptionRubrics, recomputed by the package's own formulas."""

import json
from pathlib import Path

import numpy as np
import pytest

from snellen.judges.reliability import compare_orders
from snellen.protocols.gate_tally import ATOMIC, GAP, SCORE
from snellen.studies.alignment import Alignment, align_scores
from snellen.studies.rubric import consistency, gap_slope
from snellen.tables.studies import alignment_table
from snellen.tables.writers import texts

PUBLISHED = json.loads(
    (Path(__file__).parents[1] / "data" / "published_rubrics.json").read_text(encoding="utf-8")
)
MODELS = {row["model"]: row for row in PUBLISHED["models"]}
N_MUST, N_EASY = PUBLISHED["n_must_right"], PUBLISHED["n_easy_wrong"]


def sums_of(row):
    """The column sums that a printed row stands for, in rubrics and images."""
    n = PUBLISHED["n_images"]
    right = (row["must_right_item"] * N_MUST + row["easy_wrong_item"] * N_EASY) / 100
    return {
        "G": np.float64(row["gate_pass"] / 100 * n),
        "n": np.float64(n),
        "C": np.float64(right),
        "P": np.float64(PUBLISHED["n_rubrics"]),
    }


@pytest.mark.parametrize("model", list(MODELS))
def test_overall_is_the_mean_over_images(model):
    """The overall score follows from the domain columns and the numbers of images within 0.11."""
    row, images = MODELS[model], PUBLISHED["images_per_domain"]
    sums = {
        "S": np.float64(sum(row[label] * n for label, n in images.items())),
        "n": np.float64(sum(images.values())),
    }
    assert float(SCORE.value(sums)) == pytest.approx(row["overall"], abs=0.11)


@pytest.mark.parametrize("model", list(PUBLISHED["reliability_gap_printed"]))
def test_atomic_accuracy_and_gap(model):
    """Atomic accuracy pools both item columns; gate pass less it is the printed gap within 0.1."""
    row, sums = MODELS[model], sums_of(MODELS[model])
    printed = PUBLISHED["reliability_gap_printed"][model]
    assert 100 * float(GAP.value(sums)) == pytest.approx(printed, abs=0.1)
    implied = row["gate_pass"] - printed
    assert 100 * float(ATOMIC.value(sums)) == pytest.approx(implied, abs=0.1)


def alignment_row():
    ratings = PUBLISHED["human_alignment"]["vision_arena_elo_read_off_figure"]
    scores = {model: MODELS[model]["overall"] for model in ratings}
    return align_scores("score", scores, ratings), ratings, scores


def test_alignment_with_people():
    """Five models against arena ratings: Pearson 0.9155, Spearman 1, as published."""
    row, _, _ = alignment_row()
    assert row.n == 5
    assert row.pearson.value == pytest.approx(0.9155, abs=5e-5)
    assert row.spearman.value == pytest.approx(1.0)
    assert row.kendall.value == pytest.approx(1.0)
    # The strongest that five models can show: two of 120 orders are as extreme.
    assert row.spearman.p == pytest.approx(2 / 120)


def test_the_wide_interval_is_printed():
    """The table of five models shows that r = 0.916 leaves 0.17 to 0.99."""
    row, ratings, scores = alignment_row()
    table = alignment_table(Alignment("perception_rubrics", ratings, {"score": scores}, (row,)))
    [cells] = texts(table)
    assert cells[1] == "0.916 [0.173, 0.994]"
    assert cells[3:5] == ("1.000", "0.017")


def test_judge_stability():
    """The second judge is 5.97 points milder in the mean and leaves the order as it is."""
    first, second = PUBLISHED["judge_stability"].values()
    order = compare_orders(first, second)
    assert order.mean_difference == pytest.approx(5.97, abs=0.005)
    assert (order.same_order, order.tau, order.n_models) == (True, 1.0, 3)


def test_consistency_of_both_streams():
    """Gate pass explains 0.988 of the variance of Easy-Wrong accuracy over the six models."""
    six = (
        "Gemini-3-Pro", "Qwen3.6-Plus", "Kimi-K2.6", "MiMo-V2.5", "Qwen3-VL-235B-A22B-Thinking",
        "Qwen3-VL-8B-Thinking",
    )  # fmt: skip
    found = consistency([(MODELS[m]["gate_pass"], MODELS[m]["easy_wrong_item"]) for m in six])
    assert found.n == 6
    assert found.r_squared == pytest.approx(0.988, abs=5e-4)


def test_the_gap_closes_with_ability():
    """Over all models the gap rises with the score, and the interval excludes no slope."""
    points = [(m["overall"] / 100, float(GAP.value(sums_of(m)))) for m in MODELS.values()]
    line = gap_slope(points)
    assert line.n == 25
    assert 0 < line.low < line.slope < line.high
