"""The reading protocol (CapProbe): a judge answers questions about a picture from its caption.

Source: CapProbe (arXiv 2608.11074), sections 3.9 and 4, and its figure 8 for the judge's task.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import numpy as np

from snellen.fences import fence_caption
from snellen.flows import (
    REASKS,
    Flow,
    Given,
    Judged,
    add_usage,
    again,
    ask_judge,
    ask_model,
    failed_reason,
)
from snellen.keys import rng_for
from snellen.letters import parse_letter, parse_letters
from snellen.records import (
    CallFailure,
    Item,
    Message,
    Outcome,
    Probe,
    ReadTask,
    Reply,
    ReplyRow,
    Request,
    Usage,
    Verdict,
)
from snellen.replies import Parsed
from snellen.tallies import (
    Array,
    Metric,
    ProbeTable,
    Sums,
    Tally,
    column,
    pool,
    quotient,
    ratio,
)
from snellen.templates import Template, bundled

UNCERTAIN = "Not mentioned / Cannot be determined"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
TOP_LOGPROBS = 20

# One caption stands in front of all its questions.
_fenced = lru_cache(512)(fence_caption)


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How captions are asked for and read.

    `control` is "" or `blind` (empty caption, no option E) or `swapped` (captions of other
    pictures, which arrive in `given`). `decide` is `letter`, or `logprob` for the most probable
    letter. `option_seed` shuffles A-D for each question; None keeps them as stored. `given` holds
    replies that exist already. `several` is the prompt for more than one question a call.
    """

    describe: Template = field(default_factory=lambda: bundled("describe_reading"))
    judge: Template = field(default_factory=lambda: bundled("reading_judge"))
    forced: Template = field(default_factory=lambda: bundled("reading_judge_forced"))
    several: Template = field(default_factory=lambda: bundled("reading_judge_several"))
    remind: Template = field(default_factory=lambda: bundled("remind_letter"))
    remind_several: Template = field(default_factory=lambda: bundled("remind_letters"))
    reasks: int = REASKS
    parser: str = "snellen"
    decide: str = "letter"
    logprobs: bool = False
    questions_a_call: int = 1
    option_seed: int | None = None
    control: str = ""
    given: Given | None = None

    @property
    def has_uncertain(self) -> bool:
        """Whether the judge may answer E."""
        return self.control != "blind"

    @property
    def prompts(self) -> Mapping[str, Template]:
        """The prompts that this run uses, by purpose."""
        judge, remind = self.judge if self.has_uncertain else self.forced, self.remind
        if self.questions_a_call > 1:
            judge, remind = self.several, self.remind_several
        return {"reply": self.describe, "verdict": judge, "reminder": remind}


@dataclass(frozen=True, slots=True)
class Shown:
    """A question as the judge sees it: options in shown order, and the stored letter of each."""

    options: tuple[str, ...]
    letters: tuple[str, ...]


def show_options(probe: Probe, options: ReadingOptions) -> Shown:
    """The options as stored, or shuffled with a seed of the question's own."""
    n = len(probe.options)
    if options.option_seed is None:
        return Shown(probe.options, tuple(LETTERS[:n]))
    order = rng_for(options.option_seed, probe.id, "options").permutation(n)
    return Shown(tuple(probe.options[k] for k in order), tuple(LETTERS[int(k)] for k in order))


def describe(item: Item, prompt: Template) -> Request:
    """The request that asks a model for a caption: the picture, then the prompt."""
    return Request("model", (Message("user", (*item.images, prompt.text)),), "reply")


def read_item(item: Item, options: ReadingOptions, repeat: int = 0) -> Flow[Outcome]:
    """The whole protocol for one picture: a caption, then a verdict on each question."""
    if options.control == "blind":
        row = ReplyRow(item.id, "", status="ok", repeat=repeat)
    else:
        request = describe(item, options.describe)
        [row] = yield [ask_model(request, item.id, repeat=repeat, given=options.given)]
    settled = settle_without_judge(item, row, options)
    if settled is not None:
        return Outcome(row, settled)
    if options.questions_a_call > 1:
        size = options.questions_a_call
        groups = [item.probes[k : k + size] for k in range(0, len(item.probes), size)]
        nested = yield [read_several(item, group, row, options) for group in groups]
        return Outcome(row, tuple(v for verdicts in nested for v in verdicts))
    verdicts = yield [read_one(item, probe, row, options) for probe in item.probes]
    return Outcome(row, tuple(verdicts))


