"""Start-up: `snellen --help` against `python -c pass`, and the size of an installation.

python benchmarks/startup.py           seconds
python benchmarks/startup.py --size    installs the core into a temporary folder as well
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import measuring

MOST_RATIO, MOST_MB = 10.0, 120.0


def main() -> None:
    """Prints the figures; exit code 1 where a limit fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--size", action="store_true")
    words = parser.parse_args()
    bare = median(words.rounds, "-c", "pass")
    ours = median(words.rounds, "-m", "snellen", "--help")
    print(f"snellen --help {1000 * ours:.0f} ms, python -c pass {1000 * bare:.0f} ms")
    holds = measuring.verdict("ratio", ours / bare, MOST_RATIO, at_least=False)
    if words.size:
        holds = measuring.verdict("installed MB", installed_mb(), MOST_MB, at_least=False) and holds
    sys.exit(0 if holds else 1)


def median(rounds: int, *words: str) -> float:
    """The median time of a command in seconds, after a first run that fills the caches."""
    line = measuring.python(*words)
    return statistics.median([measuring.run(line).wall_s for _ in range(rounds + 1)][1:])


def installed_mb() -> float:
    """The size of the core and all that it needs, as pip leaves them: bytecode included."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--target", folder, str(measuring.ROOT)], check=True)
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        sizes = {file: file.stat().st_size / 1e6 for file in files}
        parts: Counter[str] = Counter()
        for file, size in sizes.items():
            parts[file.relative_to(folder).parts[0]] += size
        for name, size in parts.most_common(8):
            print(f"  {name}: {size:.1f} MB")
        bytecode = sum(size for file, size in sizes.items() if file.suffix == ".pyc")
        blocks = sum(file.stat().st_blocks * 512 for file in Path(folder).rglob("*"))
        print(f"  of it bytecode: {bytecode:.1f} MB; on this disk: {blocks / 2**20:.1f} MiB")
        return sum(sizes.values())


if __name__ == "__main__":
    main()
