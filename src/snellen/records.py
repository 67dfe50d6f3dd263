"""The nouns of an evaluation, as frozen data.

Those of which a run makes several for each call are msgspec structs: making one is ten times
cheaper than making a frozen dataclass.

An `Item` (pictures and text) goes to the model, its `Reply` goes to a judge with `Probe`s, each
`Verdict` is scored or unscored with a reason. Files are written from these by msgspec.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from snellen.keys import canonical_json

ProtocolName = str
Status = Literal["scored", "unscored", "skipped"]
# A model or judge: its name, or a Python function that takes OpenAI-style messages.
Speaker = str | Callable[..., Any]
# Body fields of a request, as they are sent.
Params = Mapping[str, Any]

# A JSON object as it was read, its values not yet checked.
JsonObject = dict[str, Any]
# The part of a request's key that changes when keys are made differently.
KEY_VERSION = "1"

# The letters of options, in order.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# The mark in the text of a question that stands for the picture of that number, from 1.
IMAGE_MARK = re.compile(r"<\|image_(\d+)\|>")


@dataclass(frozen=True, slots=True)
class Image:
    """Where a picture's bytes are, and the digest of what is there; never the bytes themselves.

    `path` is a file. Without `start` and `end` the whole file is the picture; with them, the bytes
    from `start` to `end` are a JSON string that holds a data URI or bare base64.
    `row`, from 1, is a row of a Parquet file that holds the picture, as bytes or (with an `end`) as
    such a text. `digest` is the SHA-256 of those bytes, in hex. `name` is for people.
    """

    name: str
    digest: str
    path: str
    start: int = 0
    end: int | None = None
    row: int | None = None


class Message(msgspec.Struct, frozen=True):
    """One chat message; `parts` are texts and pictures in the order in which they are sent."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[str | Image, ...]


class ReadTask(msgspec.Struct, frozen=True):
    """A multiple-choice question to answer from a caption alone (the embedded judge's input).

    `options` are without the abstention; `uncertain_at` is its place among the letters where it
    is not the last.
    """

    caption: str
    question: str
    options: tuple[str, ...]
    allow_uncertain: bool = True
    uncertain_at: int | None = None


@dataclass(frozen=True, slots=True)
class GradeTask:
    """A short answer to compare with a reference."""

    question: str
    reference: str
    answer: str


@dataclass(frozen=True, slots=True)
class RubricTask:
    """Statements about a caption, each true or false; the groups are judged on their own."""

    caption: str
    must_right: tuple[str, ...]
    easy_wrong: tuple[str, ...]


Task = ReadTask | GradeTask | RubricTask


@dataclass(frozen=True, slots=True)
class Request:
    """One call to make. Flows make these; they name a role, never an endpoint.

    `purpose`, `probe` and `ask` are its address within the item. Requests with the same non-empty
    `lead` share a long prefix, so the first of them is sent a little ahead. `params` are body
    fields that the protocol itself needs (for example logprobs) and that win over the endpoint's.
    `schema` binds the reply where the endpoint can: a JSON schema, or the answers to choose from.
    `task` is the structured question for judges that do not read prompts; it is not in the key.
    """

    role: str
    messages: tuple[Message, ...]
    purpose: str
    probe: str = ""
    ask: int = 0
    lead: str = ""
    params: Params = field(default_factory=dict)
    schema: Params | tuple[str, ...] | None = None
    task: Task | None = field(default=None, compare=False)


def request_key(
    request: Request, *, model: str, params: Params, repeat: int = 0, prep: str = ""
) -> str:
    """The hash of everything that shapes an answer, save the endpoint's address.

    `params` are the body fields that will be sent; `prep` names the picture preparation. Pictures
    enter by digest, never by path. The ask and the repeat are in the key, so that a second ask is
    an entry of its own.
    """
    h = hashlib.sha256()
    head = [KEY_VERSION, model, params, request.ask, repeat, prep]
    if request.schema is not None:
        head.append(request.schema)
    h.update(canonical_json(head))
    for message in request.messages:
        h.update(f"\x00{message.role}".encode())
        for part in message.parts:
            if isinstance(part, Image):
                h.update(b"\x01" + part.digest.encode())
            else:
                data = part.encode(errors="surrogatepass")
                h.update(b"\x02" + len(data).to_bytes(8, "big"))
                h.update(data)
    return h.hexdigest()