def settle_without_judge(
    item: Item, row: ReplyRow, options: ReadingOptions
) -> tuple[Verdict, ...] | None:
    """The verdicts on a reply that needs no judge: a failed call, or a blank reply (every E)."""
    failed = failed_reason(row)
    if failed is not None:
        return tuple(unscored(item, probe, failed, repeat=row.repeat) for probe in item.probes)
    if row.status == "ok" or not options.has_uncertain:
        return None
    return tuple(
        Verdict(
            item.id,
            probe.id,
            LETTERS[len(probe.options)],
            False,
            "scored",
            row.status,
            repeat=row.repeat,
        )
        for probe in item.probes
    )


def unscored(item: Item, probe: Probe, reason: str, *, repeat: int = 0, raw: str = "") -> Verdict:
    """A probe without a verdict, and why."""
    return Verdict(item.id, probe.id, None, None, "unscored", reason, raw, repeat=repeat)


def read_one(item: Item, probe: Probe, row: ReplyRow, options: ReadingOptions) -> Flow[Verdict]:
    """The verdict on one question."""
    shown = show_options(probe, options)
    request = judge_request(item, probe, row, shown=shown, options=options)
    parse = partial(_parse, shown=shown, options=options)
    judged = yield from ask_judge(request, parse, remind=options.remind.text, reasks=options.reasks)
    return letter_verdict(item, probe, judged, shown=shown, repeat=row.repeat)


def judge_request(
    item: Item, probe: Probe, row: ReplyRow, *, shown: Shown, options: ReadingOptions
) -> Request:
    """The judge call for one question; the caption stands ahead, so that prefixes are shared."""
    caption = row.reply or ""
    template = options.judge if options.has_uncertain else options.forced
    text = template.fill(
        CAPTION_HERE=_fenced(caption),
        QUESTION_HERE=probe.question,
        OPTIONS_HERE=options_block(shown, uncertain=options.has_uncertain),
    )
    wants_logprobs = options.logprobs or options.decide == "logprob"
    return Request(
        "judge",
        (Message("user", (text,)),),
        "verdict",
        probe=probe.id,
        lead=item.id,
        params={"logprobs": True, "top_logprobs": TOP_LOGPROBS} if wants_logprobs else {},
        task=ReadTask(caption, probe.question, shown.options, options.has_uncertain),
    )


def options_block(shown: Shown, *, uncertain: bool = True) -> str:
    """The lettered options, with E last where abstaining is allowed.

    >>> print(options_block(Shown(("red", "blue"), ("A", "B"))))
    A. red
    B. blue
    C. Not mentioned / Cannot be determined
    """
    texts = (*shown.options, UNCERTAIN) if uncertain else shown.options
    return "\n".join(f"{LETTERS[k]}. {text}" for k, text in enumerate(texts))


def _parse(reply: Reply, *, shown: Shown, options: ReadingOptions) -> Parsed:
    lone = reply.text.strip()
    n_letters = len(shown.options) + options.has_uncertain
    if options.decide != "logprob" and len(lone) == 1 and lone in LETTERS[:n_letters]:
        return Parsed(lone, "marked")
    uncertain = UNCERTAIN if options.has_uncertain else None
    if options.decide == "logprob" and reply.choices:
        chances = letter_probabilities(reply.choices, n_letters)
        if chances:
            return Parsed(max(chances, key=lambda letter: chances[letter]), "marked")
    return parse_letter(
        reply.text, shown.options, uncertain=uncertain, finish_reason=reply.finish_reason
    )


def letter_probabilities(choices: Mapping[str, float], n: int) -> dict[str, float]:
    """The probabilities of the first `n` letters among the first token's candidates, summing to 1.

    `choices` maps tokens to natural log-probabilities; tokens that are no such letter, with or
    without white space, are left out. Empty when there is none.

    >>> letter_probabilities({"A": -0.1, " A": -3.0, "Hm": -1.0}, 5)
    {'A': 1.0}
    """
    masses: dict[str, float] = {}
    for token, logprob in choices.items():
        letter = token.strip().strip("*().").upper()
        if len(letter) == 1 and letter in LETTERS[:n]:
            masses[letter] = masses.get(letter, 0.0) + math.exp(logprob)
    total = sum(masses.values())
    return {letter: mass / total for letter, mass in sorted(masses.items())} if total else {}


