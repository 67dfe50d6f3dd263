"""Makes the table of controls that docs/concepts/controls.md shows, with the embedded judge.

python benchmarks/controls_mini.py            # prints it
python benchmarks/controls_mini.py --write    # puts it into the page
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import snellen
from snellen.readers.mini import bundled_replies
from snellen.readers.replies import load_replies
from snellen.studies.controls import Controlled
from snellen.tables.studies import controls_table
from snellen.tables.writers import to_markdown

PAGE = Path(__file__).parents[1] / "docs/concepts/controls.md"
BEGIN, END = "<!-- made by benchmarks/controls_mini.py -->\n", "<!-- end -->"
CAPTIONER = "thorough"
ORDERS = (1, 2, 3, 4, 5)


def mini_case(folder: Path) -> Controlled:
    """The bundled captioner `thorough` on `mini-reading`, with its controls."""
    source = bundled_replies(CAPTIONER, "mini-reading")
    assert source is not None
    words = {"judge": "embedded", "model": CAPTIONER, "replies": load_replies(source)}
    real = snellen.run("mini-reading", out=folder / "real", **words)
    swapped = snellen.run("mini-reading", out=folder / "swapped", control="swapped", **words)
    blind = tuple(
        snellen.run(
            "mini-reading",
            judge="embedded",
            control="blind",
            option_order=seed,
            out=folder / f"blind-{seed}",
        )
        for seed in ORDERS
    )
    return Controlled(real, blind, (swapped,))


def shown_part(case: Controlled) -> str:
    """The part of the page between the marks."""
    return BEGIN + "\n" + to_markdown(controls_table(case)) + "\n"


def page_with(part: str) -> str:
    """The page with this part in place of the one that it holds."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return before + part + END + rest.split(END)[1]


def main() -> None:
    """Prints the table, or writes it into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        part = shown_part(mini_case(Path(folder)))
    if words.write:
        PAGE.write_text(page_with(part), encoding="utf-8")
    else:
        print(part)


if __name__ == "__main__":
    main()
