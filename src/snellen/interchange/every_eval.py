"""The schema of Every Eval Ever (0.3.0): one file of results and one of samples."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import msgspec

from snellen.interchange.written import (
    Exported,
    answered,
    metrics_of,
    unscored_notices,
    write_json_file,
)
from snellen.keys import digest_of
from snellen.records import JsonObject
from snellen.runs.folder import Run
from snellen.runs.summary import summary_of
from snellen.version import __version__

SCHEMA_VERSION = "0.3.0"
UNKNOWN = "unknown"


def write(run: Run, out: Path) -> Exported:
    """Writes `data/BENCHMARK/DEVELOPER/MODEL/UUID.json` and `UUID_samples.jsonl` below `out`.

    The UUID is made from the run's digests: the same run has the same files. The schema has no
    place for unscored probes, so their counts stand in the details of each score.

    Source: every_eval_ever 0.3.0, its JSON schemas.
    """
    spec, summary = run.spec, summary_of(run)
    developer, _, model = run.name.rpartition("/")
    developer = developer or UNKNOWN
    at = spec.sessions[-1].at if spec.sessions else ""
    name = str(UUID(digest_of([spec.data_digest, run.name, spec.judge.name, at])[:32]))
    counts = summary.counts
    details = {"scored": str(counts.scored), "unscored": str(counts.unscored)}
    results = []
    for metric, value in metrics_of(run):
        uncertainty: JsonObject = {"num_samples": value.n_items}
        if value.ci95 is not None:
            uncertainty["confidence_interval"] = {
                "lower": value.ci95[0], "upper": value.ci95[1], "confidence_level": 0.95,
                "method": "bootstrap, clustered by image",
            }  # fmt: skip
        results.append({
            "evaluation_result_id": f"{name}/{metric.name}",
            "evaluation_name": metric.name,
            "source_data": {"dataset_name": spec.benchmark, "source_type": "other"},
            "metric_config": {
                "lower_is_better": metric.better < 0,
                "score_type": "continuous",
                "min_score": 0.0,
                **({"max_score": 1.0} if metric.unit == "%" else {}),
                "llm_scoring": {
                    "judges": [{"model_info": {"name": spec.judge.name, "id": spec.judge.name}}],
                    "input_prompt": _prompt(run),
                },
            },
            "score_details": {
                "score": value.value, "uncertainty": uncertainty, "details": details,
            },
        })  # fmt: skip
    aggregate = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{spec.benchmark}/{run.name}/{name}",
        "retrieved_timestamp": at,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": UNKNOWN,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "snellen", "version": __version__},
        "model_info": {"name": run.name, "id": f"{developer}/{model}"},
        "evaluation_results": results,
    }
    folder = out / "data" / spec.benchmark / developer / model
    path = write_json_file(folder / f"{name}.json", aggregate)
    samples = [_sample(run, name, row) for row in _samples(run)]
    lines = folder / f"{name}_samples.jsonl"
    lines.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in samples))
    return Exported((path, lines), len(samples), unscored_notices(summary))


def _prompt(run: Run) -> str:
    prompt = run.spec.prompts.get("verdict")
    return "" if prompt is None else prompt.text


def _samples(run: Run) -> list[JsonObject]:
    """One row an item and repeat; unscored ones have no evaluation."""
    rows: list[JsonObject] = []
    for one in answered(run):
        text = "" if one.reply is None else one.reply.reply or ""
        row: JsonObject = {
            "sample_id": f"{one.item.id}#{one.repeat}",
            "interaction_type": "single_turn",
            "input": {"raw": one.asked, "reference": [one.reference]},
            "output": {"raw": [text]},
            "answer_attribution": [],
            "metadata": {"status": "not_run" if one.reply is None else one.reply.status},
        }
        if one.share is not None:
            row["evaluation"] = {"score": one.share, "is_correct": one.share == 1.0}
        if one.reply is not None and one.reply.usage.prompt is not None:
            row["token_usage"] = {
                "input_tokens": one.reply.usage.prompt,
                "output_tokens": one.reply.usage.completion or 0,
                "total_tokens": one.reply.usage.prompt + (one.reply.usage.completion or 0),
            }
        rows.append(row)
    return rows


def _sample(run: Run, name: str, row: JsonObject) -> JsonObject:
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{run.spec.benchmark}/{run.name}/{name}",
        "model_id": run.name,
        "evaluation_name": run.spec.benchmark,
        **row,
    }
