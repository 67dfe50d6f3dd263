"""Length bias, rubric coverage, consistency, the gap, and proposers."""

import json
import math

import pytest
from click.testing import CliRunner
from scipy import stats as scipy_stats
from tests.worlds.benchmark_files import rubric_row
from tests.worlds.rubric_world import NATURAL, Scene, judge, picture, write_world

import snellen
from snellen.cli import cli
from snellen.errors import ComparisonError, UsageError
from snellen.studies.rubric import (
    consistency,
    gap_slope,
    length_bias,
    metric_points,
    rubric_coverage,
)
from snellen.tables.rubric import (
    coverage_table,
    gates_table,
    models_table,
    proposers_table,
    study_tables,
)
from snellen.tables.writers import texts

WORDS = ("one", "two", "six", "ten", "red", "blue")
SCENES = tuple(
    Scene(f"s{k}", NATURAL, None, (f"mention {WORDS[k]}",), tuple(f"mention {w}" for w in WORDS))
    for k in range(6)
)
# How many of the words a model says of each picture: the score is that many sixths, if the
# picture's own word is among them.
MODELS = {"high": (6, 5, 6, 5, 6, 6), "middle": (4, 2, 5, 4, 5, 6), "low": (1, 2, 3, 3, 1, 2)}


def rule_bound(messages):
    return judge(messages[-1]["content"])


def run_models(folder, data, **words):
    return [
        snellen.run(
            str(data), model=model, judge=rule_bound, out=folder / model, cache=False,
            replies={f"s{k}": " ".join(WORDS[:n]) for k, n in enumerate(counts)}, **words,
        )
        for model, counts in MODELS.items()
    ]  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    return run_models(folder, write_world(folder / "data", SCENES))


def test_length_bias_equals_scipy(runs):
    """r and p of score and words over the images equal those of scipy; n counts the images."""
    counts = MODELS["middle"]
    scores = [n / 6 if n > k else 0.0 for k, n in enumerate(counts)]
    wanted = scipy_stats.pearsonr(counts, scores)
    found = length_bias(runs[1])
    assert (found.model, found.n, found.mean_words) == ("middle", 6, pytest.approx(26 / 6))
    assert (found.r, found.p) == pytest.approx((wanted.statistic, wanted.pvalue))


def test_images_of_unknown_score_have_no_length(tmp_path):
    """An image whose score cannot be told does not enter the correlation."""
    data = write_world(tmp_path / "data", SCENES)

    def moody(messages):
        text = messages[-1]["content"]
        return "hm" if "mention blue\n\n[Group B" in text else judge(text)

    run = snellen.run(
        str(data), model="m", judge=moody, out=tmp_path / "run", cache=False, reasks=0,
        replies={f"s{k}": " ".join(WORDS[: k + 1]) for k in range(6)},
    )  # fmt: skip
    assert length_bias(run).n == 5


def test_coverage_of_all_is_the_score(runs):
    """With every rubric kept nothing scatters and nothing shifts."""
    [point] = rubric_coverage(runs, shares=(1.0,), draws=3)
    assert set(point.score_sd.values()) == {0.0}
    assert all(v == pytest.approx(0.0) for v in point.bias.values())


def test_coverage_scatters_more_with_fewer(runs):
    """The fewer rubrics are kept, the more scores scatter; draws are shared and repeatable."""
    few, many = rubric_coverage(runs, shares=(0.2, 0.8), draws=20, seed=1)
    assert sum(few.score_sd.values()) > sum(many.score_sd.values()) > 0
    assert rubric_coverage(runs, shares=(0.2,), draws=20, seed=1) == (few,)
    assert rubric_coverage(runs, shares=(0.2,), draws=20, seed=2) != (few,)


def test_coverage_by_hand(tmp_path):
    """Of one image with two rubrics a stream, half is kept: the score is 0 or 1 at random."""
    scene = Scene("s0", NATURAL, None, ("mention one", "mention two"), ("mention six", "never ten"))
    data = write_world(tmp_path / "data", (scene,))
    run = snellen.run(
        str(data), model="m", judge=rule_bound, out=tmp_path / "run", replies={"s0": "one two"}
    )
    # Both gates are open whichever is kept; one Easy-Wrong is true, so the score is 0 or 1.
    [point] = rubric_coverage([run], shares=(0.5,), draws=200)
    assert point.bias["m"] == pytest.approx(0.0, abs=0.15)
    assert point.score_sd["m"] == pytest.approx(0.5, abs=0.05)


def test_a_stream_is_never_emptied(tmp_path):
    """The only Must-Right statement of an image is always kept, so that its gate stays shut."""
    scene = Scene("s0", NATURAL, None, ("mention six",), ("mention one", "mention two"))
    data = write_world(tmp_path / "data", (scene,))
    run = snellen.run(
        str(data), model="m", judge=rule_bound, out=tmp_path / "run", replies={"s0": "one two"}
    )
    [point] = rubric_coverage([run], shares=(0.2,), draws=5)
    assert (point.bias["m"], point.score_sd["m"]) == (0.0, 0.0)


