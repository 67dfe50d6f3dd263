"""Comparisons: planted differences, equals, refusals by name, what lifts them, items in common."""

import asyncio
import inspect
from dataclasses import replace

import numpy as np
import pytest
from tests.worlds.compared_runs import (
    PROMPTS,
    a_run,
    bundled,
    mini,
    prompt,
    reading_items,
    simulated,
    varied,
    write_run,
)

import snellen
from snellen.comparisons.comparable import ACROSS
from snellen.comparisons.comparing import compare
from snellen.comparisons.gates import Gate, gate_as_good, gate_worse
from snellen.comparisons.pairing import ProbeKey
from snellen.errors import ComparisonError, UsageError
from snellen.protocols import PROTOCOLS
from snellen.records import Item, ModelRecord, Probe
from snellen.runs.summary import summarise, values_of
from snellen.stats.bootstrap import Resampling, holm
from snellen.stats.simulation import Captioner, simulate_rivals
from snellen.tables.runs import breakdown

QUICK = Resampling(resamples=500)


def two(first, second, **words):
    return compare([first, second], resampling=QUICK, **words)


def only(first, second, metric, **words):
    return two(first, second, metrics=[metric], **words).metrics[0].pairs[0]


def letters(items, wrong=(), letter="A"):
    """Verdicts that are right but for the probes named wrong."""
    return {
        (item.id, probe.id): "B" if probe.id in wrong else letter
        for item in items
        for probe in item.probes
    }


def test_the_planted_difference_of_the_bundled_captioners_is_told():
    """The careless captioner, whose captions hold planted errors, is significantly worse."""
    found = two(bundled("thorough"), bundled("careless")).metric("overall_acc")
    pair = found.pairs[0]
    first, second = (standing.value for standing in found.standings)
    assert pair.settled
    assert pair.difference == pytest.approx(second - first)
    assert pair.interval[1] < 0
    assert pair.interval[0] < pair.difference < pair.interval[1]


@pytest.mark.parametrize("protocol", ["reading", "rubric", "direct"])
def test_a_run_against_itself_differs_by_nothing(protocol):
    """In every protocol and metric a run against itself gives 0 with p = 1, and no flips."""
    run = bundled("careless", protocol)
    names = [metric.name for metric in run.tally().metrics]
    found = two(run, run, metrics=names)
    for metric in found.metrics:
        pair = metric.pairs[0]
        assert (pair.difference, pair.p, pair.p_adjusted) == (0.0, 1.0, 1.0)
        assert not pair.settled
    assert found.flips[0].to_right == found.flips[0].to_wrong == ()


def test_the_difference_is_the_later_run_minus_the_earlier():
    """Given the other way round, differences and intervals change their sign."""
    there = only(bundled("terse"), bundled("thorough"), "coverage")
    back = only(bundled("thorough"), bundled("terse"), "coverage")
    assert back.difference == pytest.approx(-there.difference)
    assert back.interval == pytest.approx((-there.interval[1], -there.interval[0]))
    assert back.p == pytest.approx(there.p)


def test_two_seeds_of_one_simulated_captioner_raise_no_alarm():
    """Equals on the same pictures are not called different in any metric."""
    rivals = simulate_rivals(60, [Captioner(), Captioner()], seed=5)
    first, second = (simulated(*rival, name=f"seed{k}") for k, rival in enumerate(rivals))
    found = two(first, second, metrics=["overall_acc", "effective_acc", "coverage"])
    assert not any(metric.pairs[0].settled for metric in found.metrics)
    assert all(metric.pairs[0].difference != 0.0 for metric in found.metrics)


@pytest.mark.slow
def test_equals_are_called_different_about_as_often_as_the_level_says():
    """Of 100 comparisons of equals at 5%, between 1 and 11 are settled."""
    alarms = 0
    for seed in range(100):
        rivals = simulate_rivals(30, [Captioner(), Captioner()], seed=seed)
        first, second = (simulated(*rival, name=f"seed{k}") for k, rival in enumerate(rivals))
        found = compare(
            [first, second], metrics=["overall_acc"], resampling=Resampling(resamples=100)
        )
        alarms += found.metrics[0].pairs[0].settled
    assert 1 <= alarms <= 11


