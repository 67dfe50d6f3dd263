"""The bundled `mini` benchmark's extras: captioners' replies, and a perfect judge's labels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

CAPTIONERS = ("thorough", "terse", "careless")
MINI = Path(__file__).parents[1] / "data" / "mini"


class Label(msgspec.Struct, frozen=True):
    """What a perfect judge says of one captioner's reply about one probe."""

    captioner: str
    id: str
    probe_id: str
    verdict: str | bool


def bundled_replies(captioner: str, benchmark: str) -> Path | None:
    """The file of a bundled captioner's replies to `mini-reading`, `mini-rubric`, `mini-direct`."""
    if captioner not in CAPTIONERS:
        return None
    name = "answers" if benchmark == "mini-direct" else "captions"
    return MINI / "replies" / captioner / f"{name}.jsonl"


def labels(protocol: str) -> Mapping[tuple[str, str, str], str | bool]:
    """The right verdicts for a perfect judge, by (captioner, item, probe)."""
    decoder = msgspec.json.Decoder(Label)
    lines = (MINI / "labels" / f"{protocol}.jsonl").read_bytes().splitlines()
    rows = [decoder.decode(line) for line in lines if line]
    return {(row.captioner, row.id, row.probe_id): row.verdict for row in rows}
