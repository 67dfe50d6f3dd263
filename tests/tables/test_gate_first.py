"""What is shown of runs that asked about the gate first, alone and beside full runs."""

import pytest
from click.testing import CliRunner
from tests.worlds.rubric_world import NATURAL, PAGES, Scene, judge, write_world

import snellen
from snellen.cli import cli
from snellen.figures.selection import charts_of
from snellen.report.page import report
from snellen.report.sections import sections_of, tables_of
from snellen.studies.rubric import rubric_coverage
from snellen.tables import boards
from snellen.tables.rubric import study_tables
from snellen.tables.runs import breakdown, counts_table, leaderboard
from snellen.tables.writers import texts

SCENES = (
    Scene("a", NATURAL, None, ("mention cup",), ("mention tray", "never boat")),
    Scene("b", NATURAL, None, ("mention dog", "mention cat"), ("mention hat", "never sea")),
    Scene("c", PAGES, None, ("mention page",), ("mention stamp",) + ("never ink",) * 3),
)
REPLIES = {
    "good": {"a": "cup tray", "b": "dog cat", "c": "page stamp"},
    "poor": {"a": "cup boat", "b": "dog hat", "c": "stamp"},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Both models, in full and with the gate first; only `poor` has shut gates."""
    folder = tmp_path_factory.mktemp("runs")
    data = write_world(folder / "data", SCENES)
    return {
        (model, way): snellen.run(
            str(data), model=model, judge=lambda m: judge(m[-1]["content"]),
            out=folder / way / model, cache=False, replies=replies, gate_first=way == "gate",
        )
        for model, replies in REPLIES.items()
        for way in ("full", "gate")
    }  # fmt: skip


def test_no_metric_of_a_full_run_disappears(runs):
    """A gate-first run in the lead takes no column from the full run below it."""
    best, below = runs["good", "full"], runs["poor", "gate"]
    for table in (
        leaderboard([below, best]),
        boards.main_table([below, best]),
    ):
        assert "Atomic %" in table.headings
        assert texts(table)[1][table.headings.index("Atomic %")] == "-"
    for first, second in (("poor", "good"), ("good", "poor")):
        shown = leaderboard([runs[first, "gate"], runs[second, "full"]])
        assert "Gap, points" in shown.headings


def test_what_is_not_given_is_said_of_the_run_that_lacks_it(runs):
    """Beside a full run the note names the run whose metrics are missing, and which they are."""
    notes = leaderboard([runs["good", "full"], runs["poor", "gate"]]).notes
    [note] = [note for note in notes if "gate first" in note]
    assert note.startswith("poor: ")
    assert note.endswith("atomic_acc, easy_wrong_acc, easy_wrong_avg, reliability_gap")
    page = report(sections_of([runs["good", "full"], runs["poor", "gate"]], with_charts=False))
    assert note in page


def test_skipped_statements_have_a_count_of_their_own(runs):
    """Skipped statements lower no share of scored ones, and are counted beside them."""
    run = runs["poor", "gate"]
    table = breakdown(run, "category")
    scored = table.headings.index("Scored")
    assert [row[scored] for row in texts(table)] == ["1/1", "5/5"]
    assert not any("!" in note for note in table.notes)
    assert any("6 probes were skipped" in note for note in table.notes)
    counts = counts_table([run, runs["good", "full"]])
    assert counts.column("Skipped") == (6, 0)
    assert "1/1" in texts(boards.across([run], "category", "score"))[0][1]


def test_comparisons_say_what_cannot_be_compared(runs):
    """A comparison with a run that skipped statements names the metrics that it cannot give."""
    folders = [str(runs[model, "gate"].folder) for model in ("good", "poor")]
    shown = CliRunner().invoke(cli, ["compare", *folders])
    assert shown.exit_code == 0, shown.output
    assert "poor skipped statements (--gate-first): not compared: atomic_acc" in shown.output
    asked = CliRunner().invoke(cli, ["compare", *folders, "--metric", "atomic_acc"])
    assert asked.exit_code != 0
    assert "atomic_acc" in str(asked.exception)


def test_studies_name_the_runs_they_leave_out(runs):
    """Studies of all statements are over full runs alone, and say which runs are not in them."""
    full = [runs["good", "full"], runs["poor", "full"]]
    titles = [table.title for table in study_tables([*full, runs["poor", "gate"]])]
    assert "Rubric coverage" in titles
    gates = study_tables([runs["good", "full"], runs["poor", "gate"]])[0]
    assert gates.notes[-1].endswith("in no study of all statements: poor")


def test_the_report_holds_the_studies(runs):
    """Tables of the studies, and the coverage curve, are in the page and among the files."""
    [section] = sections_of([runs["good", "full"], runs["poor", "full"]])
    names = {"study-Shut-gates-by-domain", "study-Length-bias", "study-Rubric-coverage"}
    assert names <= set(tables_of(section))
    assert "coverage" in {chart.name for chart in section.charts}
    page = report([section])
    assert all(f">{title}</h4>" in page for title in ("Length bias", "Rubric coverage"))


def test_the_gap_says_whom_it_lacks(runs):
    """A run without atomic accuracy is missing from the gap figure, which says so."""
    charts = charts_of([runs["good", "full"], runs["poor", "gate"]])
    gap = next(chart for chart in charts if chart.name == "gap")
    assert "1 of 2 runs" in gap.caption


def test_models_of_one_name_both_count(runs):
    """Coverage keeps two runs of one model apart."""
    points = rubric_coverage([runs["poor", "full"], runs["poor", "full"]], draws=2)
    assert list(points[0].score_sd) == ["poor #1", "poor #2"]
