"""The floor: a bare aiohttp client that posts messages and reads JSON replies.

    python benchmarks/floor.py URL IN_FLIGHT LOAD...

A load is CALLSxBYTES, or a JSON-lines file of questions with pictures, which are read from it as
they are sent.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import aiohttp
import msgspec

Content = str | list[dict[str, Any]]


async def post_all(url: str, in_flight: int, contents: Iterator[Content]) -> None:
    """Posts one message a content, so many at a time."""
    decode, encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    connector = aiohttp.TCPConnector(limit=in_flight)
    headers = {"content-type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def work() -> None:
            for content in contents:
                messages = [{"role": "user", "content": content}]
                body = encode({"model": "m", "temperature": 0, "messages": messages})
                async with session.post(f"{url}/chat/completions", data=body) as response:
                    decode(await response.read())

        await asyncio.gather(*(work() for _ in range(in_flight)))


def contents_of(loads: list[str]) -> Iterator[Content]:
    """What is posted, load after load."""
    for load in loads:
        if load.endswith(".jsonl"):
            yield from questions(load)
            continue
        calls, size = map(int, load.split("x"))
        text = "x" * size
        yield from (text for _ in range(calls))


def questions(path: str) -> Iterator[Content]:
    """The pictures and the question of each row."""
    decode = msgspec.json.Decoder().decode
    with open(path, "rb") as file:
        for line in file:
            row = decode(line)
            parts = [{"type": "image_url", "image_url": {"url": uri}} for uri in row["image"]]
            yield [*parts, {"type": "text", "text": row["problem"]}]


if __name__ == "__main__":
    place, at_once, *words = sys.argv[1:]
    asyncio.run(post_all(place, int(at_once), contents_of(words)))