@pytest.mark.slow
def test_a_difference_as_large_as_the_detectable_one_is_mostly_settled():
    """Of twenty studies with a difference of the detectable size about sixteen settle it."""
    good, better = Captioner(mention=0.75), Captioner(mention=0.81)
    settled, sizes = 0, []
    for seed in range(20):
        rivals = simulate_rivals(30, [good, better], seed=seed)
        first, second = (simulated(*rival, name=f"m{k}") for k, rival in enumerate(rivals))
        pair = only(first, second, "coverage")
        settled += pair.settled
        sizes.append(pair.detectable)
    assert 0.03 < sum(sizes) / len(sizes) < 0.09
    assert settled >= 12


def test_p_values_are_adjusted_over_the_pairs():
    """With three runs each p value grows for being one of three, by no more than Holm's would."""
    runs = [bundled(name) for name in ("thorough", "terse", "careless")]
    found = compare(runs, metrics=["effective_acc"], resampling=QUICK).metrics[0]
    assert [(p.first, p.second) for p in found.pairs] == [
        ("thorough", "terse"),
        ("thorough", "careless"),
        ("terse", "careless"),
    ]
    most = holm([pair.p for pair in found.pairs])
    for pair, highest in zip(found.pairs, most, strict=True):
        assert pair.p <= pair.p_adjusted <= highest + 0.01
        assert pair.together[0] < pair.interval[0] < pair.interval[1] < pair.together[1]


def test_ranks_are_chances_that_sum_to_one():
    """Each run's ranks sum to 1, each rank is taken once, and the best is likely first."""
    runs = [bundled(name) for name in ("terse", "careless", "thorough")]
    found = compare(runs, metrics=["overall_acc"], resampling=QUICK).metrics[0]
    table = np.array([standing.ranks for standing in found.standings])
    assert table.sum(axis=0) == pytest.approx([1, 1, 1])
    assert table.sum(axis=1) == pytest.approx([1, 1, 1])
    assert table[2].argmax() == 0


def test_a_lower_value_ranks_first_where_lower_is_better():
    """The captioner that leaves least uncertain is first in `uncertain_ratio`."""
    found = two(bundled("terse"), bundled("thorough"), metrics=["uncertain_ratio"]).metrics[0]
    assert found.standings[1].ranks[0] > 0.9
    assert found.pairs[0].difference < 0


def test_lengths_have_no_ranks():
    """Tokens are neither better nor worse, so nobody is first."""
    found = two(bundled("terse"), bundled("thorough"), metrics=["tokens_per_image"]).metrics[0]
    assert [standing.ranks for standing in found.standings] == [(), ()]


def test_effects_are_given_for_each_label():
    """An effect sits in the category in which it was planted, with its interval."""
    items = reading_items([4, 6, 4, 6, 4, 6])
    wrong = {f"image{k}-1" for k in (0, 1, 2, 4)} | {f"image{k}-3" for k in (0, 3, 5)}
    pair = only(
        a_run(items, [letters(items)], name="a"),
        a_run(items, [letters(items, wrong)], name="b"),
        "overall_acc",
    )
    count, action = pair.by["category"]["Count"], pair.by["category"]["Action"]
    assert count.difference == 0.0
    assert action.difference == pytest.approx(-7 / 15)
    assert action.interval[0] < -7 / 15 < action.interval[1] < 0
    assert action.n_clusters == 6


def test_flipped_probes_are_named():
    """Probes that only one run has right are listed by direction; unscored ones are no flips."""
    items = reading_items([3, 3])
    first = a_run(items, [letters(items, {"image0-0", "image1-2"})], name="a")
    answers = letters(items, {"image0-1"}) | {("image1", "image1-2"): None}
    flips = two(first, a_run(items, [answers], name="b")).flips[0]
    assert flips.to_right == (ProbeKey("image0", 0, "image0-0"),)
    assert flips.to_wrong == (ProbeKey("image0", 0, "image0-1"),)
    assert (flips.scored_in_both, flips.unscored, flips.probes) == (5, 1, 6)


