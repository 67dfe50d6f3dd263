"""Bind a name, an address or a Python function to what answers for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from snellen.endpoints.exact import EXACT, ExactJudge
from snellen.endpoints.exact import URL as EXACT_URL
from snellen.endpoints.exact import VERSION as EXACT_VERSION
from snellen.endpoints.failures import public_url
from snellen.endpoints.http import CallableModel, Caller, ChatClient, Function, chat_url
from snellen.errors import UsageError
from snellen.pictures.prepare import Picture, PictureRules
from snellen.records import Answer, ModelRecord, Params, Request, Speaker
from snellen.settings import Endpoint, EndpointOptions, Settings, encoder_path, endpoint_of

if TYPE_CHECKING:
    from snellen.embedded.judge import EmbeddedJudge

EMBEDDED = "embedded"
# Larger batches are no faster, and Ctrl-C waits for the one that is being judged.
EMBEDDED_AT_ONCE = 128
# Judges are asked not to think aloud where the endpoint knows how; it is given up when refused.
THINKING_OFF = {"chat_template_kwargs": {"enable_thinking": False}}


@dataclass(frozen=True, slots=True)
class Binding:
    """What a role means in a run: who is called, under which settings, and what is recorded."""

    caller: Caller
    endpoint: Endpoint
    rules: PictureRules = field(default_factory=PictureRules)
    cacheable: bool = True
    shares_prefix: bool = True
    record: ModelRecord = field(default_factory=lambda: ModelRecord(""))

    @property
    def params(self) -> Params:
        """The body fields that are sent."""
        return {**self.endpoint.soft_params, **self.endpoint.params}


def bind_endpoint(endpoint: Endpoint, rules: PictureRules | None = None) -> Binding:
    """An OpenAI-compatible endpoint; the binding itself holds no key."""
    if "@" not in endpoint.url:
        endpoint = replace(endpoint, url=chat_url(endpoint.url))
    url = public_url(endpoint.url)
    record = ModelRecord(
        endpoint.name,
        url=url,
        model=endpoint.model,
        params={**endpoint.soft_params, **endpoint.params},
        family=endpoint.family,
        license=endpoint.license,
        released=endpoint.released,
        revision=endpoint.revision,
        quantization=endpoint.quantization,
    )
    public = replace(endpoint, url=url, key="", headers={})
    return Binding(ChatClient(endpoint), public, rules or PictureRules(), record=record)


def bind_model(
    named: Speaker, options: EndpointOptions, settings: Settings, *, rules: PictureRules
) -> Binding:
    """The model under test: a name with an address, or a Python callable."""
    if callable(named):
        return bind_callable(named)
    return bind_endpoint(endpoint_of(replace(options, name=named), settings), rules)


def bind_judge(
    named: Speaker, options: EndpointOptions, settings: Settings, *, thinks: bool = False
) -> Binding:
    """One judge: an endpoint, the embedded one, the one by rule, or a Python callable."""
    if callable(named):
        return bind_callable(named)
    if named == EMBEDDED:
        return bind_embedded()
    if named == EXACT:
        record = ModelRecord(EXACT, model=EXACT_VERSION)
        endpoint = Endpoint(
            EXACT, url=EXACT_URL, model=EXACT_VERSION, price_in_usd=0.0, price_out_usd=0.0
        )
        return Binding(ExactJudge(), endpoint, cacheable=False, shares_prefix=False, record=record)
    endpoint = endpoint_of(replace(options, name=named), settings)
    if not thinks:
        soft = {k: v for k, v in THINKING_OFF.items() if k not in endpoint.params}
        endpoint = replace(endpoint, soft_params=soft)
    return bind_endpoint(endpoint)


def bind_callable(function: Function) -> Binding:
    """A Python function that takes OpenAI-style messages and gives a text."""
    name = getattr(function, "__name__", type(function).__name__)
    return _bind_inside(name, CallableModel(function))


def bind_nobody(name: str) -> Binding:
    """The model of a run that calls none, since all replies are given."""
    return _bind_inside(name, _Nobody())


def _bind_inside(name: str, caller: Caller) -> Binding:
    """Something that is called in this process: nothing of it is cached between runs."""
    endpoint = Endpoint(name, url=f"python:{name}", model=name)
    return Binding(caller, endpoint, cacheable=False, record=ModelRecord(name, model=name))


def bind_embedded() -> Binding:
    """The offline judge; its numbers are marked as low fidelity."""
    judge = embedded_judge()
    endpoint = Endpoint(
        EMBEDDED,
        url="embedded:",
        model=judge.version,
        concurrency=EMBEDDED_AT_ONCE,
        price_in_usd=0.0,
        price_out_usd=0.0,
    )
    record = ModelRecord(EMBEDDED, model=judge.version, fidelity=judge.fidelity)
    return Binding(KeptOpen(judge), endpoint, cacheable=False, shares_prefix=False, record=record)


def embedded_judge() -> EmbeddedJudge:
    """The offline judge of this process: what it has embedded once serves all runs."""
    return _embedded_judge(os.getpid())


@cache
def _embedded_judge(_process: int) -> EmbeddedJudge:
    """The judge of one process: a fork has none of the threads of its parent's, and would wait.

    It is imported late, since it brings an ONNX runtime.
    """
    from snellen.embedded.judge import EmbeddedJudge

    return EmbeddedJudge(model_path=encoder_path())


class KeptOpen:
    """A caller that outlives the run that uses it."""

    def __init__(self, caller: Caller) -> None:
        self.call = caller.call

    async def close(self) -> None:
        """Leaves the caller open for the next run."""


class _Nobody:
    """Stands where a model would be when all replies are given."""

    async def call(self, request: Request, pictures: Sequence[Picture]) -> Answer:
        """Is never reached: flows take the given replies."""
        raise UsageError(
            "a reply was asked for where all replies are given", hint="report this as a defect"
        )

    async def close(self) -> None:
        """Has nothing to close."""
