"""What a whole process takes, from start to exit: time, processor time, peak memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODEL, JUDGE = "eye", "mind"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process took; `cpu_s` is its own user and system time."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def run(command: Sequence[str], **variables: str) -> Cost:
    """Runs a command to its end and measures it; a failure ends the benchmark."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **variables}
    started = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            sys.exit(f"{' '.join(command)}\n{said.read().decode(errors='replace')}")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def python(*words: str | int | Path) -> list[str]:
    """A command of this interpreter."""
    return [sys.executable, *map(str, words)]


def floor(url: str, in_flight: int, *loads: str | Path) -> list[str]:
    """The bare client, with loads as `floor.py` takes them."""
    return python(ROOT / "benchmarks" / "floor.py", url, in_flight, *loads)


def snellen_run(benchmark: str, url: str, out: Path, *words: str | int) -> list[str]:
    """`snellen run` against one address."""
    return python(
        "-m", "snellen", "run", benchmark, "--model", MODEL, "--api-url", url, "--judge", JUDGE,
        "--judge-url", url, "--out", out, "--quiet", *words,
    )  # fmt: skip


@contextmanager
def workshop() -> Iterator[Path]:
    """A temporary folder, for the response cache too."""
    with tempfile.TemporaryDirectory(prefix="snellen-bench-") as name:
        use_cache(Path(name) / "cache")
        yield Path(name)


def use_cache(folder: Path) -> None:
    """Sets the response cache of the commands that follow."""
    os.environ["SNELLEN_CACHE"] = str(folder)


def compare(name: str, ours: Cost, floor: Cost, n_calls: int) -> tuple[float, float]:
    """Prints one line of figures; gives the ratios of rate and of CPU a call."""
    rate, cpu = floor.wall_s / ours.wall_s, ours.cpu_s / floor.cpu_s
    print(
        f"{name}: {n_calls:,} calls; rate {n_calls / ours.wall_s:,.0f}/s, "
        f"floor {n_calls / floor.wall_s:,.0f}/s, ratio {rate:.2f}; "
        f"CPU a call {1000 * ours.cpu_s / n_calls:.3f} ms, "
        f"floor {1000 * floor.cpu_s / n_calls:.3f} ms, ratio {cpu:.2f}; "
        f"peak {ours.peak_mb:.0f} MB",
        flush=True,
    )
    return rate, cpu


def verdict(name: str, value: float, limit: float, *, at_least: bool) -> bool:
    """Prints whether a figure holds its limit."""
    holds = value >= limit if at_least else value <= limit
    sign = ">=" if at_least else "<="
    print(f"  {'holds' if holds else 'FAILS'}: {name} {value:.2f} {sign} {limit:g}", flush=True)
    return holds
