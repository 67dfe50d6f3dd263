"""Audits: a random sample of a run's verdicts before people or a stronger judge, and what follows.

Only here is a score corrected: from verdicts of that very run. Every scored verdict has the same
chance to be drawn, and draws are spread over images.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from snellen.errors import DataError, UsageError
from snellen.keys import rng_for
from snellen.metrics import ratio
from snellen.protocols.protocol import first_label
from snellen.records import LETTERS, Item, Params, Probe, Verdict, walk
from snellen.runs.folder import Run
from snellen.stats.bootstrap import holm, intervals
from snellen.stats.correction import (
    Corrected,
    Trials,
    audit_tally,
    prediction_powered,
    rates_differ,
    rogan_gladen,
    wilson,
)

# Where the audit of a run lies in its folder.
AUDIT_FILE = "audit.jsonl"
FEWEST_OF_A_KIND = 5
ALARM = 0.05
ABSTENTION = "cannot be determined from the caption"

Key = tuple[str, int, str]
Truth = str | bool


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One verdict for people to check: a line of `audit.jsonl`.

    `verdict` is what the judge said. `truth` is what it should have said: a letter (reading), or
    true or false; empty where nobody has looked. `reference` is shown for direct questions only.
    """

    id: str
    probe_id: str
    repeat: int
    question: str
    options: tuple[str, ...]
    reference: str
    reply: str
    verdict: Truth
    truth: Truth = ""


@dataclass(frozen=True, slots=True)
class Score:
    """One number of a run over its scored probes: raw, and corrected by the audit.

    `powered` needs no assumption about the judge; `inverted` is the estimate of Rogan and Gladen,
    None where too few of a kind were audited or the judge is no better than a coin. Of what is
    so, `sensitivity` is the share that the judge calls so; of what is not, `specificity` that not.
    """

    metric: str
    powered: Corrected
    inverted: Corrected | None
    sensitivity: Trials
    specificity: Trials


@dataclass(frozen=True, slots=True)
class Differing:
    """An error rate that the audit finds other than the attached check; `p_value` after Holm."""

    metric: str
    rate: str
    check: Trials
    audit: Trials
    p_value: float


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit says; `is_checked` where a fitting judge check is attached to compare with."""

    n_scored: int
    n_audited: int
    scores: tuple[Score, ...]
    differing: tuple[Differing, ...]
    is_checked: bool


def sample_audit(run: Run, n: int, *, seed: int = 0) -> list[AuditRow]:
    """`n` scored verdicts of a run, drawn with a seed, in proportion to labels and over images.

    Images and the probes of each are shuffled and put in the order of their first label, then every
    k-th probe is taken from a random start: each has the same chance, which the correction relies
    on, and each capability its share.

    Raises:
        UsageError: the run has no scored verdicts.
    """
    rng = rng_for(seed, "audit")
    known = list(_scored(run))
    if not known:
        raise UsageError(f"{run.folder} has no scored verdict to audit", hint="finish it first")
    by_image: dict[str, list[tuple[Item, Probe, Verdict]]] = {}
    for entry in known:
        by_image.setdefault(entry[0].cluster or entry[0].id, []).append(entry)
    images = list(by_image.values())
    line = [
        images[int(i)][int(k)]
        for i in rng.permutation(len(images))
        for k in rng.permutation(len(images[int(i)]))
    ]
    line.sort(key=lambda entry: label_of(run, entry[0], entry[1]))
    step = max(1.0, len(line) / n)
    places = np.arange(rng.uniform(0, step), len(line), step).astype(int)[:n]
    return [_row(run, *line[place]) for place in places]


def label_of(run: Run, item: Item, probe: Probe) -> str:
    """What an audit is broken down by: a probe's category, else its item's first domain."""
    category, domains = run.protocol.labels(item, probe)
    return category or next(iter(domains), "") or first_label(item)


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """On how many of `n` verdicts a person agrees with the judge; the interval is Wilson's."""

    label: str
    hits: int
    n: int
    interval: tuple[float, float]


def agreement_of(run: Run, rows: Sequence[AuditRow]) -> list[LabelAgreement]:
    """Agreement over all audited verdicts (label ""), then by label in the order of names."""
    probes = {(item.id, probe.id): (item, probe) for item in run.items for probe in item.probes}
    counts: dict[str, list[int]] = {}
    for row in rows:
        if row.truth == "":
            continue
        for label in ("", label_of(run, *probes[row.id, row.probe_id])):
            count = counts.setdefault(label, [0, 0])
            count[0] += row.truth == row.verdict
            count[1] += 1
    return [
        LabelAgreement(label, hits, n, wilson(hits, n))
        for label, (hits, n) in sorted(counts.items())
    ]