def test_many_unscored_probes_bring_a_warning():
    """Above 5% unscored the comparison warns and names the run; at 5% it does not."""
    items = reading_items([10, 10])
    whole = a_run(items, [letters(items)], name="whole")
    first = ("image0", "image0-0")
    some = a_run(items, [letters(items) | {first: None}], name="some")
    many = a_run(items, [letters(items) | {first: None, ("image1", "image1-0"): None}], name="many")
    assert not any("warning" in note for note in two(whole, some).notes)
    notes = [note for note in two(whole, many).notes if "warning" in note]
    assert len(notes) == 1
    assert "2 of 20 probes of many are unscored" in notes[0]
    assert [run.unscored for run in two(whole, many).runs] == [0, 2]


def test_a_run_without_verdicts_has_no_value():
    """A run in which nothing was scored is not called worse: nothing can be told."""
    items = reading_items([4, 4])
    found = two(a_run(items, [letters(items)], name="a"), a_run(items, [{}], name="down"))
    pair = found.metrics[0].pairs[0]
    assert (pair.difference, pair.interval, pair.p, pair.settled) == (None, None, None, False)
    assert found.metrics[0].standings[1].value is None
    with pytest.raises(ComparisonError, match="cannot be told"):
        gate_worse(found, "overall_acc")


def test_one_picture_alone_has_no_interval():
    """A single cluster gives a difference, but neither an interval nor a p value."""
    items = reading_items([8])
    found = two(
        a_run(items, [letters(items)], name="a"),
        a_run(items, [letters(items, {"image0-1"})], name="b"),
    )
    pair = found.metrics[0].pairs[0]
    assert pair.difference == pytest.approx(-1 / 8)
    assert (pair.interval, pair.p) == (None, None)
    assert any("one image alone" in note for note in found.notes)


def judge(name="perfect", model="perfect-1", temperature=0):
    return {"judge": ModelRecord(name, model=model, params={"temperature": temperature})}


def prompts(**changed):
    return {"prompts": PROMPTS | {name: prompt(text) for name, text in changed.items()}}


REFUSED = [
    ("judge", "judge: `perfect` and `other`", judge("other")),
    ("judge", "judge's model: `perfect-1` and `perfect-2`", judge(model="perfect-2")),
    ("judge", "judge's params: .*'temperature': 0.*'temperature': 1", judge(temperature=1)),
    ("judge", "option parser: `snellen` and `official`", {"options": {"parser": "official"}}),
    ("judge", "option decide: `letter` and `logprob`", {"options": {"decide": "logprob"}}),
    (
        "prompt",
        "option questions-a-call: `1` and `5`",
        {"options": {"questions_a_call": 5}} | prompts(verdict="Read them all."),
    ),
    ("prompt", "prompt `reply`", prompts(reply="Say more.")),
    ("prompt", "prompt `verdict`", prompts(verdict="Read well.")),
    ("control", "control: `none` and `swapped`", {"options": {"control": "swapped"}}),
    (
        "control",
        "control: `none` and `blind`",
        {"options": {"control": "blind"}} | prompts(verdict="Choose A to D."),
    ),
    ("control", "image preparation: `none` and `max 1000`", {"image_preparation": "max 1000"}),
    ("data", "benchmark: `mini` and `other`", {"benchmark": "other"}),
    (
        "data",
        "content of item image1: `digest1` and `changed`",
        {"items": {"image0": "digest0", "image1": "changed"}},
    ),
]


