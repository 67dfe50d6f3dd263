"""A figure with all that is said about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure with its file name, its title and what it shows.

    `is_thin` says that most of its marks stand for a few pictures each: nothing to conclude from.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    is_thin: bool = False
