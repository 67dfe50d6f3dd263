"""`snellen init`: a commented settings file to start from."""

from __future__ import annotations

from pathlib import Path

import click

from snellen.errors import UsageError
from snellen.settings import CONFIG_NAME

TEXT = """\
# Settings of Snellen. Everything is optional; an unknown key is an error that names the nearest.
# This file is read from the folder in which a command is started, or with --config FILE.

# Take replies of other runs from the cache, and keep those of new runs there.
# cache = false

# A model under a name: then --model my-model, or --judge my-model.
# A name with a dot stands in quotes: [models."qwen2.5-vl"]
[models.my-model]
url = "http://127.0.0.1:8000/v1"
# model = "served-name"        # the name that is sent; the table's name by default
# key_env = "MY_KEY"           # the name of a variable of the environment, never a key
# family = "Qwen"              # for tables and for tests of neutrality
# license = "open"             # open, or closed
# released = "2026-02"
# revision = ""                # kept in run.json, with the next
# quantization = ""
# price_in_usd = 0.25          # a million tokens; needed by --max-cost
# price_cached_in_usd = 0.05
# price_out_usd = 1.0
# concurrency = 64             # calls in flight
# requests_per_minute = 600
# tokens_per_minute = 200000
# timeout_s = 600              # the whole request
# connect_timeout_s = 10

# Body fields, sent as they are.
[models.my-model.params]
# temperature = 0.0
# max_tokens = 4096

# A judge on another server.
# [models.my-judge]
# url = "http://127.0.0.1:8001/v1"
"""


@click.command("init", epilog="Example: snellen init, then edit snellen.toml")
@click.option(
    "--out", default=CONFIG_NAME, show_default=True, metavar="FILE", help="Where it is written."
)
def command(out: str) -> int:
    """Write a commented snellen.toml; a file that exists is left alone."""
    path = Path(out)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(TEXT)
    except FileExistsError:
        raise UsageError(f"{path} exists", hint="edit it, or give another --out") from None
    click.echo(f"written: {path}", err=True)
    return 0
