"""A run as a user asks for it: one typed field an argument, and what is known of each.

The options of commands, the arguments of `snellen.run`, their checks and the reference are made
from these fields.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

from snellen.errors import UsageError
from snellen.records import Benchmark, Params, Speaker
from snellen.schemas import nearest

Group = Literal["data", "model", "judge", "sampling", "protocol", "running", "output"]
Replies = Mapping[str, str | None] | str | Path
Source = str | Path
Control = Literal["no-image", "blind", "swapped"]

DEFAULT_MAX_UNSCORED = 0.05


@dataclass(frozen=True, slots=True)
class About:
    """What a field means, its range, and how it is spelled elsewhere.

    `option` is the command's option where it is not the name with dashes, `off` the option that
    says no. `protocols` are the only ones that have the field, under the name `inner`.
    """

    group: Group
    help: str
    metavar: str = ""
    least: float | None = None
    most: float | None = None
    option: str = ""
    off: str = ""
    protocols: tuple[str, ...] = ()
    inner: str = ""
    is_switch: bool = False


CAPTIONS = ("reading", "captionqa", "rubric")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run as a user asks for it; None stands for the default.

    Raises:
        UsageError: a value is of another type than its field, or outside its range.
    """

    benchmark: Annotated[
        Source | Benchmark,
        About("data", "A benchmark's name, or the folder that holds one.", "BENCHMARK"),
    ] = ""
    out: Annotated[
        Source, About("output", "The run folder; given again, the run goes on.", "DIR")
    ] = ""
    model: Annotated[
        Speaker, About("model", "The model's name; in Python also a function.", "NAME")
    ] = ""
    api_url: Annotated[str, About("model", "The model's endpoint, up to /v1.", "URL")] = ""
    api_key_env: Annotated[
        str, About("model", "The environment variable that holds the model's key.", "VAR")
    ] = ""
    api_key: Annotated[str, About("model", "The model's key; never written.", "KEY")] = field(
        default="", repr=False
    )
    temperature: Annotated[
        float | None, About("model", "The model's sampling temperature.", "T", least=0)
    ] = None
    max_tokens: Annotated[
        int | None, About("model", "The most tokens that the model may write.", "N", least=1)
    ] = None
    top_p: Annotated[
        float | None, About("model", "The model's nucleus of sampling.", "P", least=0, most=1)
    ] = None
    system: Annotated[Source | None, About("model", "A system message for the model.", "FILE")] = (
        None
    )
    params: Annotated[
        Params,
        About(
            "model",
            "A body field that is sent to the model. Repeatable.",
            "NAME=JSON",
            option="--param",
        ),
    ] = field(default_factory=dict)
    detail: Annotated[
        Literal["low", "high", "auto"] | None,
        About("model", "The picture detail that the endpoint is asked for."),
    ] = None
    max_pixels: Annotated[
        int | None, About("model", "Shrink pictures to at most N pixels.", "N", least=1)
    ] = None
    replies: Annotated[
        Replies | None,
        About(
            "model",
            "Replies that exist, as JSON or JSON-lines; no model is called.",
            "FILE",
        ),
    ] = None
    judge: Annotated[
        Speaker | Sequence[Speaker],
        About(
            "judge",
            "The judge's name; `embedded`: the offline one, low fidelity; `exact`: short answers "
            "of a direct benchmark are compared by rule. Repeatable: a panel, which votes.",
            "NAME",
        ),
    ] = ""
    judge_url: Annotated[
        str | Sequence[str],
        About(
            "judge",
            "The judge's endpoint; the model's by default. Repeatable, one for each judge.",
            "URL",
        ),
    ] = ""
    judge_key_env: Annotated[
        str, About("judge", "The environment variable that holds the judge's key.", "VAR")
    ] = ""
    judge_key: Annotated[str, About("judge", "The judge's key; never written.", "KEY")] = field(
        default="", repr=False
    )
    judge_temperature: Annotated[
        float | None, About("judge", "The judge's sampling temperature.", "T", least=0)
    ] = None
    judge_max_tokens: Annotated[
        int | None, About("judge", "The most tokens that the judge may write.", "N", least=1)
    ] = None
    judge_top_p: Annotated[
        float | None, About("judge", "The judge's nucleus of sampling.", "P", least=0, most=1)
    ] = None
    judge_params: Annotated[
        Params,
        About(
            "judge",
            "A body field that is sent to the judge. Repeatable.",
            "NAME=JSON",
            option="--judge-param",
        ),
    ] = field(default_factory=dict)
    judge_thinking: Annotated[
        bool,
        About("judge", "Let the judge think aloud (off where the endpoint can switch it off)."),
    ] = False
    judge_prompt: Annotated[
        Source | None, About("judge", "A judge prompt of your own.", "FILE")
    ] = None
    judge_system: Annotated[
        Source | None, About("judge", "A system message for the judge.", "FILE")
    ] = None
    panel: Annotated[
        Literal["majority", "unanimity"] | None,
        About("judge", "What several judges must agree on (majority)."),
    ] = None
    min_valid: Annotated[
        int | None,
        About(
            "judge",
            "How many judges of a panel must give a verdict (more than half).",
            "K",
            least=1,
        ),
    ] = None
    judge_check: Annotated[
        Source | None, About("judge", "Attach a `snellen judge-check` result to the run.", "FILE")
    ] = None
    data: Annotated[
        Source | None, About("data", "The benchmark's files; else they are fetched.", "PATH")
    ] = None
    on_bad_row: Annotated[
        Literal["stop", "skip"],
        About("data", "Stop at a bad row of the data, or leave it out and count it."),
    ] = "stop"
    allow_outside: Annotated[
        str | Sequence[str],
        About(
            "data",
            "A folder outside the benchmark's own whose files may be read and sent. Repeatable.",
            "DIR",
        ),
    ] = ""
    source: Annotated[
        Literal["hub", "modelscope"], About("data", "Where public data is fetched.")
    ] = "hub"
    revision: Annotated[str, About("data", "The version of public data to fetch.", "NAME")] = ""
    split: Annotated[str, About("data", "The split of public data to fetch.", "NAME")] = ""
    limit: Annotated[int | None, About("sampling", "The first N items of all.", "N", least=1)] = (
        None
    )
    limit_per_subset: Annotated[
        int | None,
        About("sampling", "The first N items of each label: EvalScope's --limit.", "N", least=1),
    ] = None
    sample: Annotated[
        int | None,
        About(
            "sampling",
            "N items drawn with the seed, in proportion to the capabilities.",
            "N",
            least=1,
        ),
    ] = None
    subset: Annotated[
        str | Sequence[str],
        About("sampling", "Only items with this label. Repeatable.", "LABEL"),
    ] = ()
    repeat: Annotated[int, About("sampling", "Ask each item K times.", "K", least=1)] = 1
    seed: Annotated[int, About("sampling", "The seed of all that is drawn.", "N")] = 0
    caption_prompt: Annotated[
        Source | None,
        About(
            "protocol",
            "A caption prompt of your own.",
            "FILE",
            protocols=CAPTIONS,
            inner="describe",
        ),
    ] = None
    parser: Annotated[
        Literal["snellen", "official"] | None,
        About(
            "protocol",
            "How judge replies are read (snellen).",
            protocols=("direct", "reading", "captionqa"),
        ),
    ] = None
    hint: Annotated[
        bool | None,
        About(
            "protocol",
            "direct: send an item's hint as system message (on).",
            protocols=("direct",),
            is_switch=True,
        ),
    ] = None
    exact_match: Annotated[
        bool | None,
        About(
            "protocol",
            "direct: spare the judge where the reply equals the reference.",
            protocols=("direct",),
        ),
    ] = None
    control: Annotated[
        Control | None,
        About(
            "protocol",
            "direct: no-image. reading: blind (empty caption, no E), swapped (captions of other "
            "pictures).",
            protocols=("direct", "reading"),
        ),
    ] = None
    questions_a_call: Annotated[
        int | None,
        About(
            "protocol",
            "reading: K questions in one judge call, a deviation from the protocol.",
            "K",
            least=1,
            protocols=("reading",),
        ),
    ] = None
    decide: Annotated[
        Literal["letter", "logprob"] | None,
        About(
            "protocol",
            "reading: take the letter said, or the most probable one.",
            protocols=("reading",),
        ),
    ] = None
    logprobs: Annotated[
        bool | None,
        About(
            "protocol",
            "reading: store the letters' probabilities.",
            protocols=("reading",),
        ),
    ] = None
    option_order: Annotated[
        int | None,
        About(
            "protocol",
            "reading: shuffle A-D for each question; as stored by default.",
            "SEED",
            protocols=("reading", "captionqa"),
            inner="option_seed",
        ),
    ] = None
    one_rubric_a_call: Annotated[
        bool | None,
        About(
            "protocol",
            "rubric: one statement a call, for weak judges.",
            off="--all-rubrics-a-call",
            protocols=("rubric",),
            inner="one_a_call",
        ),
    ] = None
    gate_first: Annotated[
        bool | None,
        About(
            "protocol",
            "rubric: skip the Easy-Wrong group where the gate is shut.",
            protocols=("rubric",),
        ),
    ] = None
    shard: Annotated[
        str,
        About(
            "running",
            "Only the items of shard I of N; auto: as Slurm or Kubernetes numbers this worker; "
            "claim/N: shard after shard that no other worker has claimed.",
            "I/N",
        ),
    ] = ""
    claims: Annotated[
        Source,
        About(
            "running",
            "Where workers claim shards: a folder that all see, or an address that fsspec knows "
            "(--out).",
            "PLACE",
        ),
    ] = ""
    engine: Annotated[
        Literal["ray"] | None,
        About("running", "Share the items among workers of a Ray cluster, or of this machine."),
    ] = None
    address: Annotated[
        str, About("running", "The Ray cluster; without it one is started here.", "ADDRESS")
    ] = ""
    workers: Annotated[
        int | None,
        About("running", "How many workers share the items (the processors).", "N", least=1),
    ] = None
    config: Annotated[
        Source | None, About("running", "Settings; ./snellen.toml by default.", "FILE")
    ] = None
    concurrency: Annotated[
        int | None, About("running", "Calls in flight at each endpoint (64).", "N", least=1)
    ] = None
    max_cost: Annotated[
        float | None,
        About(
            "running", "Stop before this is exceeded; needs prices in the settings.", "USD", least=0
        ),
    ] = None
    max_unscored: Annotated[
        float,
        About(
            "running",
            "Exit with 3 above this share of unscored probes.",
            "SHARE",
            least=0,
            most=1,
        ),
    ] = DEFAULT_MAX_UNSCORED
    max_tries: Annotated[
        int,
        About(
            "running",
            "How often a failing call is tried; rate limits do not count.",
            "N",
            least=1,
        ),
    ] = 6
    reasks: Annotated[
        int | None,
        About(
            "running",
            "How often an unreadable judgement is asked for again (2).",
            "N",
            least=0,
        ),
    ] = None
    allow_blank: Annotated[
        bool,
        About(
            "running",
            "Take blank replies as they are; else a share of them above --max-unscored exits with "
            "3.",
        ),
    ] = False
    keep_unreadable: Annotated[
        bool,
        About(
            "running",
            "Leave unreadable verdicts as they are; a run that goes on asks for them again.",
        ),
    ] = False
    patience: Annotated[
        float,
        About(
            "running",
            "How long to wait for a server that answered before and is away.",
            "SECONDS",
            least=0,
        ),
    ] = 600.0
    cache: Annotated[
        bool | None,
        About(
            "running",
            "Take replies of other runs from the cache, and keep those of this one there (off).",
        ),
    ] = None

    def __post_init__(self) -> None:
        for name, one in arguments().items():
            value = getattr(self, name)
            checked = one.checked(value)
            if checked is not value:
                object.__setattr__(self, name, checked)


