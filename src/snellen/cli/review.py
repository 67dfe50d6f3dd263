"""`snellen review`: people decide on what was built, and audit a judge, in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from snellen.cli.serving import serve_pages, takes_address
from snellen.errors import UsageError

if TYPE_CHECKING:
    from snellen.web.serving import Listening


@click.command(
    "review",
    epilog="Example: snellen review my-chart    then: snellen review stats my-chart",
)
@click.argument("words", nargs=-1, required=True, metavar="[stats] DIR")
@click.option(
    "--audit",
    type=click.IntRange(1),
    is_flag=False,
    flag_value=300,
    metavar="[N]",
    help="DIR is a run: audit N of its verdicts, blind to the judge's (300).",
)
@click.option("--seed", type=click.IntRange(0), default=0, help="The seed of the drawn verdicts.")
@click.option("--json", "as_json", is_flag=True, help="With `stats`: print the figures as JSON.")
@takes_address
def command(
    words: tuple[str, ...], *, audit: int | None, seed: int, as_json: bool, where: Listening
) -> None:
    """Review what `snellen build` has made, question by question.

    DIR is the --out of a build. Several annotators may work at once; all edits, and a share of what
    was accepted, go to the adjudicator. `stats DIR` prints rates, agreement and hours.

    With --audit DIR is a run. A person gives each verdict before the judge's is shown;
    `snellen show` then prints how often both agree.
    """
    is_stats = len(words) == 2 and words[0] == "stats"
    if not is_stats and len(words) != 1:
        raise UsageError(
            f"one folder is reviewed, and {len(words)} words were given",
            hint="snellen review DIR, or snellen review stats DIR",
        )
    folder = Path(words[-1])
    if is_stats:
        _print_stats(folder, as_json=as_json)
        return
    if audit is not None:
        from snellen.web.review.audit import AuditDesk, audit_app

        desk = AuditDesk(folder, audit, seed=seed)
        serve_pages(lambda access: audit_app(desk, access=access), where)
        return
    from snellen.web.review.app import review_app

    serve_pages(lambda access: review_app(folder, access=access), where)


def _print_stats(folder: Path, *, as_json: bool) -> None:
    from snellen.cli.printing import print_json, print_table
    from snellen.construction.review import review_options, state
    from snellen.construction.review_counts import count_review
    from snellen.tables.review import review_tables

    options, _ = review_options(folder)
    counts = count_review(state(folder), options.annotators, options.adjudicator)
    if as_json:
        print_json(counts)
        return
    for table in review_tables(counts):
        print_table(table)
