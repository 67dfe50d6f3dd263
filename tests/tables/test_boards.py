"""Tables of several runs: places, breakdowns across models, usage, and their three formats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.worlds.compared_runs import bundled
from tests.worlds.report_runs import reading_run, rubric_run

from snellen.runs.summary import summarise, summary_of
from snellen.tables import boards
from snellen.tables.runs import breakdown
from snellen.tables.table import Table, measured, places, plain
from snellen.tables.writers import WRITERS, texts, to_csv, to_latex, to_markdown


def test_the_best_three_of_a_column_are_marked(tmp_path: Path) -> None:
    """Bold, underlined and italic go to the best three; lower is better for the uncertain share."""
    runs = [reading_run(tmp_path, f"m{n}", right=n) for n in (1, 2, 3, 4)]
    table = boards.main_table(runs)
    names = [row[0] for row in texts(table)]
    assert names == ["m4", "m3", "m2", "m1"]
    overall = table.headings.index("Overall %")
    uncertain = table.headings.index("Uncertain %")
    tokens = table.headings.index("Tokens/image")
    assert [marks[overall] for marks in places(table)] == [1, 2, 3, 0]
    assert [marks[uncertain] for marks in places(table)] == [1, 2, 3, 0]
    assert [marks[tokens] for marks in places(table)] == [0, 0, 0, 0]


def test_equal_numbers_share_a_place(tmp_path: Path) -> None:
    """Two runs with the same value have the same mark."""
    runs = [reading_run(tmp_path, f"m{k}", right=n) for k, n in enumerate((4, 4, 2, 1))]
    table = boards.main_table(runs)
    overall = table.headings.index("Overall %")
    assert [marks[overall] for marks in places(table)] == [1, 1, 2, 3]


def test_two_runs_have_one_mark_a_column(tmp_path: Path) -> None:
    """Where only two are compared the second is not marked as good."""
    table = boards.main_table([reading_run(tmp_path, "a"), reading_run(tmp_path, "b", right=1)])
    overall = table.headings.index("Overall %")
    assert [marks[overall] for marks in places(table)] == [1, 0]


def test_marks_are_written_in_markdown_and_latex(tmp_path: Path) -> None:
    """Markdown and LaTeX show the three marks, CSV the bare numbers."""
    runs = [reading_run(tmp_path, f"m{n}", right=n) for n in (1, 2, 3, 4)]
    table = boards.main_table(runs)
    markdown, latex = to_markdown(table), to_latex(table)
    assert "| m4 | **78.26 (75.00 to 79.17)** |" in markdown
    assert "| m3 | <ins>60.87 (58.33 to 62.50)</ins> |" in markdown
    assert "| m2 | *43.48 (41.67 to 45.83)* |" in markdown
    assert r"m4 & \textbf{78.26 (75.00 to 79.17)} &" in latex
    assert r"m3 & \underline{60.87 (58.33 to 62.50)} &" in latex
    assert r"m2 & \textit{43.48 (41.67 to 45.83)} &" in latex
    assert "m4,0.782608695652174,0.75,0.7916666666666666," in to_csv(table)


def test_foreign_names_are_no_markup_in_any_format(tmp_path: Path) -> None:
    """Angle brackets, bars, commas and LaTeX's own characters in a name stay text."""
    table = boards.main_table([reading_run(tmp_path, "a|<b>,\\x_1%")])
    assert r"| a\|&lt;b>,\x_1% |" in to_markdown(table)
    assert '"a|<b>,\\x_1%",' in to_csv(table)
    latex = to_latex(table)
    assert r"a\textbar{}\textless{}b\textgreater{},\textbackslash{}x\_1\% &" in latex


@pytest.mark.parametrize(
    ("name", "markdown", "latex"),
    [
        ("p <0.001", "p &lt;0.001", r"p \textless{}0.001"),
        ("*star* `code`", r"\*star\* \`code\`", "{}*star* `code`"),
        ("_v_ my_model", r"\_v\_ my_model", r"\_v\_ my\_model"),
        ("[a](b) [1, 2]", r"[a]\(b) [1, 2]", "{}[a](b) [1, 2]"),
        ("a\\*b", r"a\\\*b", r"a\textbackslash{}*b"),
        ("two\n\nlines", "two  lines", "two  lines"),
    ],
)
def test_signs_of_markup_are_escaped(name: str, markdown: str, latex: str) -> None:
    """Signs that Markdown, LaTeX or its line end before a row would take for their own are text."""
    table = Table("t", plain("Model", "p"), ((name, "1"),))
    assert f"| {markdown} | 1 |" in to_markdown(table)
    assert f"\n{latex} & 1 " in to_latex(table)


