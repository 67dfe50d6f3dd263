"""Service and published rows, as tables and through `snellen show`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.benchmark_files import reading_folder

import snellen
from snellen.cli import cli
from snellen.errors import UsageError
from snellen.records import ReplyRow, Usage
from snellen.runs.folder import Run
from snellen.studies.providers import is_refusal, service_of
from snellen.studies.published import published_models
from snellen.tables.studies import provider_table, published_table
from snellen.tables.writers import texts


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return snellen.run(
        str(reading_folder(tmp_path / "bench")),
        model="m",
        judge=lambda _: "B",
        replies={"a": "x", "b": "x"},
        out=tmp_path / "run",
    )


def with_service(run: Run, rows: list[ReplyRow], cost: float | None) -> Run:
    assert run.summary is not None
    usage = {"model": {"cost_usd": cost}, "judge": {"cost_usd": 9.0}, "cost_usd": None}
    return replace(
        run,
        replies={(row.id, 0): row for row in rows},
        summary=replace(run.summary, usage=usage),
    )


def test_service_is_counted_from_replies(run: Run) -> None:
    """Percentiles over answered calls, means over known counts, costs without the judge's."""
    rows = [
        ReplyRow("a", "Fine.", latency_s=1.0, usage=Usage(5, 100, 60)),
        ReplyRow("b", "I'm sorry, I can't describe people.", latency_s=3.0, usage=Usage(5, 20)),
        ReplyRow("c", None, status="failed", failure="timeout", latency_s=60.0),
        ReplyRow("d", "Long", finish_reason="length", latency_s=2.0),
    ]
    found = service_of(with_service(run, rows, 0.02))
    assert (found.latency_p50_s, found.latency_p95_s) == (2.0, pytest.approx(2.9))
    assert (found.output_tokens, found.thinking_tokens) == (60.0, 60.0)
    assert (found.failed, found.refused, found.cut) == (1, 1, 1)
    assert found.cost_item_usd == pytest.approx(0.005)
    assert run.summary is not None
    assert found.cost_right_usd == pytest.approx(0.02 / run.summary.counts.correct)


def test_what_is_not_known_is_a_dash(run: Run) -> None:
    """Replies that were given have no latency, no tokens and no price."""
    [row] = texts(provider_table([with_service(run, [ReplyRow("a", "x")], None)]))
    assert row[1:] == ("1", "-", "-", "-", "-", "-", "-", "0", "0", "0")


@pytest.mark.parametrize(
    ("row", "refused"),
    [
        (ReplyRow("a", None, status="failed", failure="content_filter"), True),
        (ReplyRow("a", "", finish_reason="content_filter", status="empty"), True),
        (ReplyRow("a", "I cannot help with this picture."), True),
        (ReplyRow("a", "Unfortunately, I am unable to see it."), True),
        (ReplyRow("a", "A sign that reads: I'm sorry, we are closed."), False),
        (ReplyRow("a", "I cannot make out the plate. " + "The car is red. " * 40), False),
    ],
)
def test_a_refusal_is_short_and_begins_by_declining(row: ReplyRow, refused: bool) -> None:
    """A sign that says sorry, or a long caption with one doubt, is no refusal."""
    assert is_refusal(row) is refused


def as_benchmark(run: Run, name: str) -> Run:
    return replace(run, spec=replace(run.spec, benchmark=name))


def test_published_rows_stand_beside_ones_own(run: Run) -> None:
    """Fourteen rows in order of the headline, each with its judge, and a warning."""
    table = published_table("capprobe", [as_benchmark(run, "capprobe")])
    assert len(table.rows) == 14
    overall = [float(row[1].split()[0]) for row in texts(table)]
    assert overall == sorted(overall, reverse=True)
    own = next(row for row in texts(table) if row[0] == "m (yours)")
    assert own[-1] == run.spec.judge.name
    assert {row[-1] for row in texts(table) if row != own} == {"Qwen3-32B"}
    assert "depend on the judge" in table.notes[0]


@pytest.mark.parametrize(
    ("benchmark", "row"),
    [
        (
            "perception_rubrics",
            ("Seed-2.0-Lite", "70.07", "82.85", "95.59", "84.69", "84.23", "gpt-oss-120b"),
        ),
        (
            "capprobe",
            (
                "GPT-4o", "34.41", "94.46", "63.57", "36.43", "173", "2.55", "1.91", "0.569",
                "Qwen3-32B",
            ),
        ),
        ("perception_bench", ("GPT-5.6-Sol", "59.7", "gpt-oss-120b")),
    ],
)  # fmt: skip
def test_published_rows_are_printed_as_published(
    run: Run, benchmark: str, row: tuple[str, ...]
) -> None:
    """Every digit of the paper stands in the table beside the number of items, none is rounded."""
    table = published_table(benchmark, [as_benchmark(run, benchmark)])
    assert row in [(*found[:-2], found[-1]) for found in texts(table)]


@pytest.mark.parametrize(
    ("benchmark", "metric", "best"),
    [("perception_bench", "accuracy", 0.597), ("perception_rubrics", "score", 0.7)],
)
def test_published_rates_are_fractions(benchmark: str, metric: str, best: float) -> None:
    """Per cents of the papers become fractions of 1, as all rates here."""
    values = [row.metrics[metric] for row in published_models(benchmark)]
    assert max(values) == pytest.approx(best, abs=0.02)
    assert min(values) > 0


def test_nothing_is_published_of_an_unknown_benchmark() -> None:
    """The error names the benchmarks that have published rows."""
    with pytest.raises(UsageError, match="mine") as caught:
        published_models("mine")
    assert "capprobe" in caught.value.hint


@pytest.mark.parametrize(
    ("flag", "title"),
    [("--diagnose", "Response patterns"), ("--provider", "Latency, tokens and cost of the model")],
)
def test_show_prints_what_is_asked_for(
    run: Run, flag: str, title: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without its flag a table stays away."""
    folder = str(run.folder)
    assert not cli.main(["show", folder], standalone_mode=False)
    assert title not in capsys.readouterr().out
    assert not cli.main(["show", folder, flag], standalone_mode=False)
    assert title in capsys.readouterr().out


def test_show_sets_controls_beside_their_run(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run given with its controls gets their table without a flag."""
    words: dict[str, Any] = {"judge": judge_b, "out": tmp_path / "blind", "control": "blind"}
    snellen.run(str(tmp_path / "bench"), **words)
    real = tmp_path / "real"
    captions = {"a": "x", "b": "x"}
    snellen.run(str(tmp_path / "bench"), model="m", judge=judge_b, replies=captions, out=real)
    assert not cli.main(["show", str(real), str(tmp_path / "blind")], standalone_mode=False)
    out = capsys.readouterr().out
    assert "Controls of m on mine" in out
    assert "Flagged questions" in out


def judge_b(messages: list[dict[str, Any]]) -> str:
    return "B"
