"""`snellen build rubrics` and its statistics as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.worlds.capprobe_world import some_pictures
from tests.worlds.rubrics_world import construct

from snellen.builders.rubrics.options import GoldenOptions
from snellen.cli import cli
from snellen.cli.build import request_of
from snellen.errors import UsageError


def typed(*words: str) -> Result:
    return CliRunner().invoke(cli, ["build", *words], standalone_mode=False)


def test_stages_are_listed_in_their_order() -> None:
    """The eight stages of rubrics."""
    assert json.loads(typed("rubrics", "stages", "--json").stdout) == [
        "curate", "golden", "pool", "propose", "ground", "trial", "review", "export",
    ]  # fmt: skip


@pytest.mark.slow
def test_statistics_print_what_the_paper_prints(tmp_path: Path) -> None:
    """Words a caption, statements an image and domains, of the folder and of the benchmark."""
    out = tmp_path / "out"
    construct(some_pictures(tmp_path / "in", "coffee.jpg", "flower.jpg"), out)
    shown = typed("statistics", str(out)).stdout
    for words in ("Must-Right an image", "Words a golden caption", "Natural Scene", "At 12"):
        assert words in shown
    assert "Discarded for want of unanimity" in shown
    assert "complexity, kept minus all: -1.000" in shown
    whole = json.loads(typed("statistics", str(out), "--json").stdout)
    assert whole["discards"]["whole"] == {"pictures": 2, "discarded": 1}
    assert whole["thresholds"][0]["would_keep"]["18"] == 1
    counts = json.loads(typed("statistics", str(out / "benchmark"), "--json").stdout)["counts"]
    assert (counts["images"], counts["must_right"], counts["easy_wrong"]) == (1, 2, 3)
    typed("statistics", str(out), "--figures", str(tmp_path / "figures"))
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        "domains.svg",
        "domains.png",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [("[golden]\nround = 2\n", "did you mean `rounds`"),
     ("[golden]\nrounds = 1\n", "keeps nothing"),
     ("[curate.thresholds]\n'Nature' = 3\n", "no domain is called"),
     ("[roles.authors]\nmodel = 'm'\n", "did you mean `author`")],
)  # fmt: skip
def test_a_wrong_configuration_is_named(tmp_path: Path, text: str, said: str) -> None:
    """The error says which key is wrong, and what was probably meant."""
    file = tmp_path / "build.toml"
    file.write_text(text, encoding="utf-8")
    result = typed("rubrics", str(tmp_path), "--config", str(file), "--out", str(tmp_path / "o"))
    error = result.exception
    assert error is not None
    assert said in f"{error} {getattr(error, 'hint', '')}"


def test_unanimity_can_be_said_on_the_command(tmp_path: Path) -> None:
    """It wins over the configuration, and a setting that keeps nothing is refused."""
    file = tmp_path / "build.toml"
    file.write_text("[golden]\nrounds = 1\nunanimity = 'first-round'\n", encoding="utf-8")
    words = ("rubrics", str(tmp_path), "--config", str(file), "--out", str(tmp_path / "o"))
    error = typed(*words, "--unanimity", "after-rewrite", "--dry-run").exception
    assert isinstance(error, UsageError)
    assert "keeps nothing" in error.message
    options = {"config": None, "settings": None, "out": str(tmp_path / "o"), "seed": None,
               "reviewed_only": False, "until": "", "only": "", "limit": None, "max_cost": None,
               "concurrency": None, "max_unscored": 0.05, "unanimity": "first-round"}  # fmt: skip
    request = request_of("rubrics", str(tmp_path), options)
    assert request.config.options[GoldenOptions] == GoldenOptions(unanimity="first-round")
