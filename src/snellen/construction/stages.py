"""What a pipeline of stages is, and what a stage may see while it works."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from snellen.builders.steps import Made, Row, Unit, joined
from snellen.errors import UsageError
from snellen.flows import Flow

R = TypeVar("R", bound=Row)
S = TypeVar("S", bound=msgspec.Struct)
# The sections of a configuration by their type.
Options = Mapping[type[msgspec.Struct], msgspec.Struct]


@dataclass(frozen=True, slots=True)
class Seat:
    """One model that plays a role: `role` is the name in requests, `label` the model's name."""

    role: str
    label: str


@dataclass(frozen=True, slots=True)
class Context:
    """What a stage may see: the folder, the source, its options, its models, and earlier rows.

    `options` holds the sections of the configuration by their type. `seats` maps a role to the
    models that play it, in the order of the configuration. `tools` holds what is costly to open.
    """

    folder: Path
    source: str
    options: Options = field(default_factory=dict)
    seats: Mapping[str, tuple[Seat, ...]] = field(default_factory=dict)
    seed: int = 0
    limit: int | None = None
    handed_on: dict[str, tuple[Row, ...]] = field(default_factory=dict)
    tools: dict[str, Any] = field(default_factory=dict)

    def of(self, section: type[S]) -> S:
        """The options of one section, as they stand in the configuration or by default."""
        found = self.options.get(section)
        return found if isinstance(found, section) else section()

    def rows(self, stage: str, kind: type[R]) -> tuple[R, ...]:
        """What an earlier stage handed on.

        Raises:
            UsageError: that stage has not been run.
        """
        if stage not in self.handed_on:
            raise UsageError(
                f"stage `{stage}` has not been run in {self.folder}",
                hint=f"run it first: --only {stage}, or leave --only out",
            )
        return cast("tuple[R, ...]", self.handed_on[stage])

    def seat(self, role: str) -> Seat:
        """The one model of a role; of several the first."""
        return self.seats[role][0]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a dry run takes a stage to do.

    `units` is how many units of work there are for each row of the stage ahead. `makes` is how many
    rows a unit hands on, and `calls` how often it asks each role.
    """

    units: float = 1.0
    makes: float = 1.0
    calls: Mapping[str, float] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0


def nothing_to_prepare(_context: Context, _todo: Sequence[Unit]) -> None:
    """A stage whose units need nothing in common."""


def no_embeddings(_options: Options) -> tuple[str, ...]:
    """A pipeline that embeds nothing at an endpoint."""
    return ()


def no_roles(_context: Context) -> tuple[str, ...]:
    """A stage that asks nobody."""
    return ()


def no_wait(_context: Context) -> str:
    """A stage after which nobody is waited for."""
    return ""


def as_made(_context: Context, parts: Sequence[Made]) -> Made:
    """A stage that hands on what its units made."""
    return joined(parts)


def as_usual(_context: Context) -> Expected:
    """A stage that hands on about what it gets, and calls nobody."""
    return Expected()


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: its units of work, what is done with each, and what is made of all together.

    `work` is a flow: it may ask models, and may read files. A unit that is done is done once and
    for all, unless its basis, its models or its prompts change. `prepare` sees the units that are
    to be done before the first of them is. `settle` sees the results of all
    units, is cheap, and is done at every start. A filter hands on some of its input rows; any
    other stage makes new ones. `waits` says for what people must act before the next stage.
    `part` is the type of the units' rows where `settle` makes rows of another type of them.
    `prompts` are names of bundled prompts; `version` is raised when the work gives other results.
    """

    name: str
    makes: type[Row]
    units: Callable[[Context], Iterable[Unit]]
    work: Callable[[Context, Any], Flow[Made]] | None = None
    prepare: Callable[[Context, Sequence[Unit]], None] = nothing_to_prepare
    settle: Callable[[Context, Sequence[Made]], Made] = as_made
    roles: Callable[[Context], tuple[str, ...]] = no_roles
    waits: Callable[[Context], str] = no_wait
    expects: Callable[[Context], Expected] = as_usual
    is_filter: bool = False
    part: type[Row] | None = None
    prompts: tuple[str, ...] = ()
    version: int = 1


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A kind of benchmark and the stages that build it; `sections` are those of build.toml.

    `embedding_roles` names the roles that options give to endpoints of embeddings.
    """

    kind: str
    title: str
    stages: tuple[Stage, ...]
    roles: tuple[str, ...]
    sections: Mapping[str, type[msgspec.Struct]]
    embedding_roles: Callable[[Options], tuple[str, ...]] = no_embeddings

    def number(self, name: str) -> int:
        """The place of a stage, counted from 1.

        Raises:
            UsageError: there is no stage of that name.
        """
        from snellen.schemas import nearest

        names = [stage.name for stage in self.stages]
        if name not in names:
            raise UsageError(f"{self.kind} has no stage `{name}`", hint=nearest(name, names))
        return names.index(name) + 1
