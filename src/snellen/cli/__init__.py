"""The command line: each command is imported only when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import NamedTuple

import click


class Entry(NamedTuple):
    """Where a command is, and its line in the overview."""

    module: str
    help: str


COMMANDS: Mapping[str, Entry] = {
    "demo": Entry("demo", "Evaluate three bundled captioners offline, and see what comes out."),
    "run": Entry("run", "Evaluate a model, or replies that exist, on a benchmark."),
    "merge": Entry("merge", "Unite the folders of shards into one run."),
    "batch": Entry("batch", "Send the calls of a run as batch files."),
    "plan": Entry("plan", "Say what a number of images can show, and what a run costs."),
    "show": Entry("show", "Print the numbers of one or more runs."),
    "samples": Entry("samples", "Write one row a sample and probe, as a table of data."),
    "data": Entry("data", "List, describe and check benchmarks."),
    "endpoint": Entry("endpoint", "Say what an endpoint can do."),
    "rejudge": Entry("rejudge", "Judge the stored replies of a run again."),
    "lengths": Entry("lengths", "Judge the captions of a run again, cut to several lengths."),
    "compare": Entry("compare", "Compare runs on the same items, in pairs."),
    "judges": Entry("judges", "Compare judges that read the same replies."),
    "align": Entry("align", "Correlate runs with outside ratings."),
    "judge-check": Entry("judge_check", "Measure a judge on material of known truth."),
    "audit": Entry("audit", "Correct a run's score by checking some of its verdicts."),
    "published": Entry("published", "Print published scores and how well they agree."),
    "report": Entry("report", "Write one HTML page about runs."),
    "reward": Entry("reward", "Score replies for the training of a model."),
    "view": Entry("view", "Look at runs in the browser."),
    "export": Entry("export", "Write results in the formats of other tools."),
    "build": Entry("build", "Build a benchmark of your own."),
    "review": Entry("review", "Review what was built, or a judge, in the browser."),
    "import": Entry("imports", "Read the formats of other tools."),
    "init": Entry("init", "Write a commented snellen.toml."),
}
# Names that other tools give to a command.
ALIASES: Mapping[str, str] = {"eval": "run"}


class LazyGroup(click.Group):
    """A group that knows its commands' names and imports one when it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the overview."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        entry = COMMANDS.get(ALIASES.get(cmd_name, cmd_name))
        if entry is None:
            return None
        module = importlib.import_module(f"snellen.cli.{entry.module}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, without importing a command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: snellen demo",
)
@click.version_option(package_name="snellen", prog_name="snellen")
def cli() -> None:
    """Snellen measures what a vision-language model really sees."""