def letter_verdict(
    item: Item, probe: Probe, judged: Judged, *, shown: Shown, repeat: int = 0
) -> Verdict:
    """A judgement as a verdict, in the letters of the stored order."""
    chances = None
    if judged.reply is not None and judged.reply.choices:
        shown_chances = letter_probabilities(judged.reply.choices, len(shown.letters) + 1)
        chances = {_stored(letter, shown): p for letter, p in shown_chances.items()}
    letter = None if judged.reason else _stored(str(judged.parsed.value), shown)
    return Verdict(
        item.id,
        probe.id,
        letter,
        None if letter is None else letter == probe.answer,
        "unscored" if letter is None else "scored",
        judged.reason or ("recovered" if judged.parsed.how == "recovered" else None),
        judged.raw,
        judged.usage,
        repeat=repeat,
        note=judged.parsed.note,
        probabilities=chances,
    )


def _stored(letter: str, shown: Shown) -> str:
    """The stored letter of a shown one; the abstention keeps its place at the end."""
    position = LETTERS.index(letter)
    return shown.letters[position] if position < len(shown.letters) else letter


def read_several(
    item: Item, probes: Sequence[Probe], row: ReplyRow, options: ReadingOptions
) -> Flow[list[Verdict]]:
    """The verdicts on several questions from one judge call: cheaper, and another instrument.

    What one ask leaves unreadable is asked again with all its questions; readable answers of an
    earlier ask are kept.
    """
    shown = [show_options(probe, options) for probe in probes]
    request = _several_request(item, probes, row, options)
    judged: list[Judged] = [Judged(Parsed(None), "judge_not_asked")] * len(probes)
    usage = Usage()
    for ask in range(options.reasks + 1):
        [answer] = yield [request if ask == 0 else again(request, ask, options.remind_several.text)]
        if isinstance(answer, CallFailure):
            failed = Judged(Parsed(None), f"judge_{answer.kind}", answer.message)
            judged = [failed if j.reason else j for j in judged]
            break
        usage = add_usage(usage, answer.usage)
        fresh = _parse_several(answer, shown, options)
        judged = [new if old.reason else old for new, old in zip(fresh, judged, strict=True)]
        if not any(j.reason for j in judged):
            break
    # One call's tokens are counted once, with its first question.
    judged[0] = replace(judged[0], usage=usage)
    return [
        letter_verdict(item, probe, result, shown=s, repeat=row.repeat)
        for probe, result, s in zip(probes, judged, shown, strict=True)
    ]


def _parse_several(answer: Reply, shown: Sequence[Shown], options: ReadingOptions) -> list[Judged]:
    parsed = parse_letters(
        answer.text,
        len(shown),
        options=[s.options for s in shown],
        uncertain=UNCERTAIN if options.has_uncertain else None,
        finish_reason=answer.finish_reason,
    )
    return [
        Judged(p, None if p.value is not None else f"unreadable_{p.reason}", answer.text)
        for p in parsed
    ]


def _several_request(
    item: Item, probes: Sequence[Probe], row: ReplyRow, options: ReadingOptions
) -> Request:
    blocks = [
        f"{k}. {probe.question}\n"
        + options_block(show_options(probe, options), uncertain=options.has_uncertain)
        for k, probe in enumerate(probes, 1)
    ]
    text = options.several.fill(
        CAPTION_HERE=_fenced(row.reply or ""), QUESTIONS_HERE="\n\n".join(blocks)
    )
    return Request(
        "judge",
        (Message("user", (text,)),),
        "verdict",
        probe=f"{probes[0].id}+{len(probes) - 1}",
        lead=item.id,
    )


# Tallies. Columns, by unit (a picture, or one repeat of it), then added up by cluster:
# M probes, C right, U abstained, X unscored (Xo: with a caption); n units, ok units with a caption, T caption tokens;
# W = M*T request tokens; d densities and their squares, as strict / over scored / upper.
COLUMNS = ("M", "C", "U", "X", "Xo", "n", "ok", "T", "W", "d", "dd", "Ws", "ds", "dds", "du")


