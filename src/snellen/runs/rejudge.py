"""Judges a run's stored replies again, with another judge or in another way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from snellen.errors import UsageError
from snellen.protocols import Options, judge_forms
from snellen.protocols.protocol import with_templates
from snellen.records import Benchmark, JsonObject
from snellen.runs.folder import Run
from snellen.runs.plan import GivenReplies, plan_for
from snellen.runs.request import RunRequest, arguments
from snellen.runs.run import SYSTEM_PURPOSES, Plan
from snellen.runs.spec import PromptRecord
from snellen.templates import Template

# Purposes of prompts that are sent as they stand: any text serves.
_MARKLESS = frozenset({"reply", "reply_system", "verdict_system"})


def stored_benchmark(run: Run) -> Benchmark:
    """The benchmark of a run from its own folder; the data set itself is not needed."""
    spec = run.spec
    return Benchmark(
        spec.benchmark,
        spec.protocol,
        run.items,
        version=spec.benchmark_version,
        license=spec.license,
        source=spec.source,
        revision=spec.revision,
        digest=spec.data_digest,
        skipped=tuple(spec.skipped_rows),
    )


def rejudge_plan(run: Run, request: RunRequest) -> Plan:
    """The plan that judges a run's replies again and never calls the model.

    `request` names the judge, the folder and how calls are driven. Prompts and protocol options
    are those of the run unless the request gives others; items, replies with their failures, and
    all that is known of the model are the run's.

    Raises:
        UsageError: the folder is the run's own, or the run holds no replies.
    """
    spec = run.spec
    if not run.replies:
        raise UsageError(
            f"{run.folder} holds no replies yet", hint="let `snellen run` finish on it first"
        )
    stored: JsonObject = {
        one.name: spec.options[one.inner]
        for one in arguments().values()
        if one.about.protocols or one.name == "reasks"
        if one.inner in spec.options and getattr(request, one.name) is None
    }
    wanted = replace(
        request,
        benchmark=spec.benchmark,
        model=spec.model.name,
        api_url="",
        seed=spec.seed,
        repeat=spec.repeats,
        **stored,
    )
    plan = plan_for(wanted, stored_benchmark(run), given=GivenReplies("", run.replies))
    if plan.out.resolve() == run.folder.resolve():
        raise UsageError(f"{run.folder} is the run that is judged again", hint="give another --out")
    keep = set(spec.prompts) if request.judge_prompt is None else set(_MARKLESS)
    if request.judge_system is not None:
        keep.discard("verdict_system")
    systems = {
        role: Template(spec.prompts[purpose].name, spec.prompts[purpose].text)
        for role, purpose in SYSTEM_PURPOSES.items()
        if purpose in keep & set(spec.prompts) and purpose not in plan.options.prompts
    }
    return replace(
        plan,
        systems={**systems, **plan.systems},
        options=with_prompts(plan.options, {k: spec.prompts[k] for k in keep & set(spec.prompts)}),
        model=spec.model,
        # Whether the model was called is what the first run says.
        settings={k: v for k, v in plan.settings.items() if k != "replies"}
        | {k: v for k, v in spec.options.items() if k == "replies"},
        replies_from=run.folder.resolve().name,
        image_preparation=spec.image_preparation,
    )


def with_prompts(options: Options, prompts: Mapping[str, PromptRecord]) -> Options:
    """The options with stored prompts in place of the bundled ones, where they do the same job.

    With other options than the run's a purpose may be served by another kind of prompt (one
    statement a call, several questions a call): that one stays the bundled one.
    """
    changed = {
        field.name: stored
        for purpose, template in options.prompts.items()
        if purpose in prompts
        for stored in [Template(prompts[purpose].name, prompts[purpose].text)]
        if purpose in _MARKLESS
        or stored.name == template.name
        or (stored.fields and stored.fields == template.fields)
        or (purpose == "verdict" and stored.fits(*judge_forms(options)))
        for field in fields(options)
        if getattr(options, field.name) is template
    }
    return with_templates(options, changed)
