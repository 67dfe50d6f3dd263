"""What a build would still call, by stage and role. Nothing is sent, and nothing is written."""

from __future__ import annotations

from dataclasses import dataclass

from snellen.construction.build import (
    BuildRequest,
    cast_of,
    chosen_stages,
    context_of,
    stage_basis,
    unit_key,
)
from snellen.construction.files import finished_keys
from snellen.engine.pacing import cost_usd
from snellen.records import Usage


@dataclass(frozen=True, slots=True)
class StageForecast:
    """The calls of one role in one stage; the cost is None where a price is not known.

    `inputs` are the units of work of the stage, `done` those that are finished. `is_counted` is
    False where the units are not known yet, since earlier stages have to make them.
    """

    stage: str
    role: str
    inputs: int
    done: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    is_counted: bool


def forecast(request: BuildRequest) -> tuple[StageForecast, ...]:
    """The calls of the stages that are asked for, in order, among them those that call nobody.

    Units are counted as long as the stages ahead have made them; after that each stage is taken to
    make what it usually makes.

    Raises:
        UsageError: a role that a stage needs has no model.
    """
    cast_ = cast_of(request)
    context = context_of(request, cast_)
    chosen = chosen_stages(request)
    found: list[StageForecast] = []
    expected: float | None = None
    for stage in request.pipeline.stages:
        for role in stage.roles(context) if stage in chosen else ():
            cast_.require(role, stage.name)
        if stage.work is None:
            continue
        expects = stage.expects(context)
        done, is_counted = 0, expected is None
        n_inputs = 0.0 if expected is None else expected * expects.units
        if is_counted:
            units = list(stage.units(context))
            basis, keys = stage_basis(stage, context, cast_), finished_keys(request.out, stage)
            done, n_inputs = sum(unit_key(one, basis) in keys for one in units), float(len(units))
        if not is_counted or done < n_inputs or stage.name not in context.handed_on:
            expected = n_inputs * expects.makes
        for role, calls in (expects.calls or {"": 0.0}).items() if stage in chosen else ():
            n = round(max(0.0, n_inputs - done) * calls)
            usage = Usage(n * expects.prompt_tokens, n * expects.completion_tokens)
            seats = cast_.seats.get(role, ()) if n else ()
            costs = [cost_usd(usage, cast_.bindings[seat.role].endpoint) for seat in seats]
            known = [one for one in costs if one is not None]
            mean = sum(known) / len(known) if known else 0.0
            found.append(
                StageForecast(
                    stage.name,
                    role,
                    round(n_inputs),
                    done,
                    n,
                    usage.prompt or 0,
                    usage.completion or 0,
                    mean if len(known) == len(costs) else None,
                    is_counted,
                )
            )
    return tuple(found)
