"""The rubric protocol: its flow, its gate, and its numbers against hand-computed ones."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from tests.fakes.server import picture_uris, text_of
from tests.worlds.rubric_world import (
    NATURAL,
    PAGES,
    SCENES,
    SCREENS,
    Scene,
    assessment,
    listed,
    serve_world,
    write_settings,
    write_world,
)

import snellen
from snellen.cli import cli
from snellen.figures.series import series_of
from snellen.flows import run_by_hand
from snellen.metrics import probe_table
from snellen.protocols import rubric
from snellen.protocols.gate_tally import GATE_FIRST_METRICS, METRICS
from snellen.protocols.rubric import RubricOptions, audit_item
from snellen.records import CallFailure, Image, Item, Probe, Reply, RubricTask, Verdict
from snellen.report.sections import sections_of, tables_of
from snellen.tables.runs import breakdown
from snellen.tables.writers import texts


def make_item(must=2, easy=2, name="i", category="Natural Scene"):
    probes = [
        Probe(f"{kind}/{k}", f"{kind} {k}", "true", kind=kind)
        for kind, n in (("must_right", must), ("easy_wrong", easy))
        for k in range(n)
    ]
    picture = Image("i.png", "0", "i.png")
    return Item(name, (picture,), tuple(probes), groups={"category": (category,)})


def audit(item, *judge_answers, caption="a caption", **options):
    """The outcome of an audit by hand, and the judge requests that it made."""
    asked, left = [], list(judge_answers)

    def answer(request):
        if request.role == "model":
            return caption if isinstance(caption, CallFailure) else Reply(caption)
        asked.append(request)
        said = left.pop(0)
        return Reply(said) if isinstance(said, str) else said

    outcome = run_by_hand(audit_item(item, RubricOptions(**options)), answer)
    assert not left
    return outcome, asked


def correct(outcome):
    return [v.correct for v in outcome.verdicts]


def reasons(outcome):
    return [v.reason for v in outcome.verdicts]


class TestFlow:
    def test_one_call_judges_all(self):
        """One text-only call with the caption and both numbered groups gives all verdicts."""
        outcome, [request] = audit(make_item(), assessment([True, False], [True, True]))
        [message] = request.messages
        [text] = message.parts
        assert listed(text) == (
            ["must_right 0", "must_right 1"],
            ["easy_wrong 0", "easy_wrong 1"],
        )
        assert "\na caption\n" in text
        assert correct(outcome) == [True, False, True, True]
        assert [v.status for v in outcome.verdicts] == ["scored"] * 4
        assert request.task == RubricTask(
            "a caption", ("must_right 0", "must_right 1"), ("easy_wrong 0", "easy_wrong 1")
        )

    def test_the_description_is_asked_for(self):
        """The model gets the picture, then the description prompt, and nothing of the rubrics."""
        seen = []

        def answer(request):
            seen.append(request)
            return Reply(assessment([True, True], [True, True]) if len(seen) > 1 else "text")

        item = make_item()
        run_by_hand(audit_item(item, RubricOptions()), answer)
        [message] = seen[0].messages
        assert message.parts == (item.images[0], RubricOptions().describe.text)

    def test_a_malformed_group_is_asked_again_whole(self):
        """A group with a wrong count is asked again; the group that was read is kept as read."""
        outcome, asked = audit(
            make_item(),
            assessment([True, True], [True]),
            assessment([False, False], [True, False]),
        )
        assert correct(outcome) == [True, True, True, False]
        first, second = (request.messages[0].parts[0] for request in asked)
        assert second.startswith(first)
        assert [request.ask for request in asked] == [0, 1]

    def test_a_group_that_stays_malformed_is_unscored(self):
        """After two re-asks a group that cannot be read is unscored whole, the other is scored."""
        bad = assessment([True, True], [True, True, True])
        outcome, asked = audit(make_item(), bad, bad, bad)
        assert len(asked) == 3
        assert correct(outcome) == [True, True, None, None]
        assert reasons(outcome)[2:] == ["unreadable_wrong_count"] * 2

    def test_a_conflict_leaves_the_others_of_its_group_where_ids_tell_them_apart(self):
        """A rubric with two results stays unscored; others that are named by their ids count."""
        bad = (
            '{"GroupA": [{"id": "r1", "pass": true}, {"id": "r1", "pass": false}, '
            '{"id": "r2", "pass": false}], "GroupB": [true, true]}'
        )
        outcome, asked = audit(make_item(), bad, bad, bad)
        assert len(asked) == 3
        assert correct(outcome) == [None, False, True, True]
        assert reasons(outcome) == ["unreadable_conflict", *["recovered"] * 3]

    def test_a_failed_judge_call(self):
        """A judge call that fails leaves unscored what was not yet read, and only that."""
        half = (
            "<Assessment><GroupA><Result>true</Result><Result>true</Result></GroupA></Assessment>"
        )
        outcome, _ = audit(make_item(), half, CallFailure("timeout", "too slow"))
        assert correct(outcome) == [True, True, None, None]
        assert reasons(outcome)[2:] == ["judge_timeout"] * 2

    def test_a_failed_model_call(self):
        """A failed description leaves every statement unscored and costs no judge call."""
        outcome, asked = audit(make_item(), caption=CallFailure("overload", "busy"))
        assert (asked, reasons(outcome)) == ([], ["model_overload"] * 4)
        assert {v.status for v in outcome.verdicts} == {"unscored"}

    @pytest.mark.parametrize("blank", ["", " \n\t"])
    def test_a_blank_description(self, blank):
        """A blank description makes every statement false, scored, without a judge call."""
        outcome, asked = audit(make_item(), caption=blank)
        assert (asked, correct(outcome)) == ([], [False] * 4)
        assert reasons(outcome) == ["empty"] * 4

    def test_one_rubric_a_call(self):
        """One call a statement, each about that statement alone, asked again on its own."""
        outcome, asked = audit(
            make_item(1, 2), "true", "well", "**False**", "TRUE", one_a_call=True
        )
        assert correct(outcome) == [True, False, True]
        assert [(r.probe, r.ask) for r in asked] == [
            ("must_right/0", 0),
            ("easy_wrong/0", 0),
            ("easy_wrong/0", 1),
            ("easy_wrong/1", 0),
        ]
        assert "easy_wrong 0" not in asked[0].messages[0].parts[0]

    def test_gate_first_skips_behind_a_shut_gate(self):
        """A known false Must-Right skips the Easy-Wrong group: no call, status skipped."""
        outcome, [request] = audit(make_item(), assessment([True, False], []), gate_first=True)
        assert [v.status for v in outcome.verdicts] == ["scored"] * 2 + ["skipped"] * 2
        assert listed(request.messages[0].parts[0])[1] == []

    @pytest.mark.parametrize("first", [assessment([True, True], []), "no idea"])
    def test_gate_first_goes_on_unless_the_gate_is_shut(self, first):
        """Behind a gate that is open, or that nobody can tell, the Easy-Wrong group is judged."""
        outcome, asked = audit(
            make_item(), first, assessment([], [True, False]), gate_first=True, reasks=0
        )
        assert correct(outcome)[2:] == [True, False]
        assert listed(asked[-1].messages[0].parts[0])[0] == []

    @pytest.mark.parametrize(("must", "easy"), [(0, 2), (2, 0)])
    def test_gate_first_never_asks_about_nothing(self, must, easy):
        """An item without one of the groups costs one call, also with the gate first."""
        said = assessment([True] * must, [True] * easy)
        outcome, asked = audit(make_item(must, easy), said, gate_first=True)
        assert (len(asked), correct(outcome)) == (1, [True, True])


def readings(must, easy):
    """Gate and score of one image in all three readings; None in a group is unscored."""
    item = make_item(len(must), len(easy))
    verdicts = {}
    for probe, value in zip(item.probes, [*must, *easy], strict=True):
        status = "unscored" if value is None else "scored"
        verdict = Verdict("i", probe.id, value, value, status)
        verdicts["i", 0, probe.id] = verdict
    tally = rubric.tally(probe_table([item], verdicts), {})
    sums = tally.sums()
    found = {}
    for name in ("gate_pass", "score"):
        metric = tally.metric(name)
        values = [float(f(sums)) for f in (metric.value, metric.scored, metric.upper)]
        found[name] = tuple(None if np.isnan(v) else v for v in values)
    return found["gate_pass"], found["score"]


class TestGate:
    @pytest.mark.parametrize(
        ("must", "easy", "gate", "score"),
        [
            ([True, True], [True, False], (1, 1, 1), (0.5, 0.5, 0.5)),
            ([True, False], [True, True], (0, 0, 0), (0, 0, 0)),
            ([False, None], [True, None], (0, 0, 0), (0, 0, 0)),
            ([True, None], [True, False], (0, None, 1), (0, None, 0.5)),
            ([True, True], [True, None], (1, 1, 1), (0.5, None, 1)),
            ([None, None], [None, None], (0, None, 1), (0, None, 1)),
            ([True], [], (1, 1, 1), (1, 1, 1)),
            ([False], [], (0, 0, 0), (0, 0, 0)),
            ([], [True, False], (1, 1, 1), (0.5, 0.5, 0.5)),
        ],
    )
    def test_readings(self, must, easy, gate, score):
        """Gate and score are as the contract says, as value, over scored images, and as bound."""
        assert readings(must, easy) == (gate, score)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The world's run as a whole and with the gate first, and the requests of each."""
    folder = tmp_path_factory.mktemp("world")
    data, found = write_world(folder / "data"), {}
    with serve_world() as server:
        config = write_settings(folder, server)
        for name, options in (("full", {}), ("gate_first", {"gate_first": True})):
            before = len(server.requests)
            run = snellen.run(
                str(data), model="fake", judge="fake", out=folder / name, config=config,
                max_tries=1, cache=False, **options,
            )  # fmt: skip
            found[name] = run, server.requests[before:]
    return found


