"""Judges that read the same replies."""

import json
import math
from dataclasses import replace

import pytest
from click.testing import CliRunner
from tests.worlds.benchmark_files import direct_folder, direct_row, reading_folder
from tests.worlds.rubric_world import SCENES, assessment, judge, listed, write_world

import snellen
from snellen.cli import cli
from snellen.errors import ComparisonError, UsageError
from snellen.judges.reliability import can_compare, compare_orders, study_judges
from snellen.tables.judges import abstentions_table, pairs_table, scores_table
from snellen.tables.writers import texts

CAPTIONS = {"a": "Two cups.", "b": "Nothing much."}


def always_b(messages):
    return "B"


def careful(messages):
    return "E" if "Nothing" in messages[-1]["content"] else "B"


def mumbling(messages):
    return "hm" if "Nothing" in messages[-1]["content"] else "B"


def yes(messages):
    return "[reason] so [judge] True"


def no(messages):
    return "[reason] so [judge] False"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return str(reading_folder(tmp_path_factory.mktemp("reading")))


def read(data, out, judge, captions=CAPTIONS, model="m", **words):
    return snellen.run(
        data, model=model, judge=judge, replies=captions, out=out, cache=False, reasks=0, **words
    )


@pytest.fixture(scope="module")
def pair(data, tmp_path_factory):
    """Two judges on one model: four questions, B, B on each image; the second abstains on one."""
    folder = tmp_path_factory.mktemp("pair")
    return [read(data, folder / f.__name__, f) for f in (always_b, careful)]


def test_scores_and_difference(pair):
    """The scores are the runs' own, the difference is the second judge's less the first's."""
    study = study_judges(pair)
    # The right answers are B and D on the first image, B and B on the second.
    assert study.scores == {"always_b": {"m": 3 / 4}, "careful": {"m": 1 / 4}}
    [found] = study.pairs
    assert found.order.mean_difference == pytest.approx(-2 / 4)


def test_agreement_over_probes(pair):
    """Agreement is by probe: two of four letters are alike, and kappa is 0 for a constant judge."""
    [found] = study_judges(pair).pairs
    assert (found.agreement.n, found.agreement.raw) == (4, 0.5)
    assert found.agreement.kappa == pytest.approx(0.0)
    assert (found.only_first_abstains, found.only_second_abstains, found.both_abstain) == (0, 2, 0)


def test_the_order_of_items_does_not_matter(pair):
    """Verdicts are paired by item and probe, whatever order the files have."""
    turned = replace(pair[1], items=pair[1].items[::-1])
    assert study_judges([pair[0], turned]) == study_judges(pair)


def test_unreadable_probes_are_left_out(data, tmp_path, pair):
    """What one judge could not decide counts as passed, and enters no agreement."""
    third = read(data, tmp_path / "mumbling", mumbling)
    [found] = study_judges([pair[0], third]).pairs
    assert (found.agreement.n, found.agreement.raw) == (2, 1.0)
    assert (found.only_first_passes, found.only_second_passes, found.both_pass) == (0, 2, 0)


def test_abstentions_by_category(pair):
    """Each judge's abstentions are shown over all probes and by category."""
    study = study_judges(pair)
    found = {(a.judge, a.label): (a.n, a.abstains, a.passes) for a in study.abstentions}
    assert found["careful", "all"] == (4, 0.5, 0.0)
    assert found["careful", "Action"] == (2, 0.5, 0.0)
    assert found["always_b", "Count"] == (2, 0.0, 0.0)
    assert study.dimension == "category"


def test_blank_replies_say_nothing_about_judges(data, tmp_path):
    """Probes that were settled without a judge are not counted as agreement."""
    captions = {"a": "Two cups.", "b": " "}
    runs = [read(data, tmp_path / f.__name__, f, captions) for f in (always_b, careful)]
    [found] = study_judges(runs).pairs
    assert found.agreement.n == 2


def test_other_replies_are_refused(data, tmp_path, pair):
    """Runs whose replies differ are refused, and the first difference is named."""
    other = read(data, tmp_path / "other", careful, {"a": "Two cups.", "b": "Else."})
    with pytest.raises(ComparisonError, match=r"reply of m to item b differs"):
        study_judges([pair[0], other])


def test_a_run_that_stopped_early_is_named(pair):
    """An item that a run never came to is no reply that differs."""
    kept = {key: row for key, row in pair[0].replies.items() if key[0] != "b"}
    torn = replace(pair[0], replies=kept)
    with pytest.raises(ComparisonError, match=r"item b has no reply in .*always_b yet"):
        study_judges([torn, pair[1]])


def test_other_items_are_refused(data, tmp_path, pair):
    """Runs over other items are refused, and an item is named."""
    fewer = read(data, tmp_path / "fewer", careful, limit=1)
    with pytest.raises(ComparisonError, match=r"item b is missing from .*fewer"):
        study_judges([pair[0], fewer])
    changed = replace(pair[1].spec, items={**pair[1].spec.items, "a": "other"})
    with pytest.raises(ComparisonError, match="item a has other content"):
        study_judges([pair[0], replace(pair[1], spec=changed)])


def test_one_judge_is_not_enough(data, tmp_path, pair):
    """One judge, or judges that share no model, cannot be compared."""
    assert can_compare(pair)
    assert not can_compare(pair[:1])
    with pytest.raises(UsageError, match="found 1 of the 2 judges"):
        study_judges(pair[:1])
    other = read(data, tmp_path / "n", careful, model="n")
    with pytest.raises(UsageError, match="0 models"):
        study_judges([pair[0], other])


