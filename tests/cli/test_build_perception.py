"""`snellen build perception` and its statistics as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.worlds.perception_world import construct, results

from snellen.cli import cli


def typed(*words: str) -> Result:
    return CliRunner().invoke(cli, ["build", *words], standalone_mode=False)


def test_stages_are_listed_in_their_order() -> None:
    """The nine stages of perception."""
    assert json.loads(typed("perception", "stages", "--json").stdout) == [
        "collect", "induce", "attribute", "map", "decompose", "write", "verify", "review", "export",
    ]  # fmt: skip


def test_help_says_what_a_source_is() -> None:
    """Result files here, pictures for the other kinds."""
    shown = " ".join(typed("perception", "--help").stdout.split())
    assert "SOURCE is a result file, or a folder of them" in shown
    assert "build perception results/" in shown
    assert "SOURCE is a folder of pictures" in " ".join(typed("rubrics", "--help").stdout.split())


@pytest.mark.slow
def test_statistics_print_counts_agreement_and_map(tmp_path: Path) -> None:
    """Of the folder, with figures; and of the benchmark in it."""
    out, figures = tmp_path / "out", tmp_path / "figures"
    construct(results(tmp_path / "in", "seer"), out)
    shown = typed("statistics", str(out), "--figures", str(figures)).stdout
    for words in ("Questions by capability", "Agreement of attributors", "Weighted Jaccard",
                  "visual_comparison_error 100%", "Funnel"):  # fmt: skip
        assert words in shown
    found = json.loads(typed("statistics", str(out), "--json").stdout)
    assert set(found) == {"counts", "agreement", "map"}
    assert {path.name for path in figures.iterdir()} == {
        f"{name}.{kind}" for name in ("likeness", "error-mix", "capabilities")
        for kind in ("svg", "png")
    }  # fmt: skip
    own = json.loads(typed("statistics", str(out / "benchmark"), "--json").stdout)
    assert (own["counts"], own["map"]) == (found["counts"], None)


@pytest.mark.parametrize(
    ("text", "said"),
    [("[perception]\nattributor = 2\n", "did you mean `attributors`"),
     ("[perception]\nquestions = [3, 1]\n", "questions is from 3 to 1"),
     ("[panel]\nagree = 2.0\n", "agree"),
     ("[roles.solvers]\nmodel = 'm'\n", "did you mean `solver`")],
)  # fmt: skip
def test_a_wrong_configuration_is_named(tmp_path: Path, text: str, said: str) -> None:
    """The error says which key is wrong, and what was probably meant."""
    file = tmp_path / "build.toml"
    file.write_text(text, encoding="utf-8")
    result = typed("perception", str(tmp_path), "--config", str(file), "--out", str(tmp_path / "o"))
    error = result.exception
    assert error is not None
    assert said in f"{error} {getattr(error, 'hint', '')}"