NATURAL_GATE, NATURAL_SCORE = (4 / 5, 4 / 5, 4 / 5), tuple([(0.5 + 2 / 3 + 1 + 0.5) / 5] * 3)


# Twelve images, of which g1, g2 and g4 have a gate that cannot be told, and d1 has
# Easy-Wrong results that cannot be told: 10 of 37 statements are unscored.
EXPECTED = {
    "score": (4 / 12, 4 / 8, 7.5 / 12),
    "gate_pass": (7 / 12, 7 / 9, 10 / 12),
    "atomic_acc": (18 / 37, 18 / 27, 28 / 37),
    "must_right_acc": (9 / 16, 9 / 11, 14 / 16),
    "easy_wrong_acc": (9 / 21, 9 / 16, 14 / 21),
    "easy_wrong_avg": (4.5 / 11, 4.5 / 8, 7.5 / 11),
    "reliability_gap": (7 / 12 - 18 / 37, 7 / 9 - 18 / 27, None),
}


class TestNumbers:
    @pytest.mark.parametrize("name", list(EXPECTED))
    def test_aggregates(self, world, name):
        """Every aggregate equals the one computed by hand, in all three readings."""
        value = world["full"][0].summary.metrics[name]
        assert (value.value, value.scored, value.upper) == pytest.approx(EXPECTED[name])

    def test_images(self, world):
        """G and S of each image equal those computed by hand."""
        tally = world["full"][0].tally()
        sums = {name: tally.counts[:, k] for k, name in enumerate(tally.columns)}
        found = {
            name: tuple(float(sums[c][k]) for c in ("G", "S", "Su"))
            for k, name in enumerate(tally.clusters)
        }
        wanted = {
                "n1": (1, 0.5, 0.5), "n2": (0, 0, 0), "n3": (1, 2 / 3, 2 / 3),
                "d1": (1, 0, 1), "d2": (1, 1, 1), "d3": (1, 1 / 3, 1 / 3),
                "g1": (0, 0, 0.5), "g2": (0, 0, 1), "g3": (0, 0, 0), "g4": (0, 0, 1),
                "e1": (1, 1, 1), "e2": (1, 0.5, 0.5),
        }  # fmt: skip
        assert list(found) == sorted(scene.name for scene in SCENES)
        for name, values in found.items():
            assert values == pytest.approx(wanted[name])

    @pytest.mark.parametrize(
        ("label", "gate", "score"),
        [
            (NATURAL, NATURAL_GATE, NATURAL_SCORE),
            (PAGES, (1, 1, 1), (4 / 9, 2 / 3, 7 / 9)),
            (SCREENS, (0, 0, 3 / 4), (0, 0, 2.5 / 4)),
        ],
    )
    def test_domains(self, world, label, gate, score):
        """Gate pass and score of each domain equal those computed by hand."""
        metrics = world["full"][0].summary.by["category"][label]
        for name, wanted in (("gate_pass", gate), ("score", score)):
            value = metrics[name]
            assert (value.value, value.scored, value.upper) == pytest.approx(wanted)

    def test_counts(self, world):
        """Statements are counted as scored, or as unscored by reason."""
        counts = world["full"][0].summary.counts
        assert (counts.items, counts.probes, counts.correct, counts.scored) == (12, 37, 18, 27)
        assert counts.unscored_by_reason == {
            "judge_timeout": 4,
            "model_bad_parameter": 2,
            "unreadable_conflict": 2,
            "unreadable_wrong_count": 2,
        }
        assert counts.scored_by_reason["empty"] == 2

    def test_shut_gates(self, world):
        """Each domain shows its share of shut gates, and its part of all of them."""
        shut = world["full"][0].summary.extra["shut_gates"]["category"]
        assert shut == {
            NATURAL: {"gates": 5, "shut": 1, "unknown": 0, "share": 1 / 5, "of_all": 1 / 2},
            PAGES: {"gates": 3, "shut": 0, "unknown": 0, "share": 0.0, "of_all": 0.0},
            SCREENS: {"gates": 4, "shut": 1, "unknown": 3, "share": 1 / 4, "of_all": 1 / 2},
        }

    def test_images_without_a_group(self, world):
        """Images without Must-Right or without Easy-Wrong statements are counted and told."""
        summary = world["full"][0].summary
        assert summary.extra["images_without_must_right"] == 1
        assert summary.extra["images_without_easy_wrong"] == 1
        assert sum("no Must-Right" in n or "no Easy-Wrong" in n for n in summary.notes) == 2

    def test_the_judge_sees_no_picture(self, world):
        """Judge calls hold no picture, and neither the golden caption."""
        _, requests = world["full"]
        judged = [r.body for r in requests if not picture_uris(r.body)]
        assert len(judged) > 10
        assert not any("Two red cups on a table." in text_of(body) for body in judged)