@pytest.mark.parametrize(("word", "message", "spec"), REFUSED)
def test_a_difference_is_refused_by_name_and_lifted_by_its_word_alone(word, message, spec):
    """Each kind of difference is named with both values; only its own word of --across lifts it."""
    items = reading_items([4, 4])
    first = a_run(items, [letters(items)], name="a")
    second = varied(a_run(items, [letters(items)], name="b"), **spec)
    with pytest.raises(ComparisonError, match=message) as refused:
        two(first, second)
    assert f"--across {word}" in refused.value.hint
    with pytest.raises(ComparisonError, match=message):
        two(first, second, across=[other for other in ACROSS if other != word])
    lifted = two(first, second, across=[word])
    assert {change.across for change in lifted.changes} == {word}


def test_long_parameters_are_told_by_what_differs():
    """The message shows the entries that differ, not the beginning that both have."""
    body = {"chat_template_kwargs": {"enable_thinking": False, "rounds": 3}, "top_p": 0.1234567}
    warm = body | {"chat_template_kwargs": {"enable_thinking": True, "rounds": 3}}
    runs = [
        varied(bundled("terse"), judge=ModelRecord("j", params=params)) for params in (body, warm)
    ]
    [change] = two(*runs, across=["judge"]).changes
    assert change.first == "{'chat_template_kwargs': {'enable_thinking': False}}"
    assert change.second == "{'chat_template_kwargs': {'enable_thinking': True}}"


def test_options_are_named_as_they_are_typed():
    """A differing option has the name that the command line knows."""
    run = bundled("terse")
    with pytest.raises(ComparisonError, match="option option-order: `none` and `3`"):
        two(run, varied(run, options={"option_seed": 3}))
    run = bundled("terse", "rubric")
    with pytest.raises(ComparisonError, match="option one-rubric-a-call"):
        two(run, varied(run, options={"one_a_call": True}))


def test_the_hint_of_direct_questions_is_lifted_by_its_own_word():
    """A run without hints stands beside one with hints only across hint; on is the default."""
    run = bundled("thorough", "direct")
    spoken = varied(run, options={"hint": True})
    silent = varied(run, options={"hint": False})
    assert two(run, spoken, metrics=["accuracy"]).changes == ()
    with pytest.raises(ComparisonError, match="hint: `True` and `False`"):
        two(run, silent, metrics=["accuracy"])
    found = two(run, silent, metrics=["accuracy"], across=["hint"])
    assert [change.what for change in found.changes] == ["hint"]


def test_the_no_image_control_stands_beside_the_real_run():
    """`--across control` puts direct questions without pictures beside those with them."""
    run = bundled("thorough", "direct")
    control = varied(bundled("careless", "direct"), options={"control": "no-image"})
    with pytest.raises(ComparisonError, match="control: `none` and `no-image`"):
        two(run, control, metrics=["accuracy"])
    assert two(run, control, metrics=["accuracy"], across=["control"]).metrics[0].pairs[0].settled


def test_across_prompt_tells_what_changed():
    """The change of a prompt holds the lines that differ."""
    items = reading_items([4, 4])
    first = a_run(items, [letters(items)], name="a")
    second = varied(
        a_run(items, [letters(items)], name="b"),
        prompts=PROMPTS | {"reply": prompt("Describe it\nat length.")},
    )
    change = two(first, second, across=["prompt"]).changes[0]
    assert "-Describe it." in change.detail
    assert "+at length." in change.detail


def test_what_the_model_is_told_may_differ():
    """Another model, its parameters, revision, seed and the addresses are what is compared."""
    items = reading_items([4, 4])
    run = a_run(items, [letters(items)], name="a")
    other = varied(
        run,
        model=ModelRecord("a", params={"temperature": 1}, revision="r2"),
        judge=replace(run.spec.judge, url="http://elsewhere"),
        seed=7,
        options={"replies": "given", "reasks": 2},
    )
    assert two(run, other).changes == ()


def test_other_protocols_are_never_compared():
    """Runs of two protocols are refused whatever --across says."""
    with pytest.raises(ComparisonError, match="protocol: `reading` and `direct`"):
        two(bundled("terse"), bundled("terse", "direct"), across=ACROSS)


