"""An audit corrects a run's score, and says where the judge errs otherwise than was measured."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.runs.test_sensitivity import READING_ERRORS, attached, check_of, real_values
from tests.worlds.compared_runs import write_run
from tests.worlds.judged_world import World, boolean_world, reading_world

import snellen
from snellen.cli import cli
from snellen.cli.audit import notices
from snellen.errors import DataError, UsageError
from snellen.judges.audit import (
    AuditRow,
    Score,
    evaluate_audit,
    read_audit,
    sample_audit,
    write_audit,
)
from snellen.judges.second_judge import fill_with_judge
from snellen.runs.folder import Run
from snellen.runs.request import RunRequest
from snellen.tables.judges import audit_table
from snellen.tables.writers import texts

HARSH = np.array([[0.7, 0.02, 0.28], [0.0, 0.9, 0.1], [0.02, 0.02, 0.96]])


def audited(world: World, n: int, *, seed: int = 0) -> list[AuditRow]:
    """A sample in which people found the truth."""
    return [
        replace(row, truth=world.truth[row.id, row.probe_id])
        for row in sample_audit(world.run, n, seed=seed)
    ]


def score_of(run: Run, rows: list[AuditRow], metric: str) -> Score:
    """One score of an audit."""
    return next(s for s in evaluate_audit(run, rows).scores if s.metric == metric)


@pytest.mark.parametrize("seed", range(3))
def test_100_audited_verdicts_hit_the_truth_where_the_raw_score_misses(seed: int) -> None:
    """The corrected interval holds the true score, which is far from the raw one."""
    world = reading_world(errors=HARSH, images=100, seed=seed)
    real = real_values(world)
    rows = audited(world, 100, seed=seed)
    for metric in ("overall_acc", "coverage"):
        score = score_of(world.run, rows, metric)
        assert score.powered.raw < real[metric] - 0.1
        assert score.powered.low <= real[metric] <= score.powered.high


@pytest.mark.slow
def test_both_corrected_scores_cover_the_truth_in_most_samples() -> None:
    """Of 60 samples of one run at least 54 intervals hold the true score."""
    world = boolean_world(errors=np.array([[0.85, 0.15], [0.1, 0.9]]), images=50)
    real = real_values(world)["atomic_acc"]
    powered = inverted = 0
    for seed in range(60):
        score = score_of(world.run, audited(world, 100, seed=seed), "atomic_acc")
        assert score.inverted is not None
        powered += score.powered.low <= real <= score.powered.high
        inverted += score.inverted.low <= real <= score.inverted.high
    assert min(powered, inverted) >= 54


def test_every_scored_verdict_has_the_same_chance_and_images_are_spread() -> None:
    """Over many seeds probes are drawn alike often, and one sample touches most images."""
    world = reading_world(images=10, questions=6)
    drawn: dict[tuple[str, str], int] = {}
    for seed in range(600):
        for row in sample_audit(world.run, 10, seed=seed):
            drawn[row.id, row.probe_id] = drawn.get((row.id, row.probe_id), 0) + 1
    assert len(drawn) == 60
    assert min(drawn.values()) > 60
    assert max(drawn.values()) < 145
    assert len({row.id for row in sample_audit(world.run, 10)}) == 10


def test_shifted_error_rates_are_called_and_equal_ones_are_not() -> None:
    """A check that measured other rates than the audit finds is contradicted."""
    world = reading_world(errors=HARSH, images=100)
    rows = audited(world, 150)
    fits = attached(world.run, check_of(HARSH, "reading", n=500))
    shifted = attached(world.run, check_of(READING_ERRORS.clip(0, 1) * [1, 1, 0.2], "reading"))
    assert evaluate_audit(fits, rows).differing == ()
    assert notices(evaluate_audit(fits, rows)) == [
        "the audit's error rates do not differ from those of the attached judge check"
    ]
    found = evaluate_audit(shifted, rows)
    assert {one.rate for one in found.differing} >= {"sensitivity"}
    assert "do not hold for these replies" in notices(found)[0]
    assert notices(evaluate_audit(world.run, rows)) == []


def test_a_sample_goes_to_a_file_and_comes_back_filled(tmp_path: Path) -> None:
    """People fill letters in any case; empty rows are not audited."""
    world = reading_world(images=20)
    file = tmp_path / "audit.jsonl"
    write_audit(sample_audit(world.run, 20), file)
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert set(lines[0]) >= {"id", "probe_id", "question", "options", "reply", "verdict", "truth"}
    assert lines[0]["options"][0] == "A. one"
    assert "answer" not in lines[0]
    for line in lines[:10]:
        line["truth"] = "e"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    rows = read_audit(file, world.run)
    assert [row.truth for row in rows] == ["E"] * 10 + [""] * 10
    assert evaluate_audit(world.run, rows).n_audited == 10


def test_a_wrong_truth_is_named_with_its_row(tmp_path: Path) -> None:
    """File, row and field stand in the message."""
    world = boolean_world("direct", images=5)
    rows = sample_audit(world.run, 5)
    write_audit([rows[0], replace(rows[1], truth="perhaps")], tmp_path / "a.jsonl")
    with pytest.raises(DataError, match="row 2, field `truth`: `perhaps` is no verdict"):
        read_audit(tmp_path / "a.jsonl", world.run)


def test_a_reply_may_hold_any_character(tmp_path: Path) -> None:
    """Separators that are no line ends in JSON, and an editor's byte order mark, do no harm."""
    world = reading_world(images=5)
    rows = [replace(r, reply="a\u2028b\x85c\x0bd", truth="A") for r in sample_audit(world.run, 4)]
    write_audit(rows, tmp_path / "a.jsonl")
    text = (tmp_path / "a.jsonl").read_text(encoding="utf-8")
    (tmp_path / "b.jsonl").write_text("\ufeff" + text.replace("\n", "\r\n"), encoding="utf-8")
    assert read_audit(tmp_path / "a.jsonl", world.run) == rows
    assert read_audit(tmp_path / "b.jsonl", world.run) == rows


