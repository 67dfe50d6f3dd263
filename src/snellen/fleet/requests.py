"""Requests that are carried out elsewhere, or later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from snellen.readers.catalog import KNOWN
from snellen.runs.request import RunRequest, arguments
from snellen.settings import CONFIG_NAME


def with_absolute_paths(request: RunRequest) -> RunRequest:
    """The same request for a process that begins in another folder."""
    changed: dict[str, str] = {}
    for name, one in arguments().items():
        value = getattr(request, name)
        if Path not in one.types or not isinstance(value, str | Path) or name == "out":
            continue
        if str(value) not in ("", *KNOWN) and Path(value).exists():
            changed[name] = str(Path(value).absolute())
    if request.config is None and Path(CONFIG_NAME).exists():
        changed["config"] = str(Path(CONFIG_NAME).absolute())
    return replace(request, **changed)  # type: ignore[arg-type]
