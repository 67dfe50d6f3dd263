"""A figure with all that is said about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure with its file name, its title and what it shows; a photo in it is never inverted."""

    name: str
    title: str
    caption: str
    figure: Figure
    has_photo: bool = False
