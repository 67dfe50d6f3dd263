"""The floor: a bare aiohttp client that posts messages of given sizes and reads JSON replies.

python benchmarks/floor.py URL IN_FLIGHT CALLSxBYTES...
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import aiohttp
import msgspec


async def post_all(url: str, in_flight: int, sizes: Iterator[int]) -> None:
    """Posts one body a size, so many at a time."""
    decode, encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    texts: dict[int, str] = {}
    connector = aiohttp.TCPConnector(limit=in_flight)
    headers = {"content-type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def work() -> None:
            for size in sizes:
                text = texts.setdefault(size, "x" * size)
                messages = [{"role": "user", "content": text}]
                body = encode({"model": "m", "temperature": 0, "messages": messages})
                async with session.post(f"{url}/chat/completions", data=body) as response:
                    decode(await response.read())

        await asyncio.gather(*(work() for _ in range(in_flight)))


def sizes_of(words: list[str]) -> Iterator[int]:
    """One size a call, from words such as 3000x400000."""
    for word in words:
        calls, size = map(int, word.split("x"))
        yield from (size for _ in range(calls))


if __name__ == "__main__":
    place, at_once, *loads = sys.argv[1:]
    asyncio.run(post_all(place, int(at_once), sizes_of(loads)))