def test_breakdowns_across_models_count_what_is_scored(tmp_path: Path) -> None:
    """Each cell has value, interval and scored of all probes; a column counts the items."""
    runs = [reading_run(tmp_path, "a"), reading_run(tmp_path, "b", right=1)]
    table = boards.across(runs, "category", "overall_acc")
    assert table.headings == ("Category", "a", "b", "Items")
    rows = {row[0]: row for row in texts(table)}
    assert rows["Count"][1].startswith("75.0 [")
    assert rows["Count"][1].endswith("] 8/8")
    assert rows["Attributes"][1] == "57.1 [33.5, 77.9] (50.0 to 62.5) 7/8"
    assert rows["Count"][3] == "4"


def test_a_dimension_that_a_run_lacks_is_left_out(tmp_path: Path) -> None:
    """A run without a dimension has no column in its breakdown."""
    run = reading_run(tmp_path, "a")
    assert run.summary is not None
    bare = replace(run, summary=replace(run.summary, by={}, group_counts={}))
    table = boards.across([run, bare], "l1", "overall_acc")
    assert table.headings == ("Domain", "a", "Items")


def test_unknown_cost_and_tokens_are_called_unknown(tmp_path: Path) -> None:
    """Model and judge have a row each; what an endpoint did not say is never a zero."""
    table = boards.usage_table([reading_run(tmp_path)])
    model, judge = (dict(zip(table.headings, row, strict=True)) for row in texts(table))
    assert (model["Role"], model["Retries"], model["Reasoning tokens"]) == ("model", "2", "77")
    assert model["Cost USD"] == "0.2500"
    assert (judge["Calls"], judge["Prompt tokens"], judge["Cost USD"]) == (
        "24",
        "unknown",
        "unknown",
    )


def test_usage_of_a_run_without_a_summary_is_unknown(tmp_path: Path) -> None:
    """A run that ended before its summary was written has unknown calls and cost."""
    table = boards.usage_table([replace(reading_run(tmp_path), summary=None)])
    assert {cell for row in table.rows for cell in row[2:]} == {"unknown"}


def test_low_fidelity_stands_beside_the_name(tmp_path: Path) -> None:
    """Every table names runs under the embedded judge as low fidelity, in every format."""
    run = rubric_run(tmp_path, "m", fidelity="low")
    for table in (
        boards.main_table([run]),
        boards.readings_across([run]),
        boards.usage_table([run]),
    ):
        for write in WRITERS.values():
            assert "m (low fidelity)" in write(table)
    for write in WRITERS.values():
        assert "m (low fidelity)" in write(boards.across([run], "category", "score"))


def test_all_readings_are_numbers_for_other_programs(tmp_path: Path) -> None:
    """Value, interval ends and the other readings have a column each."""
    table = boards.readings_across([reading_run(tmp_path)])
    rows = {row[1]: dict(zip(table.headings, row, strict=True)) for row in texts(table)}
    overall = rows["Overall %"]
    assert (overall["Value"], overall["Over scored"], overall["Upper"]) == ("75.0", "78.3", "79.2")
    assert float(overall["Low 95%"]) <= 75.0 <= float(overall["High 95%"])


def test_each_number_of_a_breakdown_has_its_interval(tmp_path: Path) -> None:
    """A label's number on few items is shown with how far it may be off, like the whole's."""
    run = reading_run(tmp_path, "m", right=2)
    table = breakdown(run, "category")
    column = table.headings.index("Overall %")
    groups = summary_of(run).by["category"]
    known = {label: metrics["overall_acc"] for label, metrics in groups.items()}
    assert any(value.ci95 for value in known.values())
    for label, *cells in table.rows:
        assert cells[column - 1] == measured(known[str(label)])


def test_readings_name_the_clusters_that_they_rest_on() -> None:
    """Questions about one picture are one cluster: the interval knows no more than those."""
    run = bundled("terse", "direct")
    run = replace(run, summary=summarise(run, status="complete"))
    table = boards.readings_across([run])
    row = dict(zip(table.headings, texts(table)[0], strict=True))
    assert (row["n"], row["Clusters"]) == ("55", "8")
