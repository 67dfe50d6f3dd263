"""Names that tell runs of one model apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from snellen.runs.folder import Run

DEEPEST = 3


def kept_share(run: Run) -> float | None:
    """The share of its captions that `snellen lengths` kept in a run, 0 to 1; None for a whole."""
    kept = run.spec.options.get("kept_share")
    return None if kept is None else float(kept)


def named_apart(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The same runs; where models have one name, what is cut, then the folder, stands behind it.

    A run and its control may share a name, for tables say `control` beside it. Runs of one folder
    get numbers.
    """
    plain = [
        run if (kept := kept_share(run)) is None else _renamed(run, run.name + _said(kept))
        for run in runs
    ]
    often = Counter(map(_label, plain))
    twice = [run for run in plain if often[_label(run)] > 1]
    depth = _depth_of(twice)
    named, seen = [], Counter[tuple[str, str]]()
    for run in plain:
        if often[_label(run)] == 1:
            named.append(run)
            continue
        seen[_label(run)] += 1
        apart = "/".join(run.folder.parts[-depth:]) if depth else f"#{seen[_label(run)]}"
        # A blind run has no model: its name is the control's, which tables say once more.
        if not depth:
            apart = f"{run.name} {apart}"
        elif run.name != _label(run)[1]:
            apart = f"{run.name} ({apart})"
        named.append(_renamed(run, apart))
    return tuple(named)


def whole_name(run: Run) -> str:
    """A run's name without what `named_apart` says of cut captions: that of its model."""
    kept = kept_share(run)
    return run.name if kept is None else run.name.partition(_said(kept))[0]


def _said(kept: float) -> str:
    return f" ({100 * kept:g}% kept)"


def _label(run: Run) -> tuple[str, str]:
    return run.name, str(run.spec.options.get("control") or "")


def _depth_of(runs: Sequence[Run]) -> int:
    """How many last parts of their folders tell runs of one name apart; 0 where none do."""
    for depth in range(1, DEEPEST + 1):
        ends = [(*_label(run), *run.folder.parts[-depth:]) for run in runs]
        if len(set(ends)) == len(ends):
            return depth
    return 0


def _renamed(run: Run, name: str) -> Run:
    return replace(run, spec=replace(run.spec, model=replace(run.spec.model, name=name)))