def test_other_items_are_refused_and_left_out_on_request():
    """Items that one run lacks are named; `common` compares the others and counts them."""
    items = reading_items([4, 4, 4])
    long = a_run(items, [letters(items, {"image2-0"})], name="long")
    short = a_run(items[:2], [letters(items[:2])], name="short")
    with pytest.raises(ComparisonError, match=r"1 \(image2\) only in the first, none only in"):
        two(long, short)
    found = two(long, short, common=True)
    assert found.left_out == ("image2",)
    assert found.n_items == 2
    assert any("left out: 1 item that" in note for note in found.notes)
    assert found.metric("overall_acc").standings[0].value == 1.0


def test_items_in_common_must_have_the_same_content():
    """`common` does not lift a changed item."""
    items = reading_items([4, 4, 4])
    changed = [replace(items[0], digest="changed"), items[1]]
    with pytest.raises(ComparisonError, match="content of item image0"):
        two(
            a_run(items, [letters(items)], name="a"),
            a_run(changed, [letters(changed)], name="b"),
            common=True,
        )


def test_runs_without_an_item_in_common_are_refused():
    """Nothing in common is refused even when common items are asked for."""
    items = reading_items([4, 4])
    with pytest.raises(ComparisonError, match="no item in common"):
        two(
            a_run(items[:1], [letters(items)], name="a"),
            a_run(items[1:], [letters(items)], name="b"),
            common=True,
        )


@pytest.mark.parametrize("protocol", ["reading", "rubric", "direct"])
def test_standings_are_those_of_each_runs_own_summary(protocol):
    """Values and intervals are the ones that the run's summary gives."""
    run = bundled("careless", protocol)
    values = values_of(run.tally())
    found = compare([run, bundled("terse", protocol)], metrics=list(values))
    for metric in found.metrics:
        own, standing = values[metric.name], metric.standings[0]
        assert standing.value == pytest.approx(own.value)
        assert standing.interval == pytest.approx(own.ci95)


def test_items_are_counted_apart_from_clusters():
    """Direct questions about one picture are several items and one cluster; repeats are neither."""
    found = summarise(bundled("terse", "direct"), status="complete")
    one = found.metrics["accuracy"]
    assert (one.n, one.n_items, one.n_clusters) == (55, 55, 8)
    for label, metrics in found.by["error_category"].items():
        own = metrics["accuracy"]
        assert own.n_items == found.group_counts["error_category"][label]["items"]
        assert own.n_clusters <= min(own.n_items, 8)
    shown = breakdown(replace(bundled("terse", "direct"), summary=found), "error_category")
    assert "fewer clusters than items" in shown.notes[0]
    items = reading_items([2, 3])
    twice = summarise(a_run(items, [letters(items), letters(items)]), status="complete")
    one = twice.metrics["overall_acc"]
    assert (one.n, one.n_items, one.n_clusters) == (10, 2, 2)


def test_intervals_stay_where_values_can_be():
    """Densities do not fall below 0, nor gaps of rates beyond 1, in summaries and comparisons."""
    rng = np.random.default_rng(3)
    items = reading_items([6] * 4)
    for seed in range(6):
        answers = {
            (item.id, probe.id): "A" if k == seed % 4 and rng.random() < 0.7 else "B"
            for k, item in enumerate(items)
            for probe in item.probes
        }
        run = a_run(items, [answers], name=f"m{seed}")
        values = values_of(run.tally(), resamples=1000)
        found = compare([run, run], metrics=list(values), resampling=Resampling(1000))
        for metric in found.metrics:
            own = values[metric.name].ci95
            assert metric.standings[0].interval == pytest.approx(own)
            assert own is None or own[0] >= 0.0


def test_the_order_of_items_makes_no_difference():
    """Runs whose items stand in another order pair up by id."""
    run = bundled("careless")
    turned = replace(run, items=tuple(reversed(run.items)))
    found = two(run, turned)
    assert found.metric("overall_acc").pairs[0].p == 1.0
    assert found.flips[0].to_right == found.flips[0].to_wrong == ()


