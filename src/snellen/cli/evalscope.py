"""EvalScope's options in a command of ours: understood, or refused with the option that does it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from snellen.cli.options import parse_params
from snellen.errors import UsageError
from snellen.runs.request import RunRequest

# What stands in for keys of `--dataset-args` that we do not take there.
DATASET_OPTIONS = {
    "local_path": "--data PATH",
    "dataset_id": "--data PATH",
    "prompt_template": "--caption-prompt FILE",
    "system_prompt": "--system FILE",
    "eval_split": "--split NAME",
    "shuffle": "--sample N",
    "limit": "--limit-per-subset N",
}
GENERATION_OPTIONS = {
    "n": "--repeat K",
    "timeout": "timeout_s in snellen.toml",
    "retries": "--max-tries N",
    "batch_size": "--concurrency N",
}
LEFT_OUT = frozenset({"stream", "do_sample"})


def understand(
    request: RunRequest,
    *,
    dataset_args: str | None,
    generation_config: str | None,
    eval_batch_size: int | None,
) -> RunRequest:
    """The request with what EvalScope's options say.

    Raises:
        UsageError: one is no JSON, or says what another option of ours says.
    """
    if eval_batch_size is not None:
        request = replace(request, concurrency=eval_batch_size)
    if dataset_args is not None:
        found = _mapping("--dataset-args", dataset_args)
        others = set(found) - {str(request.benchmark)}
        if others:
            raise UsageError(
                f"--dataset-args speaks of {', '.join(sorted(others))}, and the benchmark is "
                f"{request.benchmark}",
                hint="name the benchmark that is evaluated",
            )
        entry = found.get(str(request.benchmark))
        if not isinstance(entry, Mapping):
            raise UsageError(
                "--dataset-args holds no object for the benchmark",
                hint='for example: {"perception_bench": {"subset_list": ["ocr_error"]}}',
            )
        _refuse("--dataset-args", entry, DATASET_OPTIONS)
        strange = set(entry) - {"subset_list"}
        if strange:
            raise UsageError(
                f"--dataset-args: `{min(strange)}` has no counterpart here",
                hint="`subset_list` is understood, which is --subset LABEL",
            )
        request = replace(request, subset=entry.get("subset_list") or request.subset)
    if generation_config is not None:
        text = generation_config.strip()
        fields = (
            _mapping("--generation-config", text)
            if text.startswith("{")
            else parse_params(tuple(filter(None, text.split(","))))
        )
        _refuse("--generation-config", fields, GENERATION_OPTIONS)
        kept = {k: v for k, v in fields.items() if k not in LEFT_OUT}
        request = replace(request, params={**kept, **request.params})
    return request


def _mapping(option: str, text: str) -> Mapping[str, object]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UsageError(
            f"{option} is no JSON: {error}", hint="put the whole object in single quotes"
        ) from error
    if not isinstance(found, dict):
        raise UsageError(f"{option} is no JSON object", hint="write {...} in single quotes")
    return found


def _refuse(option: str, found: Mapping[str, object], options: Mapping[str, str]) -> None:
    for name in found:
        if name in options:
            raise UsageError(f"{option}: `{name}` has an option", hint=f"give {options[name]}")
