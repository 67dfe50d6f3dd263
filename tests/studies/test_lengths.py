"""Captions cut at sentence ends, judged again, and the curve that comes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.benchmark_files import reading_folder

import snellen
from snellen.cli import cli
from snellen.errors import UsageError
from snellen.records import ReplyRow
from snellen.runs.folder import Run, load_run
from snellen.studies.lengths import cut_captions, cut_text, sentence_ends, shorten

TEXT = "A red cup stands here. Dr. Who, e.g. a doctor, sits. It costs 3.50 euros! All is well."


def test_sentences_end_at_their_signs_only() -> None:
    """Abbreviations and decimal points end nothing; the text's own end counts."""
    assert [TEXT[:end].rsplit(maxsplit=1)[-1] for end in sentence_ends(TEXT)] == [
        "here.", "sits.", "euros!", "well.",
    ]  # fmt: skip
    assert sentence_ends("no sign at all") == [14]
    assert sentence_ends("一只猫。它睡了。") == [4, 8]
    assert sentence_ends("- one\n- two")[0] == 6


@pytest.mark.parametrize("share", [0.01, 0.25, 0.5, 0.75, 0.9, 1.0])
def test_a_cut_is_a_prefix_that_ends_a_sentence(share: float) -> None:
    """What is kept begins the text, ends with a sentence, and is never empty."""
    cut = cut_text(TEXT, share)
    assert cut
    assert TEXT.startswith(cut)
    assert cut[-1] in ".!"


def test_more_is_kept_for_a_larger_share() -> None:
    """Lengths grow with the share, and all of it is the text itself."""
    lengths = [len(cut_text(TEXT, share / 20)) for share in range(1, 21)]
    assert lengths == sorted(lengths)
    assert cut_text(TEXT, 1.0) == TEXT
    for share in (0.0, 1.2):
        with pytest.raises(UsageError):
            cut_text(TEXT, share)


def test_failed_and_blank_captions_stay_what_they_are() -> None:
    """A failure keeps its status, and tokens are counted anew."""
    rows = {
        ("a", 0): ReplyRow("a", "One. Two.", tokens=4),
        ("b", 0): ReplyRow("b", None, status="failed", failure="timeout"),
        ("c", 0): ReplyRow("c", "", status="empty"),
    }
    cut = cut_captions(rows, 0.5)
    assert (cut["a", 0].reply, cut["a", 0].tokens, cut["a", 0].variant) == ("One.", 0, "cut:0.5")
    assert cut["b", 0].failure == "timeout"
    assert (cut["c", 0].reply, cut["c", 0].status) == ("", "empty")


def stored_run(tmp_path: Path, **words: Any) -> Run:
    """Captions whose second half holds what the questions ask for."""
    return snellen.run(
        str(reading_folder(tmp_path / "bench")),
        judge=lambda messages: "B" if "Two cups" in messages[-1]["content"] else "E",
        replies={"a": "A table. Two cups.", "b": "A shelf. Two cups."},
        out=tmp_path / "run",
        **words,
    )


def test_a_control_is_not_cut(tmp_path: Path) -> None:
    """Captions of other pictures say nothing about a model's own length."""
    run = stored_run(tmp_path, control="swapped")
    with pytest.raises(UsageError, match="control"):
        shorten(run, 0.5)


def test_the_command_prints_the_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One run a share, each with its own folder and a note, and a table with a row a share."""
    stored_run(tmp_path)
    words = ["lengths", str(tmp_path / "run"), "--judge", "embedded", "--share", "50"]
    words += ["--share", "100", "--out", str(tmp_path / "cut"), "--quiet", "--json"]
    assert not cli.main(words, standalone_mode=False)
    table = json.loads(capsys.readouterr().out)
    assert [row[0] for row in table["rows"]] == [0.5, 1.0]
    tokens = [row[1]["value"] for row in table["rows"]]
    assert tokens[0] < tokens[1]
    half = load_run(tmp_path / "cut" / "50")
    assert half.replies["a", 0].reply == "A table."
    assert half.summary is not None
    assert "captions cut to 50% of their length" in half.summary.notes
    assert not cli.main(words, standalone_mode=False)