def test_repeats_pair_up_and_may_be_cut_to_those_in_common():
    """Flips name the repeat; runs of unequal repeats are refused, or compared on what both have."""
    items = reading_items([2, 2])
    once = a_run(items, [letters(items)], name="once")
    twice = a_run(items, [letters(items), letters(items, {"image1-0"})], name="twice")
    other = a_run(items, [letters(items), letters(items)], name="other")
    assert two(other, twice).flips[0].to_wrong == (ProbeKey("image1", 1, "image1-0"),)
    with pytest.raises(ComparisonError, match="image0 repeat 1"):
        two(once, twice)
    assert two(once, twice, common=True).flips[0].to_wrong == ()


def test_clusters_found_on_fewer_items_are_joined():
    """Questions that one run holds together by a further question stay together in both."""

    def question(name, cluster):
        return Item(name, (), (Probe(name, "?", "x"),), cluster=cluster, digest=name)

    full = [question("q0", "q0"), question("q1", "q0"), question("q2", "q0"), question("q3", "q3")]
    part = [question("q1", "q1"), question("q2", "q2"), question("q3", "q3")]
    runs = [
        a_run(items, [{(i.id, i.id): True for i in items}], name=name, protocol="direct")
        for name, items in (("full", full), ("part", part))
    ]
    found = compare(runs, metrics=["accuracy"], common=True, resampling=QUICK)
    assert found.n_items == 3
    assert found.n_clusters == 2


def test_a_picture_that_was_skipped_whole_is_not_in_common():
    """CaptionQA leaves images without a caption out: beside a run that has them they differ."""
    items = [
        replace(item, probes=tuple(
            replace(p, groups=p.groups | {"choices": "4"}) for p in item.probes
        ))
        for item in reading_items([3, 3, 3])
    ]  # fmt: skip
    whole = a_run(items, [letters(items)], name="whole", benchmark="captionqa")
    skipped = {
        key: replace(v, status="skipped", verdict=None, correct=None) if key[0] == "image1" else v
        for key, v in whole.verdicts.items()
    }
    part = replace(varied(whole, model=ModelRecord("part")), verdicts=skipped)
    with pytest.raises(ComparisonError, match="same items"):
        two(whole, part)
    assert two(whole, part, common=True).left_out == ("image1",)


def test_gate_first_is_compared_in_what_both_runs_measure():
    """Beside a run that skipped statements only the metrics that it has are compared."""
    run = bundled("careless", "rubric")
    easy = {(i.id, p.id) for i in run.items for p in i.probes if p.kind == "easy_wrong"}
    shut = {
        i.id for i in run.items if not all(
            run.verdicts[i.id, 0, p.id].correct for p in i.probes if p.kind == "must_right"
        )
    }  # fmt: skip
    verdicts = {
        key: replace(v, status="skipped", verdict=None, correct=None)
        if key[0] in shut and (key[0], key[2]) in easy
        else v
        for key, v in run.verdicts.items()
    }
    gated = replace(varied(run, options={"gate_first": True}), verdicts=verdicts)
    found = two(run, gated, across=["judge"])
    assert [metric.name for metric in found.metrics] == ["score", "gate_pass"]
    assert found.metric("score").pairs[0].difference == 0.0
    with pytest.raises(UsageError, match="atomic_acc"):
        two(run, gated, across=["judge"], metrics=["atomic_acc"])


def test_worse_is_told_with_a_margin_in_the_metrics_unit():
    """The last run is worse than the first unless the margin covers the whole interval."""
    found = compare(
        [bundled("thorough"), bundled("terse"), bundled("careless")],
        metrics=["overall_acc", "uncertain_ratio", "tokens_per_image"],
        resampling=QUICK,
    )
    pair = found.metric("overall_acc").pair("thorough", "careless")
    assert gate_worse(found, "overall_acc") is Gate.FAILED
    assert gate_worse(found, "overall_acc", margin=-pair.interval[1] - 0.001) is Gate.FAILED
    assert gate_worse(found, "overall_acc", margin=-pair.interval[1] + 0.001) is Gate.PASSED
    with pytest.raises(UsageError, match="neither better nor worse"):
        gate_worse(found, "tokens_per_image")
    with pytest.raises(UsageError, match="negative"):
        gate_worse(found, "overall_acc", margin=-0.1)