@dataclass(frozen=True, slots=True)
class Argument:
    """A field of `RunRequest` with its type taken apart: `types` are the members of a union."""

    name: str
    about: About
    type: object
    types: tuple[object, ...]
    choices: tuple[str, ...]
    default: object

    @property
    def option(self) -> str:
        """The field as an option of a command."""
        return self.about.option or "--" + self.name.replace("_", "-")

    @property
    def inner(self) -> str:
        """The field's name among the options of its protocols."""
        return self.about.inner or self.name

    @property
    def has_range(self) -> bool:
        """Whether the field is a number."""
        return int in self.types or float in self.types

    def checked(self, value: object) -> object:
        """The value, a whole number as Python's own, several labels as a tuple.

        Raises:
            UsageError: the field cannot have it.
        """
        if value is None and NoneType in self.types:
            return None
        if self.has_range:
            return self._number(value)
        if self.choices:
            fits, wanted = value in self.choices, " or ".join(map(repr, self.choices))
        elif self.about.is_switch and value in ("on", "off"):
            return bool(value == "on")
        elif bool in self.types:
            fits, wanted = isinstance(value, bool), "True or False"
        elif self.type is Params:
            fits, wanted = isinstance(value, Mapping), "a mapping from names to values"
        elif self.name == "replies":
            fits, wanted = isinstance(value, Mapping | str | os.PathLike), "a mapping or a file"
        elif self.name in ("subset", "judge", "judge_url", "allow_outside"):
            several = (
                (value,) if isinstance(value, str) or not isinstance(value, Sequence) else value
            )
            fits = all(
                isinstance(v, str) or (self.name == "judge" and callable(v)) for v in several
            )
            wanted = "one or a list"
            if self.name == "subset":
                value = tuple(label for label in several if label) if fits else value
        elif self.name == "benchmark" and isinstance(value, Benchmark):
            return value
        else:
            fits = isinstance(value, str | os.PathLike) or (
                self.name == "model" and callable(value)
            )
            wanted = "a text" if Path not in self.types else "a name or a path"
        if not fits:
            raise self._cannot_be(value, wanted)
        return value

    def _number(self, value: object) -> int | float:
        about = self.about
        is_whole = int in self.types
        wanted = "a whole number" if is_whole else "a number"
        if about.least is not None and about.most is not None:
            wanted += f" from {about.least:g} to {about.most:g}"
        elif about.least is not None:
            wanted += f" from {about.least:g} on"
        try:
            number = operator.index(value) if is_whole else float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise self._cannot_be(value, wanted) from None
        least = -float("inf") if about.least is None else about.least
        most = float("inf") if about.most is None else about.most
        if not least <= number <= most:
            raise self._cannot_be(value, wanted)
        return number

    def _cannot_be(self, value: object, wanted: str) -> UsageError:
        return UsageError(f"`{self.name}` cannot be {value!r}", hint=f"give {wanted}")


