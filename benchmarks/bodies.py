"""Peak memory while an endpoint attacks with its bodies; exits with 1 above 400 MB.

    python benchmarks/bodies.py

Each attack meets a process of its own with 16 calls in flight at once.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import subprocess
import sys

ATTACKS = ("long_body", "endless", "gzip_bomb", "long_error")
CALLS = 16
MOST_MB = 400


async def suffer(url: str) -> list[str]:
    """The kinds of failure that all calls of one process end with."""
    from snellen.endpoints.http import ChatClient
    from snellen.records import CallFailure, Message, Request
    from snellen.settings import Endpoint

    client = ChatClient(Endpoint("attacker", url, "fake", key="sk-0123456789abcdef"))
    request = Request("judge", (Message("user", ("Which colour?",)),), "verdict")
    try:
        answers = await asyncio.gather(*(client.call(request) for _ in range(CALLS)))
    finally:
        await client.close()
    return [a.kind if isinstance(a, CallFailure) else "reply" for a in answers]


def main() -> int:
    """Prints a line an attack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.url:
        kinds = asyncio.run(suffer(options.url))
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{peak_mb:.0f} {' '.join(sorted(set(kinds)))}")
        return 0
    worst = 0.0
    for attack in ATTACKS:
        line = [sys.executable, "-m", "snellen.testing", "--fault", attack]
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            told = subprocess.run(
                [sys.executable, __file__, "--url", url], capture_output=True, text=True, check=True
            ).stdout
            server.terminate()
        peak, _, kinds = told.strip().partition(" ")
        worst = max(worst, float(peak))
        print(f"{attack:12} {CALLS} calls at once: peak {peak} MB, ended as {kinds}")
    print(f"at most {worst:.0f} MB, limit {MOST_MB} MB: {'holds' if worst < MOST_MB else 'FAILS'}")
    return int(worst >= MOST_MB)


if __name__ == "__main__":
    sys.exit(main())
