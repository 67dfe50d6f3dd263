"""`snellen endpoint`: what an endpoint can do, before a run depends on it."""

from __future__ import annotations

import asyncio

import click


@click.command("endpoint", epilog="Example: snellen endpoint http://127.0.0.1:8000/v1 --model m")
@click.argument("url")
@click.option("--model", default="", metavar="NAME", help="The model; else the only one there.")
@click.option("--api-key-env", default="", metavar="VAR", help="The variable that holds the key.")
@click.option("--api-key", default="", metavar="KEY", help="The key; never written.")
@click.option("--config", type=click.Path(dir_okay=False), metavar="FILE", help="Settings.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(
    url: str, model: str, api_key_env: str, api_key: str, config: str | None, *, as_json: bool
) -> int:
    """Say whether an endpoint answers, sees pictures, thinks, and gives log-probabilities."""
    from snellen.cli.printing import print_json
    from snellen.endpoints.capabilities import probe_endpoint
    from snellen.settings import EndpointOptions, endpoint_of, load_settings

    options = EndpointOptions(model, url, key=api_key, key_env=api_key_env)
    report = asyncio.run(probe_endpoint(endpoint_of(options, load_settings(config))))
    if as_json:
        print_json(report)
    else:
        for line in report.lines:
            click.echo(line)
    return 0 if report.answers else 1