@cache
def arguments() -> Mapping[str, Argument]:
    """Every field of `RunRequest` by its name."""
    hints = get_type_hints(RunRequest, include_extras=True)
    found = {}
    for one in fields(RunRequest):
        plain, about = get_args(hints[one.name])
        members = get_args(plain) if get_origin(plain) in _UNIONS else (plain,)
        literals = [m for m in members if get_origin(m) is Literal]
        choices = tuple(c for m in literals for c in get_args(m))
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        found[one.name] = Argument(one.name, about, plain, members, choices, default)
    return found


_UNIONS = (Union, type(int | str))


def refuse_unknown(names: Collection[str]) -> None:
    """Names the first that is no argument, with the nearest that is.

    Raises:
        UsageError: there is one.
    """
    for name in names:
        if name not in arguments():
            raise UsageError(f"unknown argument `{name}`", hint=nearest(name, list(arguments())))


_OPTION = re.compile(r"--(no-)?([a-z][a-z-]*)(?: ([A-Z]+\b|[a-z][a-z-]*|\d[\d.]*)(?![\w-]))?")


def in_python_words(text: str) -> str:
    """A message or hint that names arguments of Python in place of a command's options.

    >>> in_python_words("give --model NAME --api-url URL, or leave --gate-first out")
    'give model=NAME api_url=URL, or leave gate_first out'
    >>> in_python_words("give --control blind or --no-cache")
    "give control='blind' or cache=False"
    """
    by_option = {one.option: one for one in arguments().values()}

    def name_argument(match: re.Match[str]) -> str:
        negated, name, value = match.groups()
        one = by_option.get(f"--{name}")
        if one is None:
            return match[0]
        if negated:
            return f"{one.name}=False" + (f" {value}" if value else "")
        if value is None:
            return one.name
        if value.isupper() or value[0].isdigit():
            return f"{one.name}={value}"
        if value in one.choices or value == "embedded":
            return f"{one.name}={value!r}"
        if one.about.is_switch and value in ("on", "off"):
            return f"{one.name}={value == 'on'}"
        return f"{one.name} {value}"

    return _OPTION.sub(name_argument, text)
