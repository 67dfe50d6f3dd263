"""`snellen compare`: words, tables, JSON, refusals, and the exit code that gates a release."""

import json
import re
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner
from tests.worlds.compared_runs import (
    PROMPTS,
    a_run,
    bundled,
    prompt,
    reading_items,
    simulated,
    varied,
    write_run,
)

from snellen.__main__ import main
from snellen.cli import cli
from snellen.records import ModelRecord
from snellen.stats.simulation import Captioner, simulate_rivals


@pytest.fixture
def folders(tmp_path):
    """The three bundled captioners under a perfect judge, as run folders."""
    names = ("thorough", "terse", "careless")
    return {name: write_run(bundled(name), tmp_path / name) for name in names}


@pytest.fixture
def call(monkeypatch, capsys):
    """Runs `snellen compare` and gives its exit code, stdout and stderr."""

    def run(*words):
        argv = ["snellen", "compare", "--resamples", "300", *map(str, words)]
        monkeypatch.setattr(sys, "argv", argv)
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    return run


def test_it_says_in_words_who_is_better(call, folders):
    """A settled difference stands with its interval, its p value and who is better."""
    code, out, _ = call(folders["careless"], folders["thorough"])
    assert code == 0
    line = next(line for line in out.splitlines() if "Overall %" in line)
    assert "thorough is better" in line
    assert re.search(r"  \+\d+\.\d \[\d+\.\d, \d+\.\d\]  ", line)
    assert "<0.001" in line
    assert "15 items in 15 clusters" in out


def test_it_says_what_would_settle_an_open_difference(call, tmp_path):
    """An unsettled difference says so, and which difference such images would show."""
    captioners = [Captioner(mention=rate) for rate in (0.75, 0.78, 0.75)]
    folders = [
        write_run(simulated(*rival, name=f"m{k}"), tmp_path / f"m{k}")
        for k, rival in enumerate(simulate_rivals(10, captioners, seed=5))
    ]
    _, out, _ = call(*folders, "--metric", "coverage")
    lines = [line for line in out.splitlines() if " against " in line and "settled" in line]
    assert len(lines) == 3
    for line in lines:
        assert "not settled: these images show a difference of " in line


def test_a_run_beside_itself_shows_no_difference(call, folders):
    """Every metric of a run against itself says `no difference`."""
    _, out, _ = call(folders["terse"], folders["terse"])
    assert out.count("no difference") == 4


def test_more_than_two_runs_are_ranked(call, folders):
    """With three runs there is a standing by rank and a line a pair, adjusted together."""
    parent = folders["terse"].parent
    _, out, _ = call(parent, "--metric", "overall_acc")
    standing = out[out.index("Standing in overall_acc") : out.index("Pairs in")]
    assert standing.index("thorough") < standing.index("careless") < standing.index("terse")
    assert "hold for all 3 of them together" in out
    assert out.count(" is better") + out.count(" is worse") == 3


def test_dimensions_and_flips_are_listed_when_asked_for(call, folders):
    """`--by` gives a table of effects, `--flips N` at most N probes each way."""
    words = (folders["thorough"], folders["careless"])
    _, out, _ = call(*words, "--by", "category", "--flips", "2")
    assert "OCR/Text" in out
    assert out.count("right to wrong") == 2
    code, _, err = call(*words, "--by", "colour")
    assert code == 2
    assert "category" in err


def test_json_holds_the_whole_comparison(call, folders):
    """`--json` prints pairs, intervals, ranks, flips by id and effects by label."""
    _, out, _ = call(folders["thorough"], folders["careless"], "--json", "--metric", "coverage")
    found = json.loads(out)
    metric = found["metrics"][0]
    pair = metric["pairs"][0]
    assert (metric["name"], pair["first"], pair["second"]) == ("coverage", "thorough", "careless")
    assert pair["interval"][0] < pair["difference"] < pair["interval"][1]
    assert sum(metric["standings"][0]["ranks"]) == pytest.approx(1.0)
    flips = found["flips"][0]
    ids = {probe.id for item in bundled("terse").items for probe in item.probes}
    assert {probe for _, _, probe in flips["to_wrong"]} <= ids
    assert len(flips["to_wrong"]) > 0
    assert "Count" in pair["by"]["category"]


def test_markdown_tables_are_for_pasting(call, folders):
    """`--markdown` prints tables with bars."""
    _, out, _ = call(folders["thorough"], folders["careless"], "--markdown")
    assert "| Metric | thorough | careless | Difference | p | Finding |" in out


def test_a_worse_run_ends_with_code_4(call, folders):
    """`--fail-if-worse` exits with 4 when the last run is significantly worse, else with 0."""
    worse = (folders["thorough"], folders["careless"], "--fail-if-worse", "overall_acc")
    code, out, err = call(*worse)
    assert code == 4
    assert "Overall %" in out
    assert "careless is significantly worse than thorough in overall_acc" in err
    assert call(*worse, "--margin", "0.9")[0] == 0
    better = (folders["careless"], folders["thorough"], "--fail-if-worse", "overall_acc")
    assert call(*better)[0] == 0
    assert call(folders["terse"], folders["terse"], "--fail-if-worse", "coverage")[0] == 0


