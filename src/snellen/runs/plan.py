"""From a request to a plan: benchmark, replies that exist, endpoints, protocol options, folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from snellen import templates
from snellen.endpoints.bind import Binding, bind_judge, bind_model, bind_nobody
from snellen.endpoints.exact import URL as EXACT_URL
from snellen.engine.cache import ResponseCache
from snellen.engine.pacing import RetryPolicy
from snellen.engine.scheduler import DriveOptions
from snellen.errors import UsageError
from snellen.flows import REASKS, Given, given_rows
from snellen.pictures.prepare import PictureRules
from snellen.protocols import Options, judge_forms, protocol_of
from snellen.protocols.panels import Panel, role_of
from snellen.protocols.protocol import with_templates
from snellen.readers import LoadOptions, load_benchmark
from snellen.readers.mini import bundled_replies
from snellen.readers.replies import read_replies
from snellen.records import Benchmark, JsonObject, ModelRecord
from snellen.runs.judge_errors import read_check
from snellen.runs.request import RunRequest, arguments
from snellen.runs.run import Plan
from snellen.runs.shards import Shard, cut, read_shard
from snellen.settings import EndpointOptions, Settings, cache_folder, load_settings

# Body fields that have a field of their own in a request, and with `judge_` in front for the judge.
SAMPLING = ("temperature", "max_tokens", "top_p")


@dataclass(frozen=True, slots=True)
class GivenReplies:
    """Replies that exist already: the name that stands for their model, the rows, and notices."""

    name: str = ""
    rows: Given | None = None
    notices: tuple[str, ...] = ()


def make_plan(request: RunRequest) -> Plan:
    """Load the benchmark and bind model and judge.

    Raises:
        UsageError: something needed was not given, or two things exclude each other.
        SettingsError, DataError, TemplateError: a file or a setting is wrong.
    """
    benchmark, given = load_asked(request)
    if request.shard:
        return shard_plan(request, benchmark, read_shard(request.shard), given=given)
    return plan_for(request, benchmark, given=given)


def load_asked(request: RunRequest) -> tuple[Benchmark, GivenReplies]:
    """The benchmark that a request names, all shards of it, and the replies that exist.

    Raises:
        UsageError: no model, no judge or no item is given.
        DataError: a file is wrong.
    """
    if not request.model and request.replies is None and request.control != "blind":
        raise _no_model()
    if not _several(request.judge):
        raise _no_judge()
    given = read_given(request)
    load = LoadOptions(
        limit=request.limit,
        limit_per_subset=request.limit_per_subset,
        subsets=tuple(_several(request.subset)),
        sample=request.sample,
        seed=request.seed,
        on_bad_row=request.on_bad_row,
        allow_outside=tuple(_several(request.allow_outside)),
        split=request.split,
        revision=request.revision,
        source=request.source,
        cache=str(cache_folder()),
    )
    data = None if request.data is None else str(request.data)
    benchmark = load_benchmark(request.benchmark, data, options=load)
    if not benchmark.items:
        raise UsageError(
            f"no item of {benchmark.name} is left to evaluate", hint="check --subset and --limit"
        )
    return benchmark, given


def shard_plan(
    request: RunRequest, benchmark: Benchmark, shard: Shard, *, given: GivenReplies
) -> Plan:
    """The plan of one shard of a benchmark.

    Raises:
        EmptyShardError: the shard holds no item.
        UsageError: captions are to be swapped, for which one worker needs them all.
    """
    if request.control == "swapped":
        raise UsageError(
            "--shard does not go with --control swapped: captions are swapped among all items",
            hint="leave --shard out",
        )
    part, record = cut(benchmark, shard)
    if given.rows is not None:
        others = {item.id for item in benchmark.items} - {item.id for item in part.items}
        rows = {place: row for place, row in given.rows.items() if place[0] not in others}
        given = replace(given, rows=rows)
    return replace(plan_for(request, part, given=given), shard=record)


def read_given(request: RunRequest) -> GivenReplies:
    """The replies of a request: a mapping, a file, or those of a bundled captioner.

    Raises:
        UsageError: a reply is no text.
        DataError: the file cannot be read.
    """
    replies = request.replies
    if replies is None:
        return GivenReplies()
    if not isinstance(replies, Mapping):
        path = Path(replies)
        if not path.exists() and str(request.benchmark).startswith("mini-"):
            path = bundled_replies(path.stem, str(request.benchmark)) or path
        found = read_replies(str(path))
        return GivenReplies(Path(replies).stem, given_rows(found.replies), tuple(found.notices))
    for name, text in replies.items():
        if text is not None and not isinstance(text, str):
            raise UsageError(
                f"the reply of {name!r} is of type {type(text).__name__}", hint="give text, or None"
            )
    empty = [name for name, text in replies.items() if text is None]
    notices = tuple(f"the reply of {name!r} is None; it was left out" for name in empty)
    # A subclass of str, such as a text out of a numpy array, can be written into no file.
    texts = {str(k): str.__str__(v) for k, v in replies.items() if v is not None}
    return GivenReplies("replies", given_rows(texts), notices)


def _no_model() -> UsageError:
    return UsageError(
        "no model given",
        hint="give --model NAME --api-url URL, or --replies FILE with replies that exist",
    )


def _no_judge() -> UsageError:
    return UsageError(
        "no judge given",
        hint="give --judge NAME [--judge-url URL], or --judge embedded for the offline one "
        "(low fidelity)",
    )


def plan_for(
    request: RunRequest, benchmark: Benchmark, *, given: GivenReplies | None = None
) -> Plan:
    """The plan of a benchmark that is loaded already."""
    given = given or read_given(request)
    options = protocol_options(request, benchmark, given.rows)
    rules = PictureRules(max_pixels=request.max_pixels)
    settings = load_settings(request.config)
    model = _bind_model(request, given, settings=settings, rules=rules)
    judges = bind_judges(request, benchmark, settings)
    if protocol_of(benchmark.protocol, benchmark.name).describes and any(
        judge.endpoint.url == EXACT_URL for judge in judges
    ):
        raise UsageError(
            f"the judge `exact` cannot judge {benchmark.name}, whose replies are descriptions",
            hint="give a judge that reads, or --judge embedded for the offline one (low fidelity)",
        )
    panel = panel_of(request, judges)
    if request.max_cost is not None:
        _check_prices(model, *judges)
    judge = judges[0].record
    if panel is not None:
        members = tuple(one.record for one in judges)
        judge = ModelRecord(
            "+".join(panel.members),
            model="+".join(member.model for member in members),
            params={"panel": panel.rule, "min_valid": panel.min_valid},
            fidelity="low" if any(member.fidelity == "low" for member in members) else "",
            members=members,
        )
    return Plan(
        benchmark=benchmark,
        options=options,
        model=model.record,
        judge=judge,
        bindings={"model": model, **{role_of(seat): one for seat, one in enumerate(judges)}},
        out=Path(request.out),
        seed=request.seed,
        repeats=request.repeat,
        drive=DriveOptions(
            retry=RetryPolicy(max_tries=request.max_tries),
            max_cost_usd=request.max_cost,
            seed=request.seed,
            patience_s=request.patience,
        ),
        allow_blank=request.allow_blank,
        keep_unreadable=request.keep_unreadable,
        cache=open_cache(request, settings),
        max_unscored=request.max_unscored,
        rules=rules,
        settings=recorded_options(request, benchmark, given.rows),
        judge_check=None if request.judge_check is None else read_check(request.judge_check),
        panel=panel,
        notices=given.notices + taken_from_environment(model, *judges),
        systems=system_messages(request, options),
    )


def open_cache(request: RunRequest, settings: Settings) -> ResponseCache | None:
    """The cache that runs share, where the request or the settings ask for it."""
    wanted = settings.cache if request.cache is None else request.cache
    return ResponseCache(cache_folder() / "replies.sqlite") if wanted else None


def taken_from_environment(*bindings: Binding) -> tuple[str, ...]:
    """Says which endpoints have their address or key from the environment."""
    notices = [
        f"{' and '.join(one.endpoint.variables)} of the environment used for {one.endpoint.name} "
        f"({one.endpoint.url})"
        for one in bindings
        if one.endpoint.variables
    ]
    return tuple(dict.fromkeys(notices))


def _check_prices(*bindings: Binding) -> None:
    """A budget is only kept where every endpoint's prices are known.

    Raises:
        UsageError: an endpoint that will be called has no price.
    """
    for binding in bindings:
        endpoint = binding.endpoint
        unknown = endpoint.price_in_usd is None or endpoint.price_out_usd is None
        if unknown and endpoint.url.startswith("http"):
            raise UsageError(
                f"--max-cost needs the prices of {endpoint.name}",
                hint=f"set price_in_usd and price_out_usd in [models.{endpoint.name}] of "
                "snellen.toml; 0 for one that costs nothing",
            )


def protocol_options(request: RunRequest, benchmark: Benchmark, given: Given | None) -> Options:
    """The options of the benchmark's protocol, prompts from the user's files among them.

    Raises:
        UsageError: an option does not belong to this benchmark's protocol.
    """
    kind = protocol_of(benchmark.protocol, benchmark.name).options
    wanted: JsonObject = {}
    for one in arguments().values():
        value = getattr(request, one.name)
        if not one.about.protocols or value is None:
            continue
        if one.inner not in kind.__dataclass_fields__:
            raise UsageError(
                f"{one.option} has no meaning for {benchmark.name}, a {benchmark.protocol} "
                "benchmark",
                hint="leave it out",
            )
        wanted[one.inner] = templates.from_file(value) if one.name == "caption_prompt" else value
    if request.judge_system is not None and "system" in kind.__dataclass_fields__:
        wanted["system"] = templates.from_file(request.judge_system)
    options = kind(**wanted, reasks=_reasks(request), given=given)
    if request.judge_prompt is None:
        return options
    prompt = templates.from_file(request.judge_prompt)
    prompt.require(*judge_forms(options))
    usual = options.prompts["verdict"]
    slot = next(one.name for one in fields(options) if getattr(options, one.name) is usual)
    return with_templates(options, {slot: prompt})


def _reasks(request: RunRequest) -> int:
    return REASKS if request.reasks is None else request.reasks


def recorded_options(request: RunRequest, benchmark: Benchmark, given: Given | None) -> JsonObject:
    """The options that change numbers, for `run.json`: those that are not at their default."""
    usual = protocol_of(benchmark.protocol, benchmark.name).options()
    recorded = {
        one.inner: value
        for one in arguments().values()
        if one.about.protocols and one.name != "caption_prompt"
        for value in [getattr(request, one.name)]
        if value is not None and value != getattr(usual, one.inner)
    }
    recorded["reasks"] = _reasks(request)
    if given is not None:
        recorded["replies"] = "given"
    return recorded


def _bind_model(
    request: RunRequest, given: GivenReplies, *, settings: Settings, rules: PictureRules
) -> Binding:
    """The model under test; replies that are given need none, nor does the control `blind`."""
    named = request.model
    if not request.api_url:
        if request.control == "blind" and not named:
            return bind_nobody("blind")
        if given.rows is not None:
            return bind_nobody(named if isinstance(named, str) and named else given.name)
    named = named or given.name
    if not named:
        raise _no_model()
    options = EndpointOptions(
        "",
        request.api_url,
        key=request.api_key,
        key_env=request.api_key_env,
        concurrency=request.concurrency,
        params=body_fields(request) | ({"image_detail": request.detail} if request.detail else {}),
    )
    return bind_model(named, options, settings, rules=rules)


def body_fields(request: RunRequest, of: Literal["model", "judge"] = "model") -> JsonObject:
    """The body fields that a request asks for.

    Raises:
        UsageError: one of them is given twice.
    """
    prefix = "" if of == "model" else "judge_"
    fields = dict(request.params if of == "model" else request.judge_params)
    for name in SAMPLING:
        value = getattr(request, prefix + name)
        if value is None:
            continue
        if name in fields:
            dashed = prefix.replace("_", "-")
            raise UsageError(
                f"{name} is given twice",
                hint=f"leave it out of --{dashed}param: --{dashed}{name.replace('_', '-')} is "
                "enough",
            )
        fields[name] = value
    return fields


def system_messages(request: RunRequest, options: Options) -> dict[str, templates.Template]:
    """The user's system messages, by the role that gets them.

    The judge's is left to a protocol whose judge has a system message already.
    """
    found = {}
    if request.system is not None:
        found["model"] = templates.from_file(request.system)
    if request.judge_system is not None and "verdict_system" not in options.prompts:
        found["judge"] = templates.from_file(request.judge_system)
    return found


def bind_judges(request: RunRequest, benchmark: Benchmark, settings: Settings) -> list[Binding]:
    """The judges of a request in their order: one, or the members of a panel.

    Raises:
        UsageError: there is none, or URLs are neither one for all nor one for each judge.
    """
    judges = _several(request.judge)
    urls = _several(request.judge_url) or ("",)
    if not judges:
        raise _no_judge()
    if len(urls) not in {1, len(judges)}:
        raise UsageError(
            f"{len(urls)} URLs do not fit {len(judges)} judges",
            hint="give --judge-url once for all, or once for each --judge in the same order",
        )
    protocol = protocol_of(benchmark.protocol, benchmark.name)
    defaults: JsonObject = {
        "temperature": protocol.judge_defaults.temperature,
        "max_tokens": protocol.judge_defaults.max_tokens,
    }
    found: list[Binding] = []
    for seat, judge in enumerate(judges):
        url = urls[seat % len(urls)]
        table = settings.models.get(judge) if isinstance(judge, str) else None
        options = EndpointOptions(
            "",
            url or ("" if table is not None and table.url else request.api_url),
            # Without an address of its own a judge is at the model's, with the model's key.
            key=request.judge_key or ("" if url else request.api_key),
            key_env=request.judge_key_env or ("" if url else request.api_key_env),
            concurrency=request.concurrency,
            params=body_fields(request, of="judge"),
            defaults=defaults,
        )
        binding = bind_judge(judge, options, settings, thinks=request.judge_thinking)
        # Python callables often share a name, such as `<lambda>`: the later ones get a number.
        taken = sum(one.endpoint.name == binding.record.name for one in found)
        if taken and binding.endpoint.url.startswith("python:"):
            numbered = replace(binding.record, name=f"{binding.record.name}-{taken + 1}")
            binding = replace(binding, record=numbered)
        found.append(binding)
    return found


def _several(value: Any) -> tuple[Any, ...]:
    """One or more values as a tuple; nothing given is an empty one."""
    if isinstance(value, list | tuple):
        return tuple(value)
    return (value,) if value else ()


def panel_of(request: RunRequest, judges: Sequence[Binding]) -> Panel | None:
    """The panel that several judges make; None for one judge.

    Raises:
        UsageError: a panel's options with one judge, or a panel that cannot vote.
    """
    if len(judges) == 1:
        if request.panel or request.min_valid is not None:
            raise UsageError(
                "a panel needs several judges", hint="name more judges, or leave --panel out"
            )
        return None
    if request.gate_first:
        raise UsageError(
            "--gate-first does not go with a panel: each judge would shut another gate",
            hint="leave --gate-first out",
        )
    names = tuple(judge.record.name for judge in judges)
    return Panel(names, request.panel or "majority", request.min_valid or len(names) // 2 + 1)