def test_a_verdict_has_one_truth(tmp_path: Path) -> None:
    """The same row twice counts once; with two truths it is refused."""
    world = reading_world(images=5)
    [row] = sample_audit(world.run, 1)
    file = tmp_path / "a.jsonl"
    write_audit([replace(row, truth="A"), replace(row, truth="A")], file)
    assert len(read_audit(file, world.run)) == 1
    write_audit([replace(row, truth="A"), replace(row, truth="B")], file)
    with pytest.raises(DataError, match=r"row 2.*twice, as `A` and `B`"):
        read_audit(file, world.run)


def test_a_new_sample_spares_what_people_filled_in(tmp_path: Path) -> None:
    """`--sample` on a file with truths is refused; what is left empty is told."""
    run, file = reading_world(images=5).run, tmp_path / "a.jsonl"
    folder = str(write_run(run, tmp_path / "run"))
    draw = ["audit", folder, "--sample", "4", "--out", str(file)]
    assert CliRunner().invoke(cli, draw, standalone_mode=False).exception is None
    assert CliRunner().invoke(cli, draw, standalone_mode=False).exception is None
    rows = read_audit(file, run)
    write_audit([replace(rows[0], truth="A"), *rows[1:]], file)
    before = file.read_bytes()
    refused = CliRunner().invoke(cli, draw, standalone_mode=False).exception
    assert isinstance(refused, UsageError)
    assert "1 of its verdicts have a truth" in refused.message
    assert file.read_bytes() == before
    told = CliRunner().invoke(cli, ["audit", folder, "--read", str(file)], standalone_mode=False)
    assert "notice: 3 of 4 rows have no truth" in told.output


def test_one_audited_verdict_has_no_interval() -> None:
    """The table then shows the corrected rate alone, which is a rate."""
    world = boolean_world(images=5)
    [row] = sample_audit(world.run, 1)
    shown = audit_table(world.run, evaluate_audit(world.run, [replace(row, truth=not row.verdict)]))
    corrected = texts(shown)[0][2]
    assert 0.0 <= float(corrected) <= 100.0


def test_an_audit_of_another_run_is_refused(tmp_path: Path) -> None:
    """A sample only fits the verdicts that it was drawn from."""
    world = boolean_world("direct", images=5)
    write_audit(sample_audit(world.run, 5), tmp_path / "a.jsonl")
    other = boolean_world("direct", images=5, share=0.0).run
    with pytest.raises(DataError, match="has no such verdict"):
        read_audit(tmp_path / "a.jsonl", other)


def test_an_audit_without_truths_is_refused() -> None:
    """An empty file corrects nothing."""
    run = boolean_world(images=5).run
    with pytest.raises(UsageError, match="no row of the audit has a truth yet"):
        evaluate_audit(run, sample_audit(run, 5))


def test_a_stronger_judge_fills_the_sample(tmp_path: Path) -> None:
    """The judge is asked about the sampled questions only, and its verdicts become the truth."""
    asked: list[Any] = []

    async def strong(messages: list[dict[str, Any]]) -> str:
        asked.append(messages)
        return "B"

    run = snellen.run(
        "mini-reading", model="m", judge=lambda messages: "A", out=tmp_path / "run",
        replies={"cat": "A tabby cat.", "coffee": "A cup."}, limit=4, cache=False,
    )  # fmt: skip
    rows = sample_audit(run, 6)
    request = RunRequest("", "", judge=strong, cache=False)
    filled = asyncio.run(fill_with_judge(run, rows, request))
    assert [row.truth for row in filled] == ["B"] * len(rows)
    assert len(asked) == len(rows)
    table = audit_table(run, evaluate_audit(run, filled))
    assert texts(table)[0][0] == "Overall %"


@pytest.mark.slow
def test_corrected_intervals_cover_the_truth_over_120_runs() -> None:
    """Of 120 simulated runs with 100 audited verdicts at least 110 intervals hold the truth."""
    hits = {("overall_acc", "powered"): 0, ("overall_acc", "inverted"): 0}
    hits |= {("coverage", kind): 0 for kind in ("powered", "inverted")}
    for seed in range(120):
        world = reading_world(errors=HARSH, images=100, seed=seed)
        real = real_values(world)
        for score in evaluate_audit(world.run, audited(world, 100, seed=seed)).scores:
            for kind in ("powered", "inverted"):
                found = getattr(score, kind)
                hits[score.metric, kind] += found.low <= real[score.metric] <= found.high
    assert min(hits.values()) >= 110