def _density_cv(s: Sums, first: str, second: str, n: str) -> Array:
    """Population sigma over mean, from sums of densities and of their squares."""
    mean = ratio(s[first], s[n])
    variance = ratio(s[second], s[n]) - mean * mean
    return ratio(np.sqrt(np.maximum(variance, 0.0)), mean)


METRICS: tuple[Metric, ...] = (
    Metric(
        "overall_acc",
        quotient("C", "M"),
        lambda s: ratio(s["C"], s["M"] - s["X"]),
        lambda s: ratio(s["C"] + s["X"], s["M"]),
        column("M"),
    ),
    Metric(
        "effective_acc",
        lambda s: ratio(s["C"], s["M"] - s["U"]),
        lambda s: ratio(s["C"], s["M"] - s["X"] - s["U"]),
        lambda s: ratio(s["C"] + s["X"], s["M"] - s["U"]),
        lambda s: s["M"] - s["U"],
    ),
    Metric(
        "uncertain_ratio",
        quotient("U", "M"),
        lambda s: ratio(s["U"], s["M"] - s["X"]),
        quotient("U", "M"),
        column("M"),
        better=-1,
    ),
    Metric(
        "coverage",
        lambda s: ratio(s["M"] - s["U"], s["M"]),
        lambda s: ratio(s["M"] - s["X"] - s["U"], s["M"] - s["X"]),
        lambda s: ratio(s["M"] - s["U"], s["M"]),
        column("M"),
        lower=lambda s: ratio(s["M"] - s["U"] - s["X"], s["M"]),
    ),
    Metric(
        "tokens_per_image",
        quotient("T", "ok"),
        quotient("T", "ok"),
        None,
        column("ok"),
        better=0,
        unit="tokens",
    ),
    Metric(
        "mean_density",
        quotient("d", "n"),
        quotient("ds", "ok"),
        quotient("du", "ok"),
        column("n"),
        unit="per_mille",
    ),
    Metric(
        "global_density",
        lambda s: 1000 * ratio(s["C"], s["W"]),
        lambda s: 1000 * ratio(s["C"], s["Ws"]),
        lambda s: 1000 * ratio(s["C"] + s["Xo"], s["W"]),
        column("W"),
        unit="per_mille",
    ),
    Metric(
        "density_cv",
        lambda s: _density_cv(s, "d", "dd", "n"),
        lambda s: _density_cv(s, "ds", "dds", "ok"),
        None,
        column("n"),
        better=-1,
        unit="ratio",
    ),
)


def tally(table: ProbeTable, replies: Mapping[tuple[str, int], ReplyRow]) -> Tally:
    """Counts by cluster, from the probes and the caption of each (item, repeat).

    A caption of no tokens has density 0. A failed caption has density 0 in the strict value and
    is absent from the scored one, from token means and from global weights.
    """
    n = len(table.units)
    tokens, answered = _captions(table, replies)
    counted = ~table.skipped
    probes = table.where(counted)
    m = pool(probes.unit, np.ones(probes.n), n)
    c = pool(probes.unit, probes.correct, n)
    u = pool(probes.unit, probes.uncertain, n)
    x = pool(probes.unit, probes.unscored, n)
    present = (m > 0).astype(float)
    ok = answered * present
    t = tokens * ok
    d = 1000 * np.nan_to_num(ratio(c, m * t))
    ds = 1000 * np.nan_to_num(ratio(c, (m - x) * t))
    du = 1000 * np.nan_to_num(ratio(c + x, m * t))
    by_unit = {
        "M": m, "C": c, "U": u, "X": x, "Xo": x * ok, "n": present, "ok": ok, "T": t, "W": m * t,
        "d": d, "dd": d * d, "Ws": (m - x) * t, "ds": ds * ok, "dds": ds * ds * ok, "du": du * ok,
    }  # fmt: skip
    return table.by_cluster(COLUMNS, by_unit, METRICS)


def _captions(
    table: ProbeTable, replies: Mapping[tuple[str, int], ReplyRow]
) -> tuple[Array, Array]:
    """Caption tokens, and 1 where there is a caption, else 0: both (n_units,)."""
    rows = [replies.get(unit) for unit in table.units]
    tokens = np.array([0 if row is None else row.tokens for row in rows], float)
    failed = [row is None or row.status.startswith("failed:") for row in rows]
    return tokens, 1.0 - np.array(failed, float)
