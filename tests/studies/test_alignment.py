"""Correlations of runs with outside ratings."""

import json
import math
from dataclasses import replace

import pytest
from click.testing import CliRunner
from scipy import stats as scipy_stats
from tests.fakes.server import FakeServer
from tests.worlds.rubric_world import SCENES, judge, write_world

import snellen
from snellen.cli import cli
from snellen.errors import ComparisonError, DataError, UsageError
from snellen.runs.folder import load_run
from snellen.runs.judge_errors import Position, Rate
from snellen.studies.alignment import (
    SCALAR,
    Alignment,
    align_runs,
    align_scores,
    correlate,
    golden_pairs,
    match_names,
    overlap_scores,
    read_ratings,
)
from snellen.tables.judges import position_table
from snellen.tables.studies import alignment_table
from snellen.tables.writers import texts

# Three captioners of the first three pictures: all said, half of it, and nearly nothing.
SAID = {
    "good": ["cups tray two", "tree lake bird", "dog collar"],
    "fair": ["cups tray two lid", "tree bird boat", "dog"],
    "poor": ["cups", "tree", " "],
}


def rule_bound(messages):
    return judge(messages[-1]["content"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("align")
    data = write_world(folder / "data", SCENES[:3])
    names = [scene.name for scene in SCENES[:3]]
    return [
        snellen.run(
            str(data), model=model, judge=rule_bound, out=folder / model,
            replies=dict(zip(names, said, strict=True)),
        )
        for model, said in SAID.items()
    ]  # fmt: skip


RATINGS = {"Good": 1200.0, "fair": 1100.0, "POOR": 1000.0, "unseen": 900.0}


@pytest.mark.parametrize("kind", ["pearson", "spearman", "kendall"])
def test_values_equal_those_of_scipy(kind):
    """Each coefficient and the Pearson interval equal what scipy gives."""
    x, y = [1.0, 2.5, 2.0, 4.0, 3.0, 6.0], [2.0, 1.0, 3.5, 3.0, 5.0, 7.0]
    ours = correlate(x, y, kind)
    if kind == "pearson":
        found = scipy_stats.pearsonr(x, y)
        interval = found.confidence_interval()
        assert ours.interval == pytest.approx((interval.low, interval.high))
    else:
        found = {"spearman": scipy_stats.spearmanr, "kendall": scipy_stats.kendalltau}[kind](x, y)
        low, high = ours.interval
        assert low < ours.value < high
    assert ours.value == pytest.approx(found.statistic)


def test_a_perfect_order_has_no_interval():
    """At a correlation of 1 there is no interval, and few models set a floor to p."""
    found = correlate([1, 2, 3, 4], [1, 4, 9, 16], "spearman")
    assert (found.value, found.interval) == (1.0, None)
    assert found.p == pytest.approx(2 / 24)


def test_no_p_value_is_written_as_zero():
    """What rounding would make 0.000 is told to be below a thousandth."""
    scores = {f"m{k}": float(k) for k in range(20)}
    row = align_scores("score", scores, {m: v + v % 2 for m, v in scores.items()})
    assert 0.0 < row.pearson.p < 0.0005
    told = alignment_table(Alignment("b", scores, {"score": scores}, (row,)))
    assert texts(told)[0][2] == "<0.001"
    place = dict.fromkeys("ABCD", 25)
    checked = position_table(Position({"A": 100, "B": 0, "C": 0, "D": 0}, place, 1e-9, Rate(1, 4)))
    assert "even choice over the places: p < 0.001" in checked.notes


def test_models_without_a_value_are_left_out():
    """A model without a score or without a rating does not enter."""
    scores = {"a": 1.0, "b": 2.0, "c": 3.0, "d": math.nan, "e": 9.0}
    row = align_scores("score", scores, {"a": 1.0, "b": 2.0, "c": 4.0, "d": 0.0})
    assert row.n == 3
    with pytest.raises(UsageError, match="2 models have both"):
        align_scores("score", {"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.0})


def test_all_metrics_are_aligned(runs):
    """Every metric gets a row, with the gate and without it, in the order of the protocol."""
    found = align_runs(runs, RATINGS)
    assert [row.metric for row in found.rows] == list(runs[0].summary.metrics)
    by_name = {row.metric: row for row in found.rows}
    assert by_name["score"].spearman.value == pytest.approx(1.0)
    titles = [cells[0] for cells in texts(alignment_table(found))]
    assert "Score (gated)" in titles
    assert "Score without the gate" in titles


def test_names_are_compared_without_case(runs):
    """Names match without case; what has no partner is named in the notes."""
    assert match_names(["good", "x"], RATINGS) == {"good": 1200.0}
    found = align_runs(runs, RATINGS)
    assert found.ratings == {"good": 1200.0, "fair": 1100.0, "poor": 1000.0}
    assert found.notes == ("rated, but without a run: unseen",)


def test_runs_that_were_measured_otherwise_are_named(runs):
    """A run under another prompt or with other options is told, as are ratings all alike."""
    other = replace(runs[1].spec, options={"one_a_call": True})
    found = align_runs([runs[0], replace(runs[1], spec=other), runs[2]], RATINGS)
    said = "fair was not measured like good: other option one-rubric-a-call"
    assert said in found.notes
    level = align_runs(runs, dict.fromkeys(["good", "fair", "poor"], 1000.0))
    assert "all ratings are equal: nothing can go with them" in level.notes
    assert all(math.isnan(row.pearson.value) for row in level.rows)


def test_wrong_names_are_told(runs):
    """With too few rated models the error names the unrated runs and the ratings without a run."""
    with pytest.raises(UsageError) as caught:
        align_runs(runs, {"good": 3.0, "faire": 2.0, "por": 1.0})
    assert "1 of the runs' models have a rating, 3 are needed" in caught.value.message
    assert "left out: fair, poor" in caught.value.hint
    assert "without a run: faire, por" in caught.value.hint


def test_a_metric_is_chosen(runs):
    """`metrics` chooses rows; an unknown name is refused with the known ones."""
    assert [r.metric for r in align_runs(runs, RATINGS, metrics=["gate_pass"]).rows] == [
        "gate_pass"
    ]
    with pytest.raises(UsageError, match="no metric gate") as caught:
        align_runs(runs, RATINGS, metrics=["gate"])
    assert "gate_pass" in caught.value.hint


def test_two_runs_of_a_model_are_refused(runs):
    """A model that comes twice would count twice."""
    with pytest.raises(UsageError, match="both of good"):
        align_runs([*runs, runs[0]], RATINGS)


def test_runs_of_two_benchmarks_are_refused(runs):
    """Scores of several benchmarks are not one scale."""
    other = replace(runs[1], spec=replace(runs[1].spec, benchmark="else"))
    with pytest.raises(UsageError, match="several benchmarks: mine, else"):
        align_runs([runs[0], other], RATINGS)


def test_runs_of_two_judges_are_refused(runs):
    """Scores by several judges are not one scale either."""
    judge = replace(runs[1].spec.judge, name="milder")
    other = replace(runs[1], spec=replace(runs[1].spec, judge=judge))
    with pytest.raises(UsageError, match="several judges: rule_bound, milder"):
        align_runs([runs[0], other], RATINGS)


def test_runs_over_other_items_are_refused(runs):
    """Scores over other pictures are not one scale either."""
    items = dict(list(runs[1].spec.items.items())[:2])
    other = replace(runs[1], spec=replace(runs[1].spec, items=items))
    with pytest.raises(ComparisonError, match="n3 is missing"):
        align_runs([runs[0], other], RATINGS)


def test_pairs_with_golden_captions(runs):
    """Blank replies are compared as empty texts; failed ones are left out."""
    poor = runs[2]
    assert [reply.strip() for reply, _ in golden_pairs(poor)] == ["cups", "tree", ""]
    replies = dict(poor.replies)
    replies["n1", 0] = replace(replies["n1", 0], reply=None, status="failed", failure="timeout")
    assert len(golden_pairs(replace(poor, replies=replies))) == 2


def test_overlap_is_in_the_same_table(runs):
    """Overlap with golden captions is aligned beside the protocol's metrics."""
    more = overlap_scores(runs, ["bleu", "rouge_l", "meteor", "cider"])
    assert more["rouge_l"]["good"] > 0
    found = align_runs(runs, RATINGS, more=more)
    # BLEU is 0 for all: nothing varies, so its row has no coefficient.
    by_name = {row.metric: row for row in found.rows}
    assert set(by_name) == {*runs[0].summary.metrics, *more}
    assert math.isnan(by_name["bleu"].pearson.value) == (len(set(more["bleu"].values())) == 1)
    assert not math.isnan(by_name["rouge_l"].pearson.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.csv", "model,elo\na,1200\nb,1100.5\n"),
        ("r.csv", "Rating,Model\n1200,a\n1100.5,b\n"),
        ("r.csv", "a,1200\nb,1100.5\n"),
        ("r.csv", "model;elo\na;1200\nb;1100.5\n"),
        ("r.csv", 'model,notes,elo\r\na,"two\nlines",1200\r\nb,"and\u2028one",1100.5\r\n'),
        ("r.tsv", "model\trating\na\t1200\nb\t1100.5\n"),
        ("r.json", '{"a": 1200, "b": 1100.5}'),
        ("r.json", '[{"name": "a", "score": 1200}, {"Model": "b", "rating": 1100.5}]'),
    ],
)
def test_ratings_files(tmp_path, name, text):
    """CSV with and without a heading, and both forms of JSON, give the same ratings."""
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert read_ratings(file) == {"a": 1200.0, "b": 1100.5}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty"),
        ("model,elo\na,high\n", "'high' is no number"),
        ("a,1\na,2\n", "'a' stands twice"),
        ("a\n", "has 1 columns"),
        ("Model-A,1\nmodel-a,2\n", "'model-a' stands twice"),
        ('{"a": 1, "a": 2}', "'a' stands twice"),
        ('{"a": true}', "True is no number"),
        ("[1, 2]", "row 1: lacks a model or a rating"),
        ("[[]]", "row 1: lacks a model or a rating"),
        ('[{"model": "a"}]', "lacks a model or a rating"),
        ('{"a": null}', "None is no number"),
        ('{"a": ', "is no JSON"),
    ],
)
def test_wrong_ratings_files(tmp_path, text, told):
    """A wrong file is refused with what is wrong, and its row."""
    file = tmp_path / "r.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=told):
        read_ratings(file)


def test_the_command_with_a_scalar_judge(runs, tmp_path):
    """`snellen align --scalar` adds the one-to-ten judge's row; a second start calls nobody."""
    file = tmp_path / "elo.json"
    file.write_text(json.dumps(RATINGS), encoding="utf-8")

    words = {"tray two lid": "9", "cups tray two": "8", "lake": "**9**/10", "boat": "6",
             "collar": "7", "dog": "5", "": "2"}  # fmt: skip
    with FakeServer(words) as server:
        command = ["align", *(str(run.folder) for run in runs), "--external", str(file),
                   "--no-overlap", "--scalar", "--cache", "--judge", "fake", "--judge-url",
                   server.url]  # fmt: skip
        shown = CliRunner().invoke(cli, command)
        assert shown.exit_code == 0, shown.output
        asked = server.calls["/v1/chat/completions"]
        told = json.loads(CliRunner().invoke(cli, [*command, "--json"]).output)
        assert server.calls["/v1/chat/completions"] == asked
    assert "One-to-ten judge" in shown.output
    # The blank reply of `poor` costs no call and gets the lowest rating.
    assert asked == 8
    assert told["scores"][SCALAR] == pytest.approx(
        {"good": (8 + 9 + 7) / 3, "fair": (9 + 6 + 5) / 3, "poor": (2 + 2 + 1) / 3}
    )
    assert load_run(runs[0].folder).name == "good"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--judge", "j", "--judge-url", "http://127.0.0.1:9/v1"], "ratings only"),
        (["--scalar", "--judge", "j", "--judge-prompt", "p.txt"], "prompt of its own"),
    ],
)
def test_words_without_effect_are_refused(runs, tmp_path, words, told):
    """A judge without `--scalar`, and a prompt for the one-to-ten judge, are misuse."""
    file = tmp_path / "elo.csv"
    file.write_text("good,3\nfair,2\npoor,1\n", encoding="utf-8")
    argv = ["align", *(str(run.folder) for run in runs), "--external", str(file), *words]
    with pytest.raises(UsageError, match=told):
        cli.main(argv, standalone_mode=False)


def test_the_figure(runs, tmp_path):
    """With --figures the chosen metrics are drawn against the ratings."""
    file = tmp_path / "elo.json"
    file.write_text(json.dumps(RATINGS), encoding="utf-8")
    folders, figures = [str(run.folder) for run in runs], str(tmp_path / "f")
    command = ["align", *folders, "--external", str(file), "--no-overlap"]
    command += ["--metric", "gate_pass", "--figures", figures]
    shown = CliRunner().invoke(cli, command)
    assert shown.exit_code == 0, shown.output
    assert sorted(f.name for f in (tmp_path / "f").iterdir()) == [
        f"alignment-gate_pass.{kind}" for kind in ("pdf", "png", "svg")
    ]
