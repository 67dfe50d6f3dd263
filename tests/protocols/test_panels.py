"""Several judges vote as one, under every protocol and in every command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.flows import flow

import snellen
from snellen.errors import UsageError
from snellen.flows import run_by_hand
from snellen.protocols import Options
from snellen.protocols.direct import DirectOptions
from snellen.protocols.panels import Panel, ask_panel, count_votes, role_of
from snellen.protocols.reading import ReadingOptions
from snellen.protocols.rubric import RubricOptions
from snellen.records import Answer, CallFailure, Item, Probe, Reply, Request, Usage, Verdict
from snellen.runs.folder import load_run
from snellen.runs.plan import make_plan
from snellen.runs.rejudge import rejudge_plan
from snellen.runs.request import RunRequest
from snellen.runs.run import execute
from snellen.runs.votes import panel_votes
from snellen.tables.panel import panel_tables
from snellen.tables.writers import texts

LETTERS = ("one", "two", "three", "four")
READING = Item("i", (), (Probe("q", "Which?", "A", LETTERS), Probe("r", "Where?", "B", LETTERS)))
RUBRIC = Item(
    "i",
    (),
    (
        Probe("m", "It is red.", "true", kind="must_right"),
        Probe("e", "It is big.", "true", kind="easy_wrong"),
    ),
)
DIRECT = Item("i", (), (Probe("q", "How many?", "two"),), text="How many?")


def vote(value: str | bool | None, reason: str | None = None) -> Verdict:
    """A member's verdict on one probe."""
    status = "unscored" if value is None else "scored"
    correct = None if value is None else value in ("A", True)
    raw = "said" if value is not None else "failed"
    return Verdict("i", "q", value, correct, status, reason, raw, Usage(10, 1))  # type: ignore[arg-type]


def panel(rule: Any = "majority", min_valid: int = 2, n: int = 3) -> Panel:
    """A panel of judges a, b, c ..."""
    return Panel(tuple("abcde"[:n]), rule, min_valid)


@pytest.mark.parametrize(
    ("rule", "values", "verdict", "reason"),
    [
        ("majority", ["A", "B", "A"], "A", None),
        ("majority", ["A", "B", "C"], None, "panel_tie"),
        ("majority", ["A", "B", None], None, "panel_tie"),
        ("majority", ["E", "E", None], "E", None),
        ("majority", ["A", None, None], None, "panel_too_few"),
        ("majority", [True, False, False], False, None),
        ("unanimity", ["A", "A", "A"], "A", None),
        ("unanimity", ["A", "A", None], "A", None),
        ("unanimity", ["A", "A", "B"], None, "panel_split"),
        ("unanimity", [True, None, None], None, "panel_too_few"),
    ],
)
def test_votes_make_a_verdict_or_none_with_its_reason(
    rule: str, values: list[Any], verdict: Any, reason: str | None
) -> None:
    """More than half, or all, of the valid votes; ties, splits and too few are unscored."""
    found = count_votes(panel(rule), [vote(value, reason and None) for value in values])
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.status == ("unscored" if verdict is None else "scored")
    assert found.votes == dict(zip("abc", values, strict=True))
    assert found.usage.prompt == 30
    assert found.raw.splitlines()[0].startswith("[a] ")


def test_four_judges_need_three_votes_alike() -> None:
    """Half of the votes is no majority."""
    four = panel(n=4)
    assert count_votes(four, [vote(v) for v in ("A", "A", "B", "C")]).reason == "panel_tie"
    assert count_votes(four, [vote(v) for v in ("A", "A", "A", "C")]).verdict == "A"


def test_a_blank_reply_needs_no_vote() -> None:
    """What the protocol settles without a judge is the panel's verdict as it is."""
    blank = Verdict("i", "q", "E", False, "scored", "empty")
    assert count_votes(panel(), [blank] * 3) == blank


@pytest.mark.parametrize(
    ("members", "min_valid"), [((), 1), (("a",), 1), (("a", "a"), 1), (("a", "b"), 3)]
)
def test_a_panel_that_cannot_vote_is_refused(members: tuple[str, ...], min_valid: int) -> None:
    """It takes two different judges, and no more valid votes than judges."""
    with pytest.raises(UsageError):
        Panel(members, "majority", min_valid)


