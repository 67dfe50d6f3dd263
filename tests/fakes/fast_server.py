"""A fake endpoint that costs next to no processor time, for benchmarks.

    python -m tests.fakes.fast_server --port 0 --delay-ms 20 --answer "A caption."

prints its port on one line. `--rule 'PIECE=ANSWER'` answers bodies that hold PIECE; the first rule
that fits wins. `GET /stats` gives `{"calls", "peak", "connections"}` as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from urllib.request import urlopen

ROOT = Path(__file__).parents[2]
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)


def _response(content: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % len(content) + content


def completion(text: str) -> bytes:
    """The body of a chat completion with a fixed text."""
    words = len(text.split())
    usage = {"prompt_tokens": 100, "completion_tokens": words, "total_tokens": 100 + words}
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    value = {
        "id": "fake",
        "object": "chat.completion",
        "created": 0,
        "model": "fake",
        "choices": [choice],
        "usage": usage,
    }
    return json.dumps(value).encode()


@dataclass(slots=True)
class State:
    """Ready answers, and the counts of what was asked."""

    default: bytes
    rules: Sequence[tuple[bytes, bytes]]
    delay_s: float
    calls: int = 0
    in_flight: int = 0
    peak: int = 0
    connections: int = 0

    def answer(self, body: bytes) -> bytes:
        """The first rule's answer that fits the body, or the default."""
        for piece, response in self.rules:
            if piece in body:
                return response
        return self.default


@dataclass(slots=True, eq=False)
class Connection(asyncio.Protocol):
    """One keep-alive connection; requests come one after the other."""

    state: State
    transport: asyncio.Transport | None = None
    pieces: list[bytes] = field(default_factory=list)
    held: int = 0
    wanted: int = 0
    head: bytes = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.state.connections += 1

    def data_received(self, data: bytes) -> None:
        self.pieces.append(data)
        self.held += len(data)
        if not self.wanted:
            self._read_head()
        if self.wanted and self.held >= self.wanted:
            self._answer(b"".join(self.pieces))

    def _read_head(self) -> None:
        data = b"".join(self.pieces)
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return
        self.head = data[: end + 2]
        length = _LENGTH.search(self.head)
        self.wanted = end + 4 + (int(length[1]) if length else 0)
        self.pieces = [data]

    def _answer(self, data: bytes) -> None:
        self.pieces, self.held, self.wanted = [], 0, 0
        if self.head.startswith(b"GET"):
            names = ("calls", "peak", "connections")
            counts = {name: getattr(self.state, name) for name in names}
            self._write(_response(json.dumps(counts).encode()))
            return
        state = self.state
        state.calls += 1
        state.in_flight += 1
        state.peak = max(state.peak, state.in_flight)
        response = state.answer(data)
        asyncio.get_running_loop().call_later(state.delay_s, self._finish, response)

    def _finish(self, response: bytes) -> None:
        self.state.in_flight -= 1
        self._write(response)

    def _write(self, response: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(response)


class FastServer:
    """The fast server in a process of its own, as a context manager that gives `.url`."""

    def __init__(
        self,
        answer: str = "ok",
        *,
        rules: Mapping[str, str] | None = None,
        delay_s: float = 0.0,
    ) -> None:
        self._command = [sys.executable, "-m", "tests.fakes.fast_server"]
        self._command += ["--answer", answer, "--delay-ms", str(delay_s * 1000)]
        for piece, text in (rules or {}).items():
            self._command += ["--rule", f"{piece}={text}"]
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def __enter__(self) -> FastServer:
        self._process = subprocess.Popen(
            self._command, cwd=ROOT, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}/v1"
        return self

    def stats(self) -> dict[str, int]:
        """Calls, the most calls in flight at once, and connections, so far."""
        with urlopen(f"{self.url}/stats") as response:
            counts: dict[str, int] = json.load(response)
        return counts

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()


async def serve(state: State, port: int) -> None:
    """Serve on loopback until cancelled; the port is printed first."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(state), "127.0.0.1", port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(description="a fake endpoint for benchmarks")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--answer", default="ok")
    parser.add_argument("--rule", action="append", default=[], metavar="PIECE=ANSWER")
    options = parser.parse_args()
    pairs = [rule.partition("=") for rule in options.rule]
    rules = [(piece.encode(), _response(completion(text))) for piece, _, text in pairs]
    state = State(_response(completion(options.answer)), rules, options.delay_ms / 1000)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(state, options.port))


if __name__ == "__main__":
    main()