class TestGateFirst:
    @pytest.mark.parametrize("name", [m.name for m in GATE_FIRST_METRICS])
    def test_same_scores(self, world, name):
        """The metrics that it gives are those of the full run, intervals included."""
        assert (
            world["gate_first"][0].summary.metrics[name] == world["full"][0].summary.metrics[name]
        )

    def test_what_is_judged(self, world):
        """Judged are all Must-Right statements, and the Easy-Wrong ones not behind a shut gate."""
        run, requests = world["gate_first"]
        asked = [listed(text_of(r.body)) for r in requests if not picture_uris(r.body)]
        judged = {s for scene in SCENES if scene.caption for s in scene.must}
        assert {s for a, _ in asked for s in a} == judged
        behind = {s for scene in SCENES if scene.caption and scene.name != "n2" for s in scene.easy}
        assert {s for _, b in asked for s in b} == behind
        skipped = {(v.id, v.probe_id) for v in run.verdicts.values() if v.status == "skipped"}
        assert skipped == {("n2", "easy_wrong/0"), ("n2", "easy_wrong/1")}

    def test_a_loss_is_told(self, world):
        """Where most gates are open, the calls and tokens that it added are told as a loss."""
        summary = world["gate_first"][0].summary
        saved = summary.extra["gate_first"]
        # Ten captions are judged. n2's gate is shut, e1 and e2 have one group: 9 + 8 calls.
        assert (saved["calls_all_at_once"], saved["calls_gate_first"]) == (10, 17)
        assert saved["calls_saved"] == -7
        assert saved["prompt_tokens_saved"] < 0
        assert saved["skipped_probes"] == 2
        assert set(saved["not_given"]) == {m.name for m in METRICS} - set(summary.metrics)
        [note] = [n for n in summary.notes if n.startswith("gate first")]
        assert "7 judge calls added" in note
        assert "easy_wrong_acc" in note

    def test_breakdowns_give_the_same_metrics(self, world):
        """A domain in which nothing was skipped gives no more metrics than the whole."""
        summary = world["gate_first"][0].summary
        assert {frozenset(m) for m in summary.by["category"].values()} == {
            frozenset(summary.metrics)
        }

    def test_skipped_is_not_unscored(self, world):
        """Skipped statements are counted apart from scored and unscored ones."""
        summary = world["gate_first"][0].summary
        counts = summary.counts
        assert (counts.scored, counts.skipped, counts.unscored) == (25, 2, 10)
        assert summary.extra["images_without_easy_wrong"] == 1

    def test_a_gain_is_told(self, tmp_path):
        """Behind shut gates with many Easy-Wrong statements, one a call, calls are saved."""
        easy = tuple(f"mention word{k}" for k in range(6))
        scenes = (Scene("s1", NATURAL, "x", ("mention y",), easy),
                  Scene("s2", NATURAL, "x", ("mention x",), easy))  # fmt: skip
        with serve_world(scenes) as server:
            run = snellen.run(
                str(write_world(tmp_path / "data", scenes)), model="fake", judge="fake",
                api_url=server.url, out=tmp_path / "run", cache=False,
                gate_first=True, one_rubric_a_call=True,
            )  # fmt: skip
            calls = server.calls["/v1/chat/completions"] - 2
        saved = run.summary.extra["gate_first"]
        assert (saved["calls_all_at_once"], saved["calls_gate_first"], calls) == (14, 8, 8)
        assert saved["prompt_tokens_saved"] > 0
        assert "6 judge calls saved" in " ".join(run.summary.notes)


