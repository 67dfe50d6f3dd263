"""From what a user asks for to a plan: benchmark, endpoints, protocol options, folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from snellen import templates
from snellen.endpoints.failures import public_url
from snellen.endpoints.http import CallableModel, Caller, ChatClient, chat_url
from snellen.engine.cache import ResponseCache
from snellen.engine.pacing import RetryPolicy
from snellen.engine.scheduler import Binding, DriveOptions
from snellen.errors import UsageError
from snellen.flows import Given
from snellen.pictures.prepare import PictureRules
from snellen.protocols import Options, judge_forms, protocol_of
from snellen.protocols.panels import RULES, Panel, Rule, role_of
from snellen.protocols.protocol import with_templates
from snellen.readers import LoadOptions, load_benchmark
from snellen.records import Benchmark
from snellen.runs.run import DEFAULT_MAX_UNSCORED, Plan
from snellen.runs.spec import Party
from snellen.settings import (
    Endpoint,
    EndpointWish,
    Settings,
    cache_folder,
    encoder_path,
    endpoint_of,
    load_settings,
)

if TYPE_CHECKING:
    from snellen.embedded.judge import EmbeddedJudge
    from snellen.runs.judge_errors import JudgeCheck

Judge = str | Callable[..., Any]
# Protocol options that the command spells in another way.
OPTIONS: Mapping[str, str] = {
    "describe": "--caption-prompt",
    "one_a_call": "--one-rubric-a-call",
    "option_seed": "--option-order",
    "system": "--judge-system",
}

EMBEDDED = "embedded"
# Larger batches are no faster, and Ctrl-C waits for the one that is being judged.
EMBEDDED_AT_ONCE = 128
# Judges are asked not to think aloud where the endpoint knows how; it is given up when refused.
THINKING_OFF = {"chat_template_kwargs": {"enable_thinking": False}}


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run as a user asks for it: the same words as the command's options.

    `model` and `judge` are names, or Python callables that take OpenAI-style messages and give a
    text; several judges are a panel, whose rule is `panel` (`majority` by default). `replies` are
    replies that exist already, by (id, repeat). None means the default.
    """

    benchmark: str
    out: str | Path
    model: str | Callable[..., Any] = ""
    api_url: str = ""
    api_key: str = field(default="", repr=False)
    api_key_env: str = ""
    judge: Judge | Sequence[Judge] = ""
    judge_url: str | Sequence[str] = ""
    judge_key: str = field(default="", repr=False)
    judge_key_env: str = ""
    data: str | None = None
    replies: Given | None = None
    config: str | Path | None = None
    load: LoadOptions = field(default_factory=LoadOptions)
    seed: int = 0
    repeat: int = 1
    concurrency: int | None = None
    max_cost: float | None = None
    max_unscored: float = DEFAULT_MAX_UNSCORED
    max_tries: int = 6
    cache: bool = True
    params: Mapping[str, Any] = field(default_factory=dict)
    judge_params: Mapping[str, Any] = field(default_factory=dict)
    judge_thinking: bool = False
    max_pixels: int | None = None
    reasks: int = 2
    protocol: Mapping[str, Any] = field(default_factory=dict)
    describe_prompt: str | Path | None = None
    judge_prompt: str | Path | None = None
    judge_system: str | Path | None = None
    judge_check: str | Path | None = None
    panel: str | None = None
    min_valid: int | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A model or judge ready to be called, and how it stands in `run.json`."""

    party: Party
    binding: Binding


def make_plan(request: RunRequest) -> Plan:
    """Loads the benchmark and binds model and judge.

    Raises:
        UsageError: something needed was not said, or two things exclude each other.
        SettingsError, DataError, TemplateError: what a file or a setting has wrong.
    """
    _check_parties(request)
    load = replace(request.load, seed=request.seed, cache=str(cache_folder()))
    benchmark = load_benchmark(request.benchmark, request.data, options=load)
    if not benchmark.items:
        raise UsageError(
            f"no item of {benchmark.name} is left to evaluate", hint="check --subset and --limit"
        )
    return plan_for(request, benchmark)


def _check_parties(request: RunRequest) -> None:
    """Asks for a model and a judge before gigabytes of data are fetched.

    Raises:
        UsageError: one of them was not named.
    """
    if not request.model and request.replies is None and not _is_blind(request):
        raise _no_model()
    if not _several(request.judge):
        raise _no_judge()


def _is_blind(request: RunRequest) -> bool:
    return request.protocol.get("control") == "blind"


def _no_model() -> UsageError:
    return UsageError(
        "no model: nothing says whose eyes are tested",
        hint="give --model NAME --api-url URL, or --replies FILE with replies that exist",
    )


def _no_judge() -> UsageError:
    return UsageError(
        "no judge: nothing says who reads the replies",
        hint="give --judge NAME [--judge-url URL], or --judge embedded for the offline one "
        "(low fidelity)",
    )


def plan_for(request: RunRequest, benchmark: Benchmark) -> Plan:
    """The plan of a benchmark that is loaded already."""
    options = protocol_options(request, benchmark)
    rules = PictureRules(max_pixels=request.max_pixels)
    settings = load_settings(request.config)
    model = bind_model(request, settings, rules)
    judges = bind_judges(request, benchmark, settings)
    panel = panel_of(request, judges)
    if request.max_cost is not None:
        _check_prices(model, *judges)
    return Plan(
        benchmark=benchmark,
        options=options,
        model=model.party,
        judge=judges[0].party if panel is None else _panel_party(panel, judges),
        bindings={
            "model": model.binding,
            **{role_of(seat): judge.binding for seat, judge in enumerate(judges)},
        },
        out=Path(request.out),
        seed=request.seed,
        repeats=request.repeat,
        drive=DriveOptions(
            retry=RetryPolicy(max_tries=request.max_tries),
            max_cost_usd=request.max_cost,
            seed=request.seed,
        ),
        cache=ResponseCache(cache_folder() / "replies.sqlite") if request.cache else None,
        max_unscored=request.max_unscored,
        rules=rules,
        settings=recorded_options(request, benchmark),
        judge_check=attached_check(request),
        panel=panel,
    )


def attached_check(request: RunRequest) -> JudgeCheck | None:
    """The judge check that a request attaches to its run.

    Raises:
        DataError: the file is no judge check.
    """
    if request.judge_check is None:
        return None
    from snellen.runs.judge_errors import read_check

    return read_check(request.judge_check)


def _check_prices(*parties: Bound) -> None:
    """A budget is only kept where every endpoint's prices are known.

    Raises:
        UsageError: an endpoint that will be called has no price.
    """
    for bound in parties:
        endpoint = bound.binding.endpoint
        unknown = endpoint.price_in_usd is None or endpoint.price_out_usd is None
        if unknown and endpoint.url.startswith("http"):
            raise UsageError(
                f"--max-cost needs the prices of {endpoint.name}",
                hint=f"set price_in_usd and price_out_usd in [models.{endpoint.name}] of "
                "snellen.toml; 0 for one that costs nothing",
            )


def protocol_options(request: RunRequest, benchmark: Benchmark) -> Options:
    """The protocol's own options, from the request's `protocol` words and prompt files.

    Raises:
        UsageError: an option does not belong to this benchmark's protocol.
    """
    kind = protocol_of(benchmark.protocol, benchmark.name).options
    wanted: dict[str, Any] = dict(request.protocol)
    if request.describe_prompt is not None:
        wanted["describe"] = templates.from_file(request.describe_prompt)
    if request.judge_system is not None:
        wanted["system"] = templates.from_file(request.judge_system)
    valid = kind.__dataclass_fields__
    for name in wanted:
        if name not in valid:
            option = OPTIONS.get(name) or "--" + name.replace("_", "-")
            raise UsageError(
                f"{option} has no meaning for {benchmark.name}, a {benchmark.protocol} benchmark",
                hint="leave it out",
            )
    options = kind(**wanted, reasks=request.reasks, given=request.replies)
    if request.judge_prompt is None:
        return options
    return _with_judge_prompt(options, templates.from_file(request.judge_prompt))


def _with_judge_prompt(options: Options, prompt: templates.Template) -> Options:
    """The options with a prompt of the user's in place of the one that the judge would get.

    Raises:
        TemplateError: the prompt has other marks than what can be filled in.
    """
    prompt.require(*judge_forms(options))
    usual = options.prompts["verdict"]
    slot = next(one.name for one in fields(options) if getattr(options, one.name) is usual)
    return with_templates(options, {slot: prompt})


def recorded_options(request: RunRequest, benchmark: Benchmark) -> dict[str, Any]:
    """The options that change numbers, for `run.json`: those that are not at their default."""
    usual = protocol_of(benchmark.protocol, benchmark.name).options()
    recorded = {k: v for k, v in request.protocol.items() if v != getattr(usual, k)}
    recorded["reasks"] = request.reasks
    if request.replies is not None:
        recorded["replies"] = "given"
    return recorded


def bind_model(request: RunRequest, settings: Settings, rules: PictureRules) -> Bound:
    """The model under test; replies that are given need none, nor does the control `blind`."""
    if _is_blind(request) and not request.model and not request.api_url:
        return _offline("blind", _NoModel())
    if request.replies is not None and not request.api_url:
        name = str(request.model) if isinstance(request.model, str) and request.model else "replies"
        return _offline(name, _NoModel())
    if callable(request.model):
        return _callable(request.model)
    if not request.model:
        raise _no_model()
    wish = EndpointWish(
        request.model,
        request.api_url,
        key=request.api_key,
        key_env=request.api_key_env,
        concurrency=request.concurrency,
        params=request.params,
    )
    return _remote(endpoint_of(wish, settings), rules)


def bind_judges(request: RunRequest, benchmark: Benchmark, settings: Settings) -> list[Bound]:
    """The judges of a request in their order: one, or the members of a panel.

    Raises:
        UsageError: URLs are neither one for all nor one for each judge.
    """
    judges: Sequence[Judge] = _several(request.judge) or ("",)
    urls: Sequence[str] = _several(request.judge_url) or ("",)
    if len(urls) not in {1, len(judges)}:
        raise UsageError(
            f"{len(urls)} URLs do not fit {len(judges)} judges",
            hint="give --judge-url once for all, or once for each --judge in the same order",
        )
    found: list[Bound] = []
    for seat, judge in enumerate(judges):
        alone = replace(request, judge=judge, judge_url=urls[seat % len(urls)])
        found.append(_named_apart(bind_judge(alone, benchmark, settings), found))
    return found


def _several(value: Any) -> tuple[Any, ...]:
    """One or more values as a tuple; nothing said is an empty one."""
    if isinstance(value, list | tuple):
        return tuple(value)
    return (value,) if value else ()


def _named_apart(bound: Bound, before: Sequence[Bound]) -> Bound:
    """Python callables often share a name, such as `<lambda>`: the later ones get a number."""
    taken = sum(one.binding.endpoint.name == bound.party.name for one in before)
    if not taken or not bound.binding.endpoint.url.startswith("python:"):
        return bound
    return replace(bound, party=replace(bound.party, name=f"{bound.party.name}-{taken + 1}"))


def panel_of(request: RunRequest, judges: Sequence[Bound]) -> Panel | None:
    """The panel that several judges make; None for one judge.

    Raises:
        UsageError: a panel's options with one judge, or a panel that cannot vote.
    """
    if len(judges) == 1:
        if request.panel or request.min_valid is not None:
            raise UsageError(
                "a panel needs several judges", hint="repeat --judge, or leave --panel out"
            )
        return None
    if request.panel not in {None, *RULES}:
        raise UsageError(
            f"a panel has no rule `{request.panel}`", hint=f"there are: {', '.join(RULES)}"
        )
    if request.protocol.get("gate_first"):
        raise UsageError(
            "--gate-first does not go with a panel: each judge would shut another gate",
            hint="leave --gate-first out",
        )
    names = tuple(judge.party.name for judge in judges)
    rule: Rule = "unanimity" if request.panel == "unanimity" else "majority"
    return Panel(names, rule, request.min_valid or len(names) // 2 + 1)


def _panel_party(panel: Panel, judges: Sequence[Bound]) -> Party:
    members = tuple(judge.party for judge in judges)
    return Party(
        "+".join(panel.members),
        model="+".join(member.model for member in members),
        params={"panel": panel.rule, "min_valid": panel.min_valid},
        fidelity="low" if any(member.fidelity == "low" for member in members) else "",
        members=members,
    )


def bind_judge(request: RunRequest, benchmark: Benchmark, settings: Settings) -> Bound:
    """One judge: an endpoint, the embedded one, or a Python callable."""
    if not isinstance(request.judge_url, str) or isinstance(request.judge, list | tuple):
        raise UsageError("one judge is needed here, not a panel", hint="give --judge once")
    judge, url = cast(Judge, request.judge), request.judge_url
    if callable(judge):
        return _callable(judge)
    if not judge:
        raise _no_judge()
    if judge == EMBEDDED:
        return bind_embedded()
    protocol = protocol_of(benchmark.protocol, benchmark.name)
    defaults = {
        "temperature": protocol.judge_defaults.temperature,
        "max_tokens": protocol.judge_defaults.max_tokens,
    }
    table = settings.models.get(judge)
    named = {} if table is None else table.params
    if "max_completion_tokens" in {**named, **request.judge_params}:
        del defaults["max_tokens"]
    wish = EndpointWish(
        judge,
        url or ("" if table is not None and table.url else request.api_url),
        key=request.judge_key or ("" if url else request.api_key),
        key_env=request.judge_key_env or ("" if url else request.api_key_env),
        concurrency=request.concurrency,
        params={**defaults, **named, **request.judge_params},
    )
    endpoint = endpoint_of(wish, settings)
    if not request.judge_thinking:
        soft = {k: v for k, v in THINKING_OFF.items() if k not in endpoint.params}
        endpoint = replace(endpoint, soft_params=soft)
    return _remote(endpoint, PictureRules())


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


class _KeptOpen:
    """A caller that outlives the run that uses it."""

    def __init__(self, caller: Caller) -> None:
        self.call = caller.call

    async def close(self) -> None:
        """Leaves the caller open for the next run."""


def bind_embedded() -> Bound:
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
    party = Party(EMBEDDED, model=judge.version, fidelity=judge.fidelity)
    kept = _KeptOpen(judge)
    return Bound(party, Binding(kept, endpoint, cacheable=False, shares_prefix=False))


def _remote(endpoint: Endpoint, rules: PictureRules) -> Bound:
    endpoint = (
        replace(endpoint, url=chat_url(endpoint.url)) if "@" not in endpoint.url else endpoint
    )
    client: Caller = ChatClient(endpoint)
    party = Party(
        endpoint.name,
        url=public_url(endpoint.url),
        model=endpoint.model,
        params={**endpoint.soft_params, **endpoint.params},
        family=endpoint.family,
        license=endpoint.license,
        released=endpoint.released,
        revision=endpoint.revision,
        quantization=endpoint.quantization,
    )
    public = replace(endpoint, url=public_url(endpoint.url), key="", headers={})
    return Bound(party, Binding(client, public, rules))


def _callable(function: Callable[..., Any]) -> Bound:
    name = getattr(function, "__name__", type(function).__name__)
    return _offline(name, CallableModel(function))


def _offline(name: str, caller: Caller) -> Bound:
    """Something that is called in this process: nothing of it is cached between runs."""
    endpoint = Endpoint(name, url=f"python:{name}", model=name)
    return Bound(Party(name, model=name), Binding(caller, endpoint, cacheable=False))


class _NoModel:
    """Stands where a model would be when all replies are given."""

    async def call(self, request: Any, pictures: Any) -> Any:
        """Is never reached: flows take the given replies."""
        raise UsageError(
            "a reply was asked for where all replies are given", hint="report this as a defect"
        )

    async def close(self) -> None:
        """Has nothing to close."""