def test_ranks_scatter_among_near_equals(runs):
    """Ranks have a spread too, 0 where a model is always first."""
    [point] = rubric_coverage(runs, shares=(0.2,), draws=20)
    assert point.rank_sd["high"] <= point.rank_sd["low"] + 1
    assert set(point.rank_sd) == set(MODELS)


def test_coverage_needs_all_statements(tmp_path, runs):
    """A run that skipped statements, or is over other items, is refused."""
    data = write_world(tmp_path / "data", SCENES)
    first_only = run_models(tmp_path / "gate", data, gate_first=True)
    with pytest.raises(UsageError, match="--gate-first"):
        rubric_coverage(first_only)
    fewer = run_models(tmp_path / "fewer", data, limit=3)
    with pytest.raises(ComparisonError):
        rubric_coverage([runs[0], fewer[1]])


def test_points_over_models(runs):
    """Points are the runs' metrics; lines through them are least squares."""
    points = metric_points(runs, "gate_pass", "easy_wrong_acc")
    wanted = [
        (sum(n > k for k, n in enumerate(counts)) / 6, sum(counts) / 36)
        for counts in MODELS.values()
    ]
    assert len(points) == 3
    assert all(p == pytest.approx(w) for p, w in zip(points, wanted, strict=True))
    x, y = zip(*wanted, strict=True)
    assert consistency(points).r_squared == pytest.approx(scipy_stats.pearsonr(x, y).statistic ** 2)
    line = gap_slope([(0.1, -0.3), (0.5, -0.2), (0.9, -0.05)])
    assert line.slope == pytest.approx(0.3125)
    assert math.isfinite(line.low)


def test_proposers(tmp_path):
    """Statements by proposer are scored apart; those of the model's own family are marked."""
    data = write_world(tmp_path / "data", SCENES[:2])
    rows = []
    for k in range(2):
        (data / f"s{k}.png").write_bytes(picture(k))
        rows.append(
            rubric_row(
                f"s{k}", f"s{k}.png",
                must_right=[{"text": "mention one", "proposer": "Alpha-2"}],
                easy_wrong=[{"text": "mention two", "proposer": "Beta"},
                            {"text": "mention six", "proposer": "Beta"}],
            )
        )  # fmt: skip
    (data / "rubrics.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    run = snellen.run(
        str(data), model="alpha", judge=rule_bound, out=tmp_path / "run",
        replies={"s0": "one two", "s1": "one six"},
    )  # fmt: skip
    table = proposers_table([run])
    assert table.headings == ("Model", "Alpha-2", "Beta")
    assert texts(table) == [("alpha", "100.0 *", "50.0")]


def test_tables(runs):
    """Runs of three models allow all tables but the proposers'; one run allows two."""
    titles = [table.title for table in study_tables(runs)]
    assert titles == ["Shut gates by domain", "Length bias", "Rubric coverage", "Across models"]
    assert [t.title for t in study_tables(runs[:1])] == titles[:2]
    assert len(coverage_table(rubric_coverage(runs, draws=2)).rows) == 4
    # The gate of picture k is open where more than k words are said.
    low = next(row for row in texts(gates_table(runs)) if row[0] == "low")
    shut = sum(n <= k for k, n in enumerate(MODELS["low"]))
    assert low[1:3] == (f"{100 * shut / 6:.0f}", "100")


def test_models_that_are_all_alike_have_no_slope(runs):
    """Where nothing differs between models, what holds across them is unknown, and no `nan`."""
    assert [row[1] for row in texts(models_table([runs[0]] * 3))] == ["-", "-"]


def test_the_command(runs):
    """`snellen show --studies` prints the studies after the leaderboard."""
    shown = CliRunner().invoke(cli, ["show", *(str(r.folder) for r in runs), "--studies"])
    assert shown.exit_code == 0, shown.output
    assert shown.output.index("Rubric coverage") > shown.output.index("judge rule_bound")


def test_the_coverage_figure(runs, tmp_path):
    """With --figures the coverage curve is drawn in three formats."""
    words = ["show", *(str(r.folder) for r in runs), "--studies", "--figures", str(tmp_path)]
    shown = CliRunner().invoke(cli, words)
    assert shown.exit_code == 0, shown.output
    assert sorted(f.name for f in tmp_path.iterdir()) == [
        "coverage.pdf",
        "coverage.png",
        "coverage.svg",
    ]


def test_runs_over_other_items_have_no_coverage(runs, tmp_path):
    """Where runs are not over the same items the table is left out, and the others are there."""
    other = write_world(tmp_path / "data", SCENES[:3])
    fewer = snellen.run(
        str(other), model="few", judge=rule_bound, out=tmp_path / "run",
        replies={f"s{k}": "one" for k in range(3)},
    )  # fmt: skip
    titles = [table.title for table in study_tables([*runs, fewer])]
    assert titles == ["Shut gates by domain", "Length bias", "Across models"]