def test_an_option_of_rubrics_is_named_as_it_is_written(tmp_path):
    """Where an option has no meaning, the message names it as the command spells it."""
    words = ["run", "mini-reading", "--replies", "thorough", "--judge", "embedded", "--out",
             str(tmp_path / "run"), "--one-rubric-a-call"]  # fmt: skip
    done = CliRunner().invoke(cli, words)
    assert "--one-rubric-a-call has no meaning for mini-reading" in str(done.exception)


def test_one_rubric_a_call_agrees(world, tmp_path):
    """One call a statement gives the verdicts of one call an image, where both can be read."""
    scenes = tuple(s for s in SCENES if s.name[0] == "n")
    with serve_world(scenes) as server:
        run = snellen.run(
            str(write_world(tmp_path / "data", scenes)), model="fake", judge="fake",
            api_url=server.url, out=tmp_path / "run", cache=False, one_rubric_a_call=True,
        )  # fmt: skip
    full, _ = world["full"]
    assert len(run.verdicts) == 12
    assert all(run.verdicts[key].correct == full.verdicts[key].correct for key in run.verdicts)


def test_proposers_are_a_breakdown(tmp_path):
    """Statements that name their proposer and jurors are scored by them too."""
    data = write_world(tmp_path / "data", SCENES[:1])
    row = json.loads((data / "rubrics.jsonl").read_text(encoding="utf-8"))
    for name, proposer in (("must_right", "p1"), ("easy_wrong", "p2")):
        row[name] = [
            {"text": text, "proposer": proposer, "jurors": ["j1", "j2"]} for text in row[name]
        ]
    (data / "rubrics.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    with serve_world(SCENES[:1]) as server:
        run = snellen.run(
            str(data), model="fake", judge="fake", api_url=server.url, out=tmp_path / "run",
            cache=False,
        )  # fmt: skip
    by = run.summary.by
    assert {k: v["atomic_acc"].value for k, v in by["proposer"].items()} == {"p1": 1.0, "p2": 0.5}
    assert list(by["jurors"]) == ["j1, j2"]
    # A gate belongs to an image: a proposer, whose statements are some of its, has none.
    for dimension in ("proposer", "jurors"):
        assert {frozenset(m) for m in by[dimension].values()} == {
            frozenset({"atomic_acc", "must_right_acc", "easy_wrong_acc"})
        }
    compared = snellen.compare([run, run], metrics=["score", "atomic_acc"])
    assert list(compared.metric("atomic_acc").pairs[0].by) == ["category", "proposer", "jurors"]
    assert list(compared.metric("score").pairs[0].by) == ["category"]
    [section] = sections_of([run], with_charts=False)
    table = tables_of(section)["by-proposer"]
    assert table.title == "Atomic % by proposer"
    assert texts(table)[0][1].startswith("100.0")


@pytest.fixture(scope="module")
def lost(tmp_path_factory):
    """A picture whose judge call times out, one whose model call fails, and one that works."""
    folder = tmp_path_factory.mktemp("lost")
    scenes = (
        Scene("g", SCREENS, "tab HANG", ("mention tab",), ("never toast",)),
        Scene("f", PAGES, None, ("mention a",), ("mention b",)),
        Scene("n", NATURAL, "cups", ("mention cups",), ("mention two", "never hat")),
    )
    with serve_world(scenes) as server:
        return snellen.run(
            str(write_world(folder / "data", scenes)), model="fake", judge="fake",
            out=folder / "run", config=write_settings(folder, server), max_tries=1, cache=False,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "calls"),
    [([], 4), (["--gate-first"], 8), (["--one-rubric-a-call"], 15)],
)
def test_a_dry_run_counts_the_calls_to_come(tmp_path, options, calls):
    """A dry run assumes open gates and readable replies: no call is counted twice."""
    data = write_world(tmp_path / "data", SCENES[:3] + SCENES[4:5])
    command = ["run", str(data), "--model", "m", "--api-url", "http://127.0.0.1:9/v1", "--judge",
               "j", "--judge-url", "http://127.0.0.1:9/v1", "--out", str(tmp_path / "run"),
               "--dry-run", "--json", *options]  # fmt: skip
    shown = CliRunner().invoke(cli, command)
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output)["roles"]["judge"]["calls"] == calls