class Judges:
    """Plays model and judges by role, and keeps what was asked."""

    def __init__(self, says: Callable[[str, Request], str | CallFailure]) -> None:
        self._says = says
        self.asked: list[Request] = []

    def __call__(self, request: Request) -> Answer:
        self.asked.append(request)
        if request.role == "model":
            return Reply("A red thing.")
        said = self._says(request.role, request)
        return Reply(said) if isinstance(said, str) else said


def assessed(must: str, easy: str) -> str:
    """A rubric judge's reply on one statement of each group."""
    groups = f"<GroupA><Result>{must}</Result></GroupA><GroupB><Result>{easy}</Result></GroupB>"
    return f"<Assessment>{groups}</Assessment>"


SEVERAL = ("1. A\n2. C", "1. B\n2. C", "1. B\n2. A")
GRADED = ("[judge] True", "[judge] True", "[judge] False")
GROUPS = (assessed("true", "false"), assessed("true", "true"), assessed("false", "false"))


@pytest.mark.parametrize(
    ("item", "options", "replies", "verdicts"),
    [
        (READING, ReadingOptions(), ("A", "B", "B"), ["B", "B"]),
        (READING, ReadingOptions(questions_a_call=2), SEVERAL, ["B", "C"]),
        (READING, ReadingOptions(control="blind"), ("A", "B", "B"), ["B", "B"]),
        (DIRECT, DirectOptions(), GRADED, [True]),
        (RUBRIC, RubricOptions(), GROUPS, [True, False]),
        (RUBRIC, RubricOptions(one_a_call=True), ("true", "false", "false"), [False, False]),
    ],
)
def test_every_protocol_can_be_judged_by_a_panel(
    item: Item, options: Options, replies: tuple[str, ...], verdicts: list[Any]
) -> None:
    """The model is asked once, each judge as often as one alone; the votes make the verdicts."""
    by_role = dict(zip(("judge", "judge2", "judge3"), replies, strict=True))
    judges = Judges(lambda role, request: by_role[role])
    asks_model = getattr(options, "control", "") != "blind"
    outcome = run_by_hand(
        ask_panel(lambda: flow(item, options), panel(), asks_model=asks_model), judges
    )
    assert [v.verdict for v in outcome.verdicts] == verdicts
    alone = Judges(lambda role, request: replies[0])
    run_by_hand(flow(item, options), alone)
    asked = {role: [r for r in judges.asked if r.role == role] for role in ("model", *by_role)}
    assert asked["model"] == [r for r in alone.asked if r.role == "model"]
    own = [r for r in alone.asked if r.role == "judge"]
    assert asked["judge"] == own
    for seat, role in ((2, "judge2"), (3, "judge3")):
        assert [r.messages for r in asked[role]] == [r.messages for r in own]
        assert {r.purpose for r in asked[role]} == {f"verdict{seat}"}
    leads = {r.lead for r in judges.asked if r.role != "model" and r.lead}
    assert len(leads) in (0, 3)


def test_each_judge_is_asked_again_on_its_own() -> None:
    """One judge's unreadable reply is asked again; the others are not disturbed."""

    def says(role: str, request: Request) -> str:
        return "hm" if role == "judge2" and request.ask == 0 else "A"

    judges = Judges(says)
    outcome = run_by_hand(ask_panel(lambda: flow(READING, ReadingOptions()), panel()), judges)
    assert [v.verdict for v in outcome.verdicts] == ["A", "A"]
    asks = {
        role: sorted(r.ask for r in judges.asked if r.role == role) for role in ("judge", "judge2")
    }
    assert asks == {"judge": [0, 0], "judge2": [0, 0, 1, 1]}


def test_a_judge_that_fails_leaves_the_others_to_vote() -> None:
    """A failed call is no valid vote."""
    failure = CallFailure("timeout", "too slow")
    judges = Judges(lambda role, request: failure if role == "judge" else "B")
    outcome = run_by_hand(ask_panel(lambda: flow(READING, ReadingOptions()), panel()), judges)
    assert [v.verdict for v in outcome.verdicts] == ["B", "B"]
    assert outcome.verdicts[0].votes == {"a": None, "b": "B", "c": "B"}


def letter(said: str) -> Callable[[Any], str]:
    """A judge that always says one letter."""
    return lambda messages: said


CAPTIONS = {"cat": "A tabby cat.", "coffee": "A red cup."}


