"""Prints how well and how fast the embedded judge does on the labelled material of `mini`.

Beside its reading stands the plain rule that it must beat: for each option the best gain in cosine
of question and option over the question alone, plus a tenth of the option's words that the caption
holds; E below 0.03.

python benchmarks/measure_embedded.py [FOLDER]
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import numpy as np

from snellen.embedded.encoder import Encoder
from snellen.embedded.evidence import terms_of
from snellen.embedded.judge import EmbeddedJudge
from snellen.embedded.words import clauses, sentences, stem
from snellen.judges.labelled import JudgeRow, Trial, ask_bare, load_trials, measure
from snellen.records import ReadTask

MINI = Path(__file__).parents[1] / "src" / "snellen" / "data" / "mini"
COLUMNS = "{:9} {:7} {:>5} {:>9} {:>9} {:>7} {:>7} {:>7}"


def main() -> None:
    """Loads, judges all once for the rates, and again with a cold memory for the speed."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else MINI
    start = time.perf_counter()
    judge = EmbeddedJudge()
    print(f"version {judge.version}, fidelity {judge.fidelity}")
    print(f"load {time.perf_counter() - start:.2f} s")
    asyncio.run(_report(judge, folder))


async def _report(judge: EmbeddedJudge, folder: Path) -> None:
    trials = load_trials(folder)
    original = [trial for trial in trials if trial.half == "dev"]
    start = time.perf_counter()
    await asyncio.gather(*(judge.call(ask_bare(trial)) for trial in original))
    print(f"judging {len(original)} dev calls, cold: {time.perf_counter() - start:.2f} s")
    start = time.perf_counter()
    rows = await measure(judge, folder)
    print(
        f"judging all {len(trials)} calls, half of them warm: {time.perf_counter() - start:.2f} s"
    )
    heads = ("protocol", "half", "n", "unscored", "accuracy", "stated", "absent", "fooled")
    print(COLUMNS.format(*heads))
    for row in rows:
        print(_line(row))
    encoder = Encoder()
    for half in ("dev", "frozen"):
        some = [trial for trial in trials if (trial.protocol, trial.half) == ("reading", half)]
        print(_plain_line(encoder, some))
    await judge.close()


def _line(row: JudgeRow) -> str:
    rates = (
        row.accuracy,
        row.right_when_stated,
        row.uncertain_when_absent,
        row.fooled_when_changed,
    )
    shown = ("-" if rate is None else f"{rate:.3f}" for rate in rates)
    return COLUMNS.format(row.protocol, row.half, row.n, row.unscored, *shown)


def _plain_line(encoder: Encoder, trials: list[Trial]) -> str:
    """The plain rule's rates on trials of one half of the reading material."""
    judged = [(t.labels[0], plain_rule(encoder, t.task)) for t in trials]
    right = [truth == letter for truth, letter in judged]
    stated = [r for r, (truth, _) in zip(right, judged, strict=True) if truth != "E"]
    absent = [r for r, (truth, _) in zip(right, judged, strict=True) if truth == "E"]
    rates = (f"{np.mean(some):.3f}" for some in (right, stated, absent))
    return COLUMNS.format("  plain", trials[0].half, len(judged), 0, *rates, "")


def plain_rule(encoder: Encoder, task: ReadTask) -> str:
    """The letter that the plain rule gives."""
    parts = [part for s in sentences(task.caption) for part in (s, *clauses(s))]
    if not parts:
        return "E"
    asked = [task.question, *(f"{task.question} {option}" for option in task.options)]
    vectors = encoder.embed([*parts, *asked])
    cosines = np.stack([vectors[p] for p in parts]) @ np.stack([vectors[a] for a in asked]).T
    gains = (cosines[:, 1:] - cosines[:, :1]).max(axis=0)
    held, *options = ({stem(t) for t in terms_of(text)} for text in (task.caption, *task.options))
    shares = [len(own & held) / max(1, len(own)) for own in options]
    scores = gains + 0.1 * np.array(shares)
    return "ABCD"[int(scores.argmax())] if scores.max() >= 0.03 else "E"


if __name__ == "__main__":
    main()