def _scored(run: Run) -> Iterator[tuple[Item, Probe, Verdict]]:
    for item, repeat in walk(run.items, run.spec.repeats):
        for probe in item.probes:
            verdict = run.verdicts.get((item.id, repeat, probe.id))
            if verdict is not None and verdict.status == "scored":
                yield item, probe, verdict


def _row(run: Run, item: Item, probe: Probe, verdict: Verdict) -> AuditRow:
    reply = run.replies.get((item.id, verdict.repeat))
    options = tuple(f"{LETTERS[k]}. {text}" for k, text in enumerate(probe.options))
    if options:
        options = (*options, f"{LETTERS[len(options)]}. {ABSTENTION}")
    return AuditRow(
        item.id,
        probe.id,
        verdict.repeat,
        probe.question,
        options,
        "" if run.protocol.describes else probe.answer,
        "" if reply is None else reply.reply or "",
        "" if verdict.verdict is None else verdict.verdict,
    )


def write_audit(rows: Sequence[AuditRow], path: Path) -> None:
    """Writes rows as JSON-lines, whole or not at all."""
    encode = msgspec.json.Encoder().encode
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(b"".join(encode(row) + b"\n" for row in rows))
    part.replace(path)


def read_audit(path: str | Path, run: Run) -> list[AuditRow]:
    """The rows of an audit file that belongs to a run.

    Raises:
        DataError: the file, a row, or a truth in it is wrong; or it belongs to another run.
    """
    file = Path(path)
    try:
        # Not `splitlines`: a reply may hold U+2028 and the like, which JSON leaves as they are.
        lines = file.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"cannot be read: {error}",
            file=file,
            hint="give the file that `snellen audit RUN --sample N --out FILE` wrote",
        ) from error
    probes = {(item.id, probe.id): probe for item in run.items for probe in item.probes}
    rows: dict[Key, AuditRow] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            row = _decoded(line, file, number)
            row = _checked(row, run, probes.get((row.id, row.probe_id)), (file, number))
            earlier = rows.setdefault(_row_key(row), row)
            place = (file, number)
            if row.truth != earlier.truth:
                raise DataError(
                    f"probe {row.probe_id} of {row.id} stands twice, as `{earlier.truth}` and "
                    f"`{row.truth}`",
                    file=place[0],
                    row=place[1],
                    field="truth",
                    hint="keep one row a verdict",
                )
    if not rows:
        raise DataError("holds no rows", file=file, hint="write one with `snellen audit RUN --out`")
    return list(rows.values())


def _row_key(row: AuditRow) -> Key:
    return row.id, row.repeat, row.probe_id


def _decoded(line: str, file: Path, number: int) -> AuditRow:
    try:
        return msgspec.json.decode(line, type=AuditRow)
    except msgspec.MsgspecError as error:
        raise DataError(
            f"is no row of an audit: {error}",
            file=file,
            row=number,
            hint='change nothing but `truth`: a letter, or true or false; "" where nobody looked',
        ) from error


def _checked(row: AuditRow, run: Run, probe: Probe | None, place: tuple[Path, int]) -> AuditRow:
    file, number = place
    verdict = run.verdicts.get((row.id, row.repeat, row.probe_id))
    if probe is None or verdict is None or verdict.verdict != row.verdict:
        raise DataError(
            f"probe {row.probe_id} of {row.id} has no such verdict in {run.folder}",
            file=file,
            row=number,
            hint="the audit was sampled from another run, or the run was judged again since",
        )
    return replace(row, truth=_truth(row.truth, probe, place))


def _truth(given: Truth, probe: Probe, place: tuple[Path, int]) -> Truth:
    if given == "" or (isinstance(given, bool) and not probe.options):
        return given
    letters = LETTERS[: len(probe.options) + 1] if probe.options else ""
    text = str(given).strip().upper()
    if letters and len(text) == 1 and text in letters:
        return text
    if not letters and text in {"TRUE", "FALSE"}:
        return text == "TRUE"
    wanted = f"a letter from A to {letters[-1]}" if letters else "true or false"
    raise DataError(
        f"`{given}` is no verdict",
        file=place[0],
        row=place[1],
        field="truth",
        hint=f"give {wanted}, or leave it empty",
    )


@dataclass(frozen=True, slots=True)
class _Question:
    """A number of a run: which verdicts count, and what stands for it in a check's confusion."""

    metric: str
    counts: Callable[[Truth, Probe], bool]
    classes: frozenset[str]


