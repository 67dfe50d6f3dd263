"""What a summary says about a run of captions beyond its metrics: deviations and calibration."""

from __future__ import annotations

from typing import Any

from snellen.protocols.captionqa import NO_CAPTION
from snellen.protocols.choices import LETTERS
from snellen.runs.folder import Run
from snellen.stats.agreement import Calibration, calibration

CONTROL_NOTES = {
    "blind": "control blind: the judge got no caption and had to choose; this is no score of a "
    "model",
    "swapped": "control swapped: each picture was read from another picture's caption; this is no "
    "score of a model",
}


def reading_notes(run: Run) -> list[str]:
    """Notes about how captions were read, none where it was the protocol."""
    options = run.spec.options
    notes = []
    control = str(options.get("control") or "")
    if control in CONTROL_NOTES:
        notes.append(CONTROL_NOTES[control])
    several = int(options.get("questions_a_call") or 1)
    if several > 1:
        notes.append(f"{several} questions in one judge call: not the protocol")
    if options.get("option_seed") is not None:
        notes.append(f"options shuffled with seed {options['option_seed']}")
    if options.get("decide") == "logprob":
        notes.append("the judge's most probable letter counts, not the one that it wrote")
    if options.get("kept_share") is not None:
        notes.append(f"captions cut to {100 * float(options['kept_share']):g}% of their length")
    missing = [v for v in run.verdicts.values() if v.reason == NO_CAPTION]
    if missing:
        images = len({v.id for v in missing})
        notes.append(f"{len(missing)} questions skipped: no caption for {images} images")
    return notes


def judge_calibration(run: Run) -> Calibration | None:
    """How well the probability of the judge's letter matches how often it was right.

    Abstentions are left out, since E is never right. None where no probabilities were stored.
    """
    answers = committed_answers(run)
    return calibration(*zip(*answers, strict=True)) if answers else None


def committed_answers(run: Run) -> list[tuple[float, float]]:
    """The probability of each letter A-D that the judge gave, 0 to 1, and whether it was right."""
    uncertain = {(i.id, p.id): LETTERS[len(p.options)] for i in run.items for p in i.probes}
    return [
        (min(1.0, v.probabilities.get(str(v.verdict), 0.0)), float(v.correct is True))
        for v in run.verdicts.values()
        if v.status == "scored"
        and v.probabilities
        and v.verdict != uncertain.get((v.id, v.probe_id))
    ]


def calibration_extra(run: Run) -> dict[str, Any]:
    """The judge's calibration as plain data for `summary.json`; empty where there is none."""
    found = judge_calibration(run)
    if found is None:
        return {}
    bins = [
        {"low": b.low, "high": b.high, "n": b.n, "confidence": b.confidence, "accuracy": b.accuracy}
        for b in found.bins
        if b.n
    ]
    return {"calibration": {"ece": found.ece, "n": sum(b["n"] for b in bins), "bins": bins}}
