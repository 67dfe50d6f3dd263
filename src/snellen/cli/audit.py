"""`snellen audit`: people, or a stronger judge, check a sample of a run's verdicts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from snellen.cli.options import DRIVING, JUDGE, GroupedCommand, takes_request
from snellen.errors import UsageError
from snellen.runs.request import RunRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from snellen.judges.audit import Audit, AuditRow
    from snellen.runs.folder import Run


@click.command(
    "audit",
    cls=GroupedCommand,
    epilog="Example: snellen audit out/qwen --sample 100 --out audit.jsonl, fill `truth` in, "
    "then snellen audit out/qwen --read audit.jsonl",
)
@click.argument("run", type=click.Path(exists=True, file_okay=False))
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Draw N verdicts to check.")
@click.option("--out", metavar="FILE", help="Where the sample goes, as JSON-lines.")
@click.option("--read", "filled", metavar="FILE", help="A sample in which `truth` was filled in.")
@takes_request(*JUDGE, *DRIVING)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    request: RunRequest,
    *,
    run: str,
    sample: int | None,
    out: str | None,
    filled: str | None,
    as_json: bool,
) -> int:
    """Correct the score of RUN by an audit of its own verdicts.

    A score is corrected only from verdicts of that very run. Each row of the sample shows the
    question, the options, the reply and what the judge said; `truth` takes what it should have
    said: a letter, or true or false. With --judge a stronger judge fills what is empty.
    """
    from snellen.cli.printing import print_json, print_table
    from snellen.judges.audit import evaluate_audit, write_audit
    from snellen.judges.second_judge import fill_with_judge
    from snellen.runs.folder import load_run
    from snellen.tables.judges import audit_table

    loaded = load_run(run)
    rows = _rows(loaded, request, sample=sample, out=out, filled=filled)
    if request.judge:
        rows = asyncio.run(fill_with_judge(loaded, rows, request))
    if out:
        write_audit(rows, Path(out))
        click.echo(f"written: {out} ({len(rows)} verdicts)", err=True)
        if not filled and not request.judge:
            click.echo(f"fill in `truth`, then: snellen audit {run} --read {out}", err=True)
            return 0
    found = evaluate_audit(loaded, rows)
    if as_json:
        print_json(found)
    else:
        print_table(audit_table(loaded, found))
    for notice in (*_left_empty(rows, found), *([] if as_json else notices(found))):
        click.echo(f"notice: {notice}", err=True)
    return 0


def _rows(
    run: Run, request: RunRequest, *, sample: int | None, out: str | None, filled: str | None
) -> list[AuditRow]:
    from snellen.judges.audit import read_audit, sample_audit

    if filled and sample:
        raise UsageError("--sample and --read exclude each other", hint="give one of them")
    if filled:
        return read_audit(filled, run)
    if not sample or not (out or request.judge):
        raise UsageError(
            "an audit needs a sample",
            hint="draw one with --sample 100 --out audit.jsonl, or give --read audit.jsonl",
        )
    _spare_truths(run, out)
    return sample_audit(run, sample, seed=request.seed)


def _spare_truths(run: Run, out: str | None) -> None:
    """Refuses to write a new sample over a file in which somebody has filled truths."""
    from snellen.judges.audit import read_audit

    if not out or not Path(out).exists():
        return
    known = sum(row.truth != "" for row in read_audit(out, run))
    if known:
        raise UsageError(
            f"{out} exists, and {known} of its verdicts have a truth",
            hint=f"give --read {out} to go on with it, or another --out",
        )


def _left_empty(rows: Sequence[AuditRow], found: Audit) -> Iterator[str]:
    empty = len(rows) - found.n_audited
    if empty:
        yield (
            f"{empty} of {len(rows)} rows have no truth: the correction holds if those are no "
            "harder than the others"
        )


def notices(found: Audit) -> list[str]:
    """Where the audit's error rates differ from those of the attached judge check."""
    said = [
        f"{one.metric}: the judge's {one.rate} is {100 * one.audit.rate:.1f}% in the audit and "
        f"{100 * one.check.rate:.1f}% in the attached judge check (p = {one.p_value:.2g}): "
        "the check's rates do not hold for these replies"
        for one in found.differing
    ]
    if found.is_checked and not said:
        said = ["the audit's error rates do not differ from those of the attached judge check"]
    return said