def test_more_of_what_should_be_low_is_worse():
    """A rise in `uncertain_ratio` is worse, a fall is not."""
    rise = two(bundled("thorough"), bundled("terse"), metrics=["uncertain_ratio"])
    fall = two(bundled("terse"), bundled("thorough"), metrics=["uncertain_ratio"])
    assert gate_worse(rise, "uncertain_ratio") is Gate.FAILED
    assert gate_worse(fall, "uncertain_ratio") is Gate.PASSED


def test_runs_of_one_model_get_names_of_their_own():
    """Equal model names are told apart by their folders, equal folders by their number."""
    run = bundled("terse")
    other = replace(run, folder=run.folder.with_name("second"))
    assert [r.name for r in two(run, other).runs] == ["terse", "second"]
    assert [r.name for r in two(run, run).runs] == ["terse #1", "terse #2"]


def test_unknown_words_are_refused():
    """An unknown metric or question, or a single run, is misuse and says what there is."""
    run = bundled("terse")
    with pytest.raises(UsageError, match="no metric `acc`") as refused:
        two(run, run, metrics=["acc"])
    assert "overall_acc" in refused.value.hint
    with pytest.raises(UsageError, match="across `judges`") as refused:
        two(run, run, across=["judges"])
    assert "judge" in refused.value.hint
    with pytest.raises(UsageError, match="two runs, not 1"):
        compare([run])


def test_every_protocol_has_main_metrics():
    """The metrics that a comparison looks at unasked begin with the protocol's headline."""
    main = {name: [m.name for m in p.metrics if m.is_main] for name, p in PROTOCOLS.items()}
    assert {name: names[0] for name, names in main.items()} == {
        name: p.headline for name, p in PROTOCOLS.items()
    }


def test_the_python_call_takes_runs_and_has_an_async_twin():
    """`snellen.compare` and its twin give the same comparison."""
    runs = [bundled("terse"), bundled("careless")]
    now = snellen.compare(runs, resamples=200, seed=3, level=0.9)
    later = asyncio.run(snellen.compare_async(runs, resamples=200, seed=3, level=0.9))
    assert now == later
    assert (now.resamples, now.seed, now.level) == (200, 3, 0.9)
    wide = snellen.compare(runs, resamples=200).metrics[0].pairs[0].interval
    narrow = now.metrics[0].pairs[0].interval
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize("name", ["run", "score_captions", "load_run", "compare"])
def test_every_call_has_an_async_twin(name):
    """Beside each call stands a coroutine function of its name."""
    assert callable(getattr(snellen, name))
    assert inspect.iscoroutinefunction(getattr(snellen, f"{name}_async"))


def test_a_run_is_read_in_an_event_loop(tmp_path):
    """The twin of `load_run` reads the same run."""
    folder = write_run(bundled("terse"), tmp_path / "run")
    assert asyncio.run(snellen.load_run_async(folder)) == snellen.load_run(folder)


def test_the_seed_changes_intervals_and_nothing_else_is_left_to_chance():
    """The same seed gives the same comparison."""
    runs = [bundled("terse"), bundled("careless")]
    assert compare(runs, resampling=QUICK) == compare(runs, resampling=QUICK)
    other = compare(runs, resampling=replace(QUICK, seed=1))
    assert (
        other.metrics[0].standings[0].interval
        != compare(runs, resampling=QUICK).metrics[0].standings[0].interval
    )


def test_items_of_the_mini_benchmark_are_all_compared():
    """Every picture of the bundled benchmark is a cluster of the comparison."""
    found = two(bundled("terse"), bundled("careless"))
    assert found.n_items == found.n_clusters == len(mini("reading"))


