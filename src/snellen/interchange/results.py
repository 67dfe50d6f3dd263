"""The result files of all tools that are read, and how they are found in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from snellen.errors import DataError
from snellen.interchange import evalscope, inspect_log, lmms_eval, own_run, vlmevalkit
from snellen.interchange.samples import Found


@dataclass(frozen=True, slots=True)
class ResultFormat:
    """A tool's result files: how one is known, and how its samples are read."""

    name: str
    title: str
    is_results: Callable[[Path], bool]
    read: Callable[[Path], Iterator[Found]]


RESULTS: Mapping[str, ResultFormat] = {
    one.name: one
    for one in (
        ResultFormat("snellen", own_run.TITLE, own_run.is_results, own_run.read),
        ResultFormat("evalscope", evalscope.TITLE, evalscope.is_results, evalscope.read),
        ResultFormat("lmms-eval", lmms_eval.TITLE, lmms_eval.is_results, lmms_eval.read),
        ResultFormat("inspect", inspect_log.TITLE, inspect_log.is_results, inspect_log.read),
        ResultFormat("vlmevalkit", vlmevalkit.TITLE, vlmevalkit.is_results, vlmevalkit.read),
    )
}


def format_of(path: Path) -> ResultFormat | None:
    """The tool that a file is a result of; None for another file."""
    return next((one for one in RESULTS.values() if one.is_results(path)), None)


def find_results(source: str | Path) -> Iterator[tuple[Path, ResultFormat]]:
    """The result files of a source, in a stable order: a file, a run folder, or all below a folder.

    Raises:
        DataError: there is no such source, or no result file in it.
    """
    root = Path(source)
    if not root.exists():
        raise DataError("there is no such file or folder", file=source)
    paths = [root] if root.is_file() else sorted(one for one in root.rglob("*") if one.is_file())
    seen: set[Path] = set()
    for path in paths:
        known = None if path.resolve() in seen else format_of(path)
        if known is not None:
            seen.add(path.resolve())
            yield path, known
    if not seen:
        names = ", ".join(one.title for one in RESULTS.values())
        raise DataError(
            "holds no result file", file=source, hint=f"results of these tools are read: {names}"
        )
