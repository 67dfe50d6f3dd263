"""The floor: a bare aiohttp client that posts bodies of a size and reads JSON replies.

python benchmarks/floor.py URL CALLS IN_FLIGHT BYTES
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import aiohttp
import msgspec


async def post_all(url: str, calls: int, in_flight: int, n_bytes: int) -> None:
    """Makes the calls, so many at a time."""
    filler = b"x" * n_bytes
    decode = msgspec.json.Decoder().decode
    numbers = iter(range(calls))
    connector = aiohttp.TCPConnector(limit=in_flight)
    headers = {"content-type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def work(numbers: Iterator[int]) -> None:
            for _ in numbers:
                body = b'{"x":"' + filler + b'"}'
                async with session.post(f"{url}/chat/completions", data=body) as response:
                    decode(await response.read())

        await asyncio.gather(*(work(numbers) for _ in range(in_flight)))


if __name__ == "__main__":
    place, *words = sys.argv[1:]
    asyncio.run(post_all(place, *map(int, words)))