def test_a_judge_of_a_panel_that_was_asked_otherwise_is_named():
    """Panels alike in names and rule, one of whose judges is warmer, are refused; across lifts."""
    members = (
        ModelRecord("a", params={"temperature": 0}),
        ModelRecord("b", params={"temperature": 0}),
    )
    warm = (members[0], ModelRecord("b", params={"temperature": 1}))
    runs = [
        varied(bundled("terse"), judge=ModelRecord("a+b", params={"panel": "majority"}, members=m))
        for m in (members, warm)
    ]
    with pytest.raises(ComparisonError, match="differ in the params of judge b") as caught:
        two(*runs)
    assert caught.value.hint.endswith("--across judge")
    assert [c.what for c in two(*runs, across=["judge"]).changes] == ["the params of judge b"]


def with_lost(run, n, *, seed=0):
    """The same run after `n` of its verdicts were lost."""
    rng = np.random.default_rng(seed)
    keys = sorted(run.verdicts)
    lost = {keys[int(k)] for k in rng.permutation(len(keys))[:n]}
    verdicts = {
        key: replace(v, verdict=None, correct=None, status="unscored", reason="judge_timeout")
        if key in lost
        else v
        for key, v in run.verdicts.items()
    }
    return replace(run, verdicts=verdicts)


@pytest.mark.parametrize(("metric", "loser"), [("overall_acc", 1), ("coverage", 0)])
def test_lost_verdicts_alone_never_make_a_run_worse(metric, loser):
    """The same verdicts, some lost in one run: not settled, said so, and the gate is undecided."""
    [rival] = simulate_rivals(100, [Captioner()], seed=2)
    whole = simulated(*rival, name="whole")
    runs = [whole, simulated(*rival, name="lossy")]
    runs[loser] = with_lost(runs[loser], len(whole.verdicts) // 25)
    found = two(*runs, metrics=[metric])
    pair = found.metrics[0].pairs[0]
    assert pair.p < 0.001
    assert not pair.settled
    assert pair.rests_on_unscored
    assert pair.n_unscored == len(whole.verdicts) // 25
    assert pair.on_scored.difference == pytest.approx(0.0, abs=1e-12)
    assert gate_worse(found, metric) is Gate.UNSETTLED


def test_a_difference_in_both_readings_is_settled_although_verdicts_are_missing():
    """A worse captioner with a few lost verdicts stays worse."""
    rivals = simulate_rivals(100, [Captioner(mention=0.8), Captioner(mention=0.6)], seed=3)
    first, second = (simulated(*rival, name=f"m{k}") for k, rival in enumerate(rivals))
    found = two(first, with_lost(second, 50), metrics=["overall_acc"])
    assert found.metrics[0].pairs[0].settled
    assert gate_worse(found, "overall_acc") is Gate.FAILED


def test_as_good_needs_an_interval_above_the_margin_in_both_readings():
    """Equals pass with a wide margin, fail with one that the interval reaches, or with losses."""
    rivals = simulate_rivals(100, [Captioner(), Captioner()], seed=4)
    first, second = (simulated(*rival, name=f"m{k}") for k, rival in enumerate(rivals))
    found = two(first, second, metrics=["overall_acc"])
    reached = -found.metrics[0].pairs[0].interval[0]
    assert gate_as_good(found, "overall_acc", margin=reached + 0.001) is Gate.PASSED
    assert gate_as_good(found, "overall_acc", margin=reached - 0.001) is Gate.FAILED
    lossy = two(first, with_lost(second, len(second.verdicts) // 4), metrics=["overall_acc"])
    assert gate_as_good(lossy, "overall_acc", margin=reached + 0.001) is Gate.FAILED


def test_rank_sets_leave_equals_open_and_order_the_others():
    """Two equals share the ranks 1 and 2; a clearly worse run is third."""
    captioners = [Captioner(), Captioner(), Captioner(mention=0.4)]
    rivals = simulate_rivals(80, captioners, seed=6)
    runs = [simulated(*rival, name=f"m{k}") for k, rival in enumerate(rivals)]
    found = compare(runs, metrics=["overall_acc"], resampling=QUICK).metrics[0]
    assert [standing.rank_set for standing in found.standings] == [(1, 2), (1, 2), (3, 3)]
