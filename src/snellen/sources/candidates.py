"""A picture that a source offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SUFFIXES = frozenset(
    {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif", ".jp2", ".ppm"}
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A picture file of a source, and what the source says of it.

    `tags` maps the source's own tags to their confidence, 0 to 1; `labels` are the two folders
    above the file. `path` is None for a file that the source names and that is not there.
    """

    name: str
    path: Path | None
    tags: Mapping[str, float] = field(default_factory=dict)
    labels: tuple[str, str] = ("", "")
