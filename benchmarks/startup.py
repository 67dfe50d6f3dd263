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
        size, compiled = installed_mb()
        print(f"  bytecode that pip adds unless told not to: {compiled:.1f} MB")
        holds = measuring.verdict("installed MB", size, MOST_MB, at_least=False) and holds
    sys.exit(0 if holds else 1)


def median(rounds: int, *words: str) -> float:
    """The median time of a command in seconds, after a first run that fills the caches."""
    line = measuring.python(*words)
    return statistics.median([measuring.run(line).wall_s for _ in range(rounds + 1)][1:])


def installed_mb() -> tuple[float, float]:
    """The size of the core and all that it needs: what the wheels hold, and pip's bytecode."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--target", folder, str(measuring.ROOT)], check=True)
        files = [file for file in Path(folder).rglob("*") if file.is_file()]
        held = [file for file in files if file.suffix != ".pyc"]
        sizes = {
            top.name: sum(f.stat().st_size for f in held if top in f.parents) / 1e6
            for top in Path(folder).iterdir()
        }
        for name, size in sorted(sizes.items(), key=lambda pair: -pair[1])[:8]:
            print(f"  {name}: {size:.1f} MB")
        whole, bare = (sum(file.stat().st_size for file in some) / 1e6 for some in (files, held))
        return bare, whole - bare


if __name__ == "__main__":
    main()
