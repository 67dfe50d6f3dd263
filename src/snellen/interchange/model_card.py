"""The results of a run as the YAML block that a model's card begins with (`model-index`)."""

from __future__ import annotations

import json
from pathlib import Path

from snellen.interchange.written import Exported, metrics_of, unscored_notices
from snellen.runs.folder import Run
from snellen.runs.summary import summary_of


def write(run: Run, out: Path) -> Exported:
    """Writes the file `out`: a front matter with one result a metric, rates in per cent.

    The interval, the judge and the number of items stand in the name of each metric.
    """
    summary = summary_of(run)
    quote = json.dumps
    lines = [
        "---",
        "model-index:",
        f"- name: {quote(run.name)}",
        "  results:",
        "  - task:",
        "      type: image-text-to-text",
        "    dataset:",
        f"      name: {quote(run.spec.benchmark)}",
        f"      type: {quote(run.spec.benchmark)}",
        *([f"      revision: {quote(run.spec.revision)}"] if run.spec.revision else []),
        "    metrics:",
    ]
    for metric, value in metrics_of(run):
        assert value.value is not None
        ends = "" if value.ci95 is None else " [{:.2f}, {:.2f}]".format(
            *(metric.scale * end for end in value.ci95)
        )  # fmt: skip
        name = f"{metric.heading}{ends}, {value.n_items} items, judge {run.spec.judge.name}"
        lines += [
            f"    - type: {quote(metric.name)}",
            f"      value: {round(metric.scale * value.value, 4)}",
            f"      name: {quote(name)}",
        ]
    lines += ["    source:", "      name: Snellen", "---", ""]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("\n".join(lines), encoding="utf-8")
    return Exported((out,), summary.counts.probes, unscored_notices(summary))
