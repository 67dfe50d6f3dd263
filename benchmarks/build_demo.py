"""Shows a build from a folder of pictures to an evaluation, offline: `make build-demo`.

Regions and duplicates are found for real. Models are scripts behind an address of this machine:
they measure colours and brightness, and their words are few.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from tests.fakes.server import Behaviour, FakeServer
from tests.worlds.capprobe_world import MODELS, PICTURES, answer

from snellen.readers import load_benchmark

CONFIG = """\
[roles.matcher]
model = "matcher"
url = "{url}"
[roles.describer]
model = "describer"
url = "{url}"
[[roles.questioner]]
model = "alpha"
url = "{url}"
[[roles.questioner]]
model = "beta"
url = "{url}"

[segment]
max_regions = 4
[export]
name = "demo-chart"
license = "see the pictures' own licences"
"""


def snellen(*words: str) -> None:
    """Types a command, shows it, and stops where it fails."""
    print(f"\n$ snellen {' '.join(words)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "snellen", *words], check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def captions(benchmark: Path, path: Path) -> None:
    """Writes a caption a picture: what the description of each of its regions says."""
    found = load_benchmark(str(benchmark))
    said: dict[str, list[str]] = {}
    for region in found.regions:
        look = region.metadata["detailed_appearance"]["key_identifying_feature"]
        ymin, xmin, ymax, xmax = region.bbox
        place = f"{round(xmax - xmin)} by {round(ymax - ymin)}"
        said.setdefault(region.image_id, []).append(f"{look} Its size is {place}.")
    path.write_text(json.dumps({k: " ".join(v) for k, v in said.items()}), encoding="utf-8")


def main() -> int:
    """Builds, describes, checks and evaluates; says how long it took."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "build-demo-out")
    out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with FakeServer(answer, Behaviour(models=tuple(MODELS))) as server:
        config = out / "build.toml"
        config.write_text(CONFIG.format(url=server.url), encoding="utf-8")
        chart = out / "chart"
        base = ("build", "capprobe", str(PICTURES), "--config", str(config), "--out", str(chart))
        snellen(*base, "--dry-run")
        snellen(*base)
    snellen("build", "statistics", str(chart))
    benchmark = chart / "benchmark"
    snellen("data", "check", str(benchmark))
    replies = out / "captions.json"
    captions(benchmark, replies)
    snellen("run", str(benchmark), "--replies", str(replies), "--judge", "embedded",
            "--out", str(out / "run"), "--quiet")  # fmt: skip
    print(f"\nfrom folder to evaluation in {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