def address(item_id: str, repeat: int, request: Request) -> str:
    """Where a call stands in its run, unique there: item, repeat, purpose, probe, ask."""
    return "\x1f".join((item_id, str(repeat), request.purpose, request.probe, str(request.ask)))


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one call as the endpoint counted them; None where it did not say."""

    prompt: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    cached: int | None = None


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Reply:
    """What an endpoint answered: `text` is the content with a leading think block taken off.

    `finish_reason` is `stop`, `length`, `content_filter` or what else the endpoint says. `choices`
    maps first-token candidates to log-probabilities (natural log) where they were asked for.
    `notes` are mendings, such as a parameter that the endpoint refused and that was dropped.
    """

    text: str
    reasoning: str | None = None
    finish_reason: str | None = "stop"
    usage: Usage = NO_USAGE
    latency_s: float = 0.0
    model: str | None = None
    refusal: bool = False
    choices: Mapping[str, float] | None = None
    notes: tuple[str, ...] = ()


FailureKind = Literal[
    "rate_limit",
    "overload",
    "timeout",
    "connection",
    "auth",
    "quota",
    "unknown_model",
    "context_length",
    "content_filter",
    "bad_parameter",
    "bad_reply",
    "input_error",
    "language",
    "budget",
    "stopped",
]

RETRYABLE: frozenset[str] = frozenset(
    {"rate_limit", "overload", "timeout", "connection", "bad_reply"}
)
HOPELESS: frozenset[str] = frozenset({"auth", "quota", "unknown_model"})


@dataclass(frozen=True, slots=True)
class CallFailure:
    """A call that has no reply. `message` is one line, without keys or pictures.

    `retry_after_s` is the wait that the endpoint demands, in seconds. `attempts` counts the tries.
    `was_sent` is False where the request cannot have reached the endpoint, hence cost nothing.
    `is_stale`: the endpoint had closed the connection, left open by an earlier call, by then.
    """

    kind: FailureKind
    message: str
    status: int | None = None
    retry_after_s: float | None = None
    attempts: int = 1
    latency_s: float = 0.0
    was_sent: bool = True
    is_stale: bool = False


Answer = Reply | CallFailure


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing that is checked about an item.

    reading: a multiple-choice question, `options` without letters, `answer` a letter.
    direct: the question itself, `answer` the reference. rubric: a statement, `answer` is "true",
    `kind` is `must_right` or `easy_wrong`. `groups` are its labels for breakdowns, such as
    `category`, `generator`, `nature`, `region_id`.
    """

    id: str
    question: str
    answer: str
    options: tuple[str, ...] = ()
    kind: str = ""
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Item:
    """One stimulus with its probes.

    `cluster` is the unit of resampling (the image; for direct questions all items that share a
    picture or a source item). `groups` maps a dimension (`l1`, `category`, `error_category`) to
    the labels that the item carries. `digest` covers all that would change a score.
    `original_id` restores the id's type on export. `text` is the question of a direct item with
    its `<|image_N|>` marks; `reference` the golden caption. `extra` is kept for export only.
    """

    id: str
    images: tuple[Image, ...]
    probes: tuple[Probe, ...]
    text: str = ""
    hint: str = ""
    reference: str = ""
    cluster: str = ""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    digest: str = ""
    original_id: str | int | None = None
    extra: Params = field(default_factory=dict)


def walk(items: Sequence[Item], repeats: int = 1) -> Iterator[tuple[Item, int]]:
    """Each item with the number of each of its repeats, in the order of a run."""
    for item in items:
        for repeat in range(repeats):
            yield item, repeat