def test_the_gate_minds_which_direction_is_better(call, folders):
    """More uncertainty is worse; a metric without a direction cannot gate."""
    words = (folders["thorough"], folders["terse"], "--fail-if-worse")
    assert call(*words, "uncertain_ratio")[0] == 4
    code, _, err = call(*words, "tokens_per_image")
    assert code == 2
    assert "neither better nor worse" in err


def test_a_gate_that_cannot_be_told_fails(call, folders, tmp_path):
    """A last run of which nothing was scored passes no gate: exit code 1, not 0."""
    down = a_run(bundled("terse").items, [{}], name="down", benchmark="mini-reading")
    folder = write_run(down, tmp_path / "down")
    code, _, err = call(folders["terse"], folder, "--fail-if-worse", "overall_acc")
    assert code == 1
    assert "cannot be told" in err
    assert "warning: 199 of 199 probes of down are unscored" in err


def test_a_refusal_is_one_line_and_a_hint(call, folders, tmp_path):
    """Another judge is refused with both names; `--across judge` compares and shows the change."""
    other = varied(bundled("careless"), judge=ModelRecord("strict"))
    folder = write_run(other, tmp_path / "other")
    code, out, err = call(folders["careless"], folder)
    assert (code, out) == (1, "")
    assert "differ in judge: `perfect` and `strict`" in err
    assert "hint: if that is the question, say so: --across judge" in err
    code, out, _ = call(folders["careless"], folder, "--across", "judge")
    assert code == 0
    assert "across judge: judge: perfect -> strict" in out


def test_across_prompt_prints_the_lines_that_changed(call, tmp_path):
    """What changed in a prompt is printed before the tables."""
    items = reading_items([3, 3])
    run = a_run(items, [{}], name="a")
    other = varied(run, prompts=PROMPTS | {"reply": prompt("Describe all.")})
    folders = [write_run(run, tmp_path / "a"), write_run(other, tmp_path / "b")]
    _, out, _ = call(*folders, "--across", "prompt")
    assert "    -Describe it." in out
    assert "    +Describe all." in out


def test_items_in_common_are_compared_on_request(call, folders, tmp_path):
    """Different items are refused; `--common` says how many it leaves out."""
    run = bundled("careless")
    kept = run.items[:10]
    short = replace(
        varied(run, items={item.id: item.digest for item in kept}, model=ModelRecord("short")),
        items=kept,
    )
    folder = write_run(short, tmp_path / "short")
    code, _, err = call(folders["careless"], folder)
    assert code == 1
    assert "--common compares the 10" in err
    code, out, _ = call(folders["careless"], folder, "--common")
    assert code == 0
    assert "left out: 5 items" in out
    assert "10 items in 10 clusters" in out


def test_one_run_is_misuse(call, folders):
    """A single run cannot be compared: exit code 2 and what to give."""
    code, _, err = call(folders["terse"])
    assert code == 2
    assert "two runs" in err


def test_a_wrong_dimension_is_refused_before_anything_is_printed(call, folders):
    """`--by` with an unknown name prints no table and says which there are."""
    code, out, err = call(folders["terse"], folders["careless"], "--by", "weather")
    assert (code, out) == (2, "")
    assert "no dimension `weather`" in err
    assert "there are: category" in err


def test_a_run_of_an_unknown_protocol_is_one_line(call, folders):
    """A run folder of a protocol to come is refused by name."""
    file = folders["terse"] / "run.json"
    spec = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(spec | {"protocol": "hearing"}), encoding="utf-8")
    code, _, err = call(folders["thorough"], folders["terse"])
    assert code == 1
    assert "names an unknown protocol `hearing`" in err
    assert "Traceback" not in err


def test_a_leaderboard_says_which_runs_do_not_belong_beside_the_others(tmp_path):
    """`show` names runs on other items or under another parser; controls say it themselves."""
    items = reading_items([2, 2, 2])
    base = a_run(items, [{("image0", "image0-0"): "A", ("image1", "image1-1"): "B"}], name="base")
    made = {
        "base": base,
        "cut": a_run(items[:2], [{("image0", "image0-0"): "B"}], name="cut"),
        "strict": varied(base, model=ModelRecord("strict"), options={"parser": "official"}),
        "blind": varied(base, model=ModelRecord("b"), options={"control": "blind"}),
        "alike": varied(base, model=ModelRecord("alike")),
    }
    folders = [str(write_run(run, tmp_path / name)) for name, run in made.items()]
    shown = CliRunner().invoke(cli, ["show", *folders])
    assert shown.exit_code == 0, shown.output
    told = [line.strip() for line in shown.output.splitlines() if "was not measured like" in line]
    assert told == [
        "strict was not measured like base: other option parser",
        "cut was not measured like base: other items",
    ]
    counts = shown.output.partition("Scored and unscored probes")[2]
    assert "b (blind)" in counts