class TestNothingScored:
    @pytest.mark.parametrize("label", [SCREENS, PAGES])
    @pytest.mark.parametrize("name", ["score", "gate_pass", "atomic_acc", "easy_wrong_avg"])
    def test_a_lost_domain(self, lost, label, name):
        """A domain whose gates cannot be told is 0 in value, 1 at best, absent over scored."""
        value = lost.summary.by["category"][label][name]
        assert (value.value, value.scored, value.upper) == (0.0, None, 1.0)

    def test_the_whole_is_the_mean_of_its_domains(self, lost):
        """With one picture a domain, the score is the mean over the domains in each bound."""
        domains = [m["score"] for m in lost.summary.by["category"].values()]
        whole = lost.summary.metrics["score"]
        assert whole.value == pytest.approx(np.mean([d.value for d in domains]))
        assert whole.upper == pytest.approx(np.mean([d.upper for d in domains]))

    def test_a_lost_domain_is_shown_as_a_dash(self, lost):
        """For people a domain of which nothing was scored has no number."""
        shown = {row[0]: row[1:] for row in texts(breakdown(lost, "category"))}
        assert (shown[SCREENS][0], shown[NATURAL][0]) == ("-", "50.0")
        [series] = series_of([lost], "category", "score")
        assert list(series.values) == [NATURAL]