def abstention(probe: Probe) -> str:
    """The letter of a question's abstention: the one after its options; "" without options.

    >>> abstention(Probe("q", "Which?", "A", ("red", "blue")))
    'C'
    """
    return LETTERS[len(probe.options)] if probe.options else ""


def abstains(verdict: Verdict | None, probe: Probe) -> bool:
    """Whether a scored verdict says that the question cannot be answered."""
    if verdict is None or verdict.status != "scored" or not probe.options:
        return False
    return verdict.verdict == LETTERS[len(probe.options)]


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a picture: `bbox` is (ymin, xmin, ymax, xmax) in 0-1000 of the upright image."""

    region_id: str
    image_id: str
    bbox: tuple[float, float, float, float]
    nature: str
    mask: object = None
    metadata: object = None


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Items under one protocol, and where they came from.

    `digest` covers the items in order-free form; `skipped` lists bad rows that were left out on
    request, one message each, and `broken` pictures that no model can be shown; `revision` is the
    version of a fetched data set, where known.
    """

    name: str
    protocol: ProtocolName
    items: tuple[Item, ...]
    version: str = ""
    license: str = ""
    source: str = ""
    revision: str = ""
    digest: str = ""
    folder: str = ""
    regions: tuple[Region, ...] = ()
    skipped: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplyRow:
    """A row of `replies.jsonl`: one item as soon as the model answered.

    `tokens` counts the judged reply in o200k_base tokens. `status` is `ok`, or why there is no
    usable reply: `empty`, `truncated`, `thought_only`, or `failed` with the kind of `failure`.
    `doubt`: a closing mark of thoughts stood at its end, so that it may be thoughts.
    """

    id: str
    reply: str | None
    reasoning: str | None = None
    finish_reason: str | None = None
    tokens: int = 0
    usage: Usage = NO_USAGE
    latency_s: float = 0.0
    status: str = "ok"
    repeat: int = 0
    variant: str = ""
    doubt: bool = False
    failure: str = ""

    def __post_init__(self) -> None:
        # Folders of earlier versions hold `failed:KIND`.
        status, mark, kind = self.status.partition(":")
        if mark:
            object.__setattr__(self, "status", status)
            object.__setattr__(self, "failure", kind)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A row of `verdicts.jsonl`: one probe of one item.

    `verdict` is a letter, a boolean or None; `correct` is None unless scored. `reason` says why
    it is unscored, or in what way a scored one is special (`empty`, `truncated`, `thought_only`,
    `recovered`). `probabilities` maps letters to probabilities where they were read; `votes` a
    panel's judges to their verdicts, None where one gave none.
    """

    id: str
    probe_id: str
    verdict: str | bool | None
    correct: bool | None
    status: Status
    reason: str | None = None
    raw: str = ""
    usage: Usage = NO_USAGE
    repeat: int = 0
    note: str = ""
    probabilities: Mapping[str, float] | None = None
    votes: Mapping[str, str | bool | None] | None = None

    @property
    def is_unreadable(self) -> bool:
        """Whether the judge answered and no verdict could be read from the answer."""
        return self.status == "unscored" and (self.reason or "").startswith("unreadable_")


def is_unreadable(row: object) -> bool:
    """Whether a row, or one of a list of rows, says that a reply could not be read."""
    if isinstance(row, list | tuple):
        return any(map(is_unreadable, row))
    return str(getattr(row, "reason", None) or "").startswith("unreadable")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an item's flow ends with: its reply, and a verdict for each probe, in probe order."""

    reply: ReplyRow
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A model or a judge as it stands in `run.json`: never a key, never credentials in the URL.

    `members` are the judges of a panel, whose rule stands in `params`.
    """

    name: str
    url: str = ""
    model: str = ""
    params: Params = field(default_factory=dict)
    family: str = ""
    license: str = ""
    released: str = ""
    revision: str = ""
    quantization: str = ""
    fidelity: str = ""
    members: tuple[ModelRecord, ...] = ()