@pytest.mark.slow
def test_a_run_before_a_panel_names_its_members_and_resumes(tmp_path: Path) -> None:
    """Verdicts, votes, members and disagreement stand in the folder; no call is made twice."""
    calls = 0

    def third(messages: Any) -> str:
        nonlocal calls
        calls += 1
        return "B"

    def again() -> Any:
        return snellen.run(
            "mini-reading", model="m", judge=[letter("A"), letter("A"), third], replies=CAPTIONS,
            out=tmp_path, cache=False,
        )  # fmt: skip

    run = again()
    assert [member.name for member in run.spec.judge.members] == ["<lambda>", "<lambda>-2", "third"]
    scored = [v for v in run.verdicts.values() if v.status == "scored"]
    assert {v.verdict for v in scored} == {"A"}
    assert scored[0].votes == {"<lambda>": "A", "<lambda>-2": "A", "third": "B"}
    lines = (tmp_path / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == run.summary.counts.probes
    assert run.summary.extra["panel"]["disagreement"]["share"] == 1.0
    assert set(run.summary.extra["panel"]["by"]) >= {"category"}
    assert texts(panel_tables(run)[0])[2] == ("third", str(len(scored)), "0.0")
    assert calls == len(scored)
    again()
    assert calls == len(scored)


def test_one_judge_in_a_list_is_no_panel(tmp_path: Path) -> None:
    """A list of one is that judge, and its run has no votes."""
    run = snellen.run(
        "mini-reading", judge=[letter("A")], replies=CAPTIONS, out=tmp_path, cache=False
    )
    assert run.spec.judge.members == ()
    assert panel_votes(run) is None
    assert panel_tables(run) == []


def test_replies_are_judged_again_by_a_panel(tmp_path: Path) -> None:
    """A panel is a judge for rejudge too."""
    run = snellen.run("mini-direct", judge=letter("[judge] True"), replies={"0": "right"},
                      limit=1, out=tmp_path / "one", cache=False)  # fmt: skip
    request = RunRequest(
        "", tmp_path / "three", cache=False, panel="unanimity", min_valid=3,
        judge=[letter("[judge] True"), letter("[judge] True"), letter("[judge] False")],
    )  # fmt: skip
    finished = asyncio.run(execute(rejudge_plan(run, request)))
    [verdict] = load_run(finished.folder).verdicts.values()
    assert (verdict.status, verdict.reason) == ("unscored", "panel_split")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"judge": "embedded", "panel": "majority"}, "a panel needs several judges"),
        ({"judge": ["embedded", "embedded"]}, "several different judges"),
        (
            {"judge": ["a", "b", "c"], "judge_url": ["http://x/v1", "http://y/v1"]},
            "2 URLs do not fit 3 judges",
        ),
        ({"judge": [letter("A"), letter("B")], "panel": "quorum"}, "`panel` cannot be 'quorum'"),
        ({"judge": [letter("A"), letter("B")], "min_valid": 3}, "3 valid votes cannot be asked"),
    ],
)  # fmt: skip
def test_a_panel_that_does_not_fit_is_refused_before_any_call(
    tmp_path: Path, words: dict[str, Any], said: str
) -> None:
    """Each wish that makes no panel is told."""
    with pytest.raises(UsageError, match=said):
        make_plan(RunRequest("mini-reading", tmp_path, replies=CAPTIONS, **words))


def test_gate_first_does_not_go_with_a_panel(tmp_path: Path) -> None:
    """Each judge would shut another gate."""
    request = RunRequest(
        "mini-rubric", tmp_path, replies=CAPTIONS, gate_first=True,
        judge=[letter("A"), letter("B")],
    )  # fmt: skip
    with pytest.raises(UsageError, match="--gate-first does not go with a panel"):
        make_plan(request)


def test_judges_at_several_urls_are_bound_in_order(tmp_path: Path) -> None:
    """The k-th URL belongs to the k-th judge, and the first role keeps its name."""
    plan = make_plan(
        RunRequest("mini-reading", tmp_path, replies=CAPTIONS, judge=["a", "b"],
                   judge_url=["http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"], cache=False)
    )  # fmt: skip
    assert list(plan.bindings) == ["model", role_of(0), role_of(1)]
    urls = [member.url for member in plan.judge.members]
    assert ["127.0.0.1:1/" in urls[0], "127.0.0.1:2/" in urls[1]] == [True, True]
    assert plan.judge.params == {"panel": "majority", "min_valid": 2}