_QUESTIONS: Mapping[str, tuple[_Question, ...]] = {
    "reading": (
        _Question("overall_acc", lambda v, p: v == p.answer, frozenset({"right"})),
        _Question("coverage", lambda v, p: not _abstains(v, p), frozenset({"right", "wrong"})),
    ),
    "rubric": (_Question("atomic_acc", lambda v, p: v is True, frozenset({"true"})),),
    "direct": (_Question("accuracy", lambda v, p: v is True, frozenset({"true"})),),
}


def _abstains(value: Truth, probe: Probe) -> bool:
    return value == LETTERS[len(probe.options)]


def evaluate_audit(run: Run, rows: Sequence[AuditRow]) -> Audit:
    """Raw and corrected scores of a run, from the rows in which somebody found the truth.

    Raises:
        UsageError: no row has a truth.
    """
    truths = {_row_key(row): row.truth for row in rows if row.truth != ""}
    if not truths:
        raise UsageError(
            "no row of the audit has a truth yet",
            hint="fill the field `truth`, then read it again; a judge that was to fill it gave no "
            "verdict that could be read",
        )
    known = list(_scored(run))
    questions = _QUESTIONS[run.spec.protocol]
    scores = tuple(_score(question, known, truths) for question in questions)
    attached = run.spec.judge_check
    fits = attached is not None and not attached.get("mismatch")
    confusion = attached["confusion"] if attached is not None and fits else None
    return Audit(len(known), len(truths), scores, _differing(scores, confusion), fits)


def _score(
    question: _Question,
    known: Sequence[tuple[Item, Probe, Verdict]],
    truths: Mapping[Key, Truth],
) -> Score:
    images = [item.cluster or item.id for item, _, _ in known]
    called = np.array(
        [question.counts("" if v.verdict is None else v.verdict, p) for _, p, v in known], float
    )
    found = np.array(
        [_found(question, p, truths.get((v.id, v.repeat, v.probe_id))) for _, p, v in known], float
    )
    tally = audit_tally(images, called, found)
    looked = ~np.isnan(found)
    so, not_so = looked & (found == 1.0), looked & (found == 0.0)
    sensitivity = Trials(float(called[so].sum()), float(so.sum()))
    specificity = Trials(float((1.0 - called[not_so]).sum()), float(not_so.sum()))
    powered = prediction_powered(tally)
    inverted = _inverted(tally, powered.raw, sensitivity, specificity)
    return Score(question.metric, powered, inverted, sensitivity, specificity)


def _found(question: _Question, probe: Probe, truth: Truth | None) -> float:
    return math.nan if truth is None else float(question.counts(truth, probe))


def _inverted(
    tally: NDArray[np.float64], raw: float, sensitivity: Trials, specificity: Trials
) -> Corrected | None:
    if min(sensitivity.n, specificity.n) < FEWEST_OF_A_KIND:
        return None
    spread = intervals(tally[:, :2], lambda s: ratio(s[..., 1:2], s[..., :1]), rates=[True])
    error = float(spread.standard_error[0])
    if not math.isfinite(error):
        return None
    found = rogan_gladen(raw, error, sensitivity=sensitivity, specificity=specificity)
    return None if math.isnan(found.estimate) else found


def _differing(scores: Sequence[Score], confusion: Params | None) -> tuple[Differing, ...]:
    if confusion is None:
        return ()
    found = []
    for score in scores:
        classes = next(
            q.classes for qs in _QUESTIONS.values() for q in qs if q.metric == score.metric
        )
        for rate, audit in (("sensitivity", score.sensitivity), ("specificity", score.specificity)):
            # The check's share of truths within (or outside) some classes that the judge saw so.
            positive = rate == "sensitivity"
            hits = n = 0
            for truth, row in zip(confusion["truths"], confusion["counts"], strict=True):
                if (truth in classes) != positive:
                    continue
                for said, count in zip(confusion["said"], row, strict=True):
                    if said != "unscored":
                        n += count
                        hits += count * ((said in classes) == positive)
            check = Trials(hits, n)
            if check.n and audit.n:
                p = rates_differ(check, audit)
                found.append(Differing(score.metric, rate, check, audit, p))
    adjusted = holm([one.p_value for one in found])
    pairs = zip(found, adjusted, strict=True)
    return tuple(replace(one, p_value=float(p)) for one, p in pairs if p < ALARM)


def attached_audit(run: Run) -> list[LabelAgreement]:
    """The agreement in the audit that lies in a run's folder; empty without one.

    Raises:
        DataError: the audit belongs to other verdicts, or a row of it is wrong.
    """
    file = run.folder / AUDIT_FILE
    return agreement_of(run, read_audit(file, run)) if file.is_file() else []