def test_two_models(data, tmp_path, pair):
    """Order and tau are over the models that all judges read; the others are named."""
    words = {"a": "Nothing.", "b": "Two cups."}
    more = [
        read(data, tmp_path / f"{model}-{f.__name__}", f, words | extra, model=model)
        for f, model, extra in (
            (always_b, "n", {}),
            (careful, "n", {"a": "Nothing."}),
            (careful, "lone", {}),
        )
    ]
    study = study_judges([*pair, *more])
    assert study.models == ("m", "n")
    assert study.notes == ("left out, since not all judges read them: lone",)
    assert study.pairs[0].order.n_models == 2
    assert "lone" not in str(scores_table(study).rows)


def test_orders():
    """Tau and the order come from the scores of the models that both judges scored."""
    swapped = compare_orders({"a": 1, "b": 2, "c": 3}, {"a": 2, "b": 1, "c": 4, "d": 9})
    assert swapped.mean_difference == pytest.approx(1 / 3)
    assert swapped.tau == pytest.approx(1 / 3)
    assert not swapped.same_order


def test_ties_are_ties_in_any_order():
    """Equal scores are level with each other, whichever model is named first."""
    for names in ("ab", "ba"):
        level, apart = dict.fromkeys(names, 0.5), {m: {"a": 0.1, "b": 0.9}[m] for m in names}
        assert not compare_orders(level, apart).same_order
        assert compare_orders(level, level).same_order
        assert compare_orders(apart, apart).same_order


def test_level_models_share_their_rank_and_lower_may_be_better(pair):
    """Models with one score have one rank; a smaller share of abstentions ranks first."""
    study = study_judges(pair)
    scores = {"x": {"m": 0.5, "n": 0.5, "o": 0.2}, "y": {"m": math.nan, "n": 0.1, "o": 0.2}}
    made = replace(study, judges=("x", "y"), models=("m", "n", "o"), scores=scores)
    assert texts(scores_table(made)) == [
        ("m", "50.00", "1", "-", "-"),
        ("n", "50.00", "1", "10.00", "2"),
        ("o", "20.00", "3", "20.00", "1"),
    ]
    lower = scores_table(replace(made, lower_is_better=True))
    assert texts(lower)[0] == ("o", "20.00", "1", "20.00", "2")
    assert not study.lower_is_better
    assert study_judges(pair, metric="uncertain_ratio").lower_is_better


def test_no_run_disappears_behind_another_of_its_name(data, tmp_path, pair):
    """Runs of one judge are told apart by the part of their folders that differs."""
    runs = [
        read(data, tmp_path / setting / model, careful, model=model)
        for setting in ("cold", "warm")
        for model in "mn"
    ]
    study = study_judges(runs)
    assert study.judges == ("careful (cold)", "careful (warm)")
    assert study.models == ("m", "n")
    mixed = study_judges([pair[0], runs[0], runs[2]])
    assert mixed.judges == ("always_b", "careful (cold)", "careful (warm)")


def test_rubrics(tmp_path):
    """Under the rubric protocol kappa is over statements."""
    scenes = SCENES[:3]
    data = write_world(tmp_path / "data", scenes)
    replies = {s.name: s.caption for s in scenes}

    def strict(messages):
        return judge(messages[-1]["content"])

    def mild(messages):
        a, b = listed(messages[-1]["content"])
        return assessment([True] * len(a), [True] * len(b))

    runs = [
        snellen.run(str(data), model="m", judge=f, replies=replies, out=tmp_path / f.__name__)
        for f in (strict, mild)
    ]
    [found] = study_judges(runs).pairs
    # Three of twelve statements are false: n1's lid, n2's lake, n3's collar.
    assert (found.agreement.n, found.agreement.raw) == (12, 9 / 12)


def test_direct(tmp_path):
    """Under the direct protocol each question is a probe, and exact matches are left out."""
    data = direct_folder(
        tmp_path / "data", [direct_row(0, ["a.png"]), direct_row(1, ["b.png"], answer="5")]
    )
    runs = [
        snellen.run(
            str(data), model="m", judge=f, replies={"0": "4", "1": "six"}, exact_match=True,
            out=tmp_path / f.__name__,
        )
        for f in (yes, no)
    ]  # fmt: skip
    [found] = study_judges(runs).pairs
    assert (found.agreement.n, found.agreement.raw) == (1, 0.0)


def test_the_command(pair):
    """`snellen judges` prints scores, pairs and abstentions, as text or as JSON."""
    paths = [str(run.folder) for run in pair]
    shown = CliRunner().invoke(cli, ["judges", *paths])
    assert shown.exit_code == 0
    assert "always_b / careful" in shown.output
    assert "always_b: abstains %" in shown.output
    told = json.loads(CliRunner().invoke(cli, ["judges", *paths, "--json"]).output)
    assert told["pairs"][0]["agreement"]["raw"] == 0.5


def test_tables_hold_all(pair):
    """The tables hold one row a model, one a pair of judges, and one a label."""
    study = study_judges(pair)
    assert texts(scores_table(study)) == [("m", "75.00", "1", "25.00", "1")]
    [row] = texts(pairs_table(study))
    assert row[2:4] == ("-", "-"), "one model has no order"
    assert [row[0] for row in abstentions_table(study).rows] == ["all", "Action", "Count"]
