"""Read bodies of answers within bounds: a server must not fill this machine's memory."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable

import aiohttp

LONGEST_BODY = 16 * 2**20
"""Bytes of a reply's body, decompressed, that are read at most."""
LONGEST_ERROR = 64 * 2**10
"""Bytes of an error's body that are read; the rest is left."""
# Bodies beyond this are read a few at a time, whatever the number of calls in flight.
LARGE_BODY = 2**20
LARGE_AT_ONCE = 3
ACCEPTED = "gzip, deflate"
_ZLIB_OR_GZIP = 47  # zlib's window bits for either header


class BodyError(Exception):
    """A body that is too long, or packed in a way that was not asked for."""


class BodyReader:
    """Reads bodies for one connection pool."""

    def __init__(self, limit: int = LONGEST_BODY) -> None:
        self._limit = limit
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)

    async def read(self, response: aiohttp.ClientResponse) -> bytes:
        """The decompressed body; of an error its beginning.

        Raises:
            BodyError: it is longer than the limit, or cannot be unpacked.
        """
        is_error = response.status >= 300
        coding = response.headers.get("Content-Encoding", "").strip().lower()
        length = response.content_length
        if length is not None and length <= LARGE_BODY and coding in ("", "identity"):
            received = await response.read()
            return received[:LONGEST_ERROR] if is_error else received
        unpack = _unpacker(coding)
        parts, total, is_large = list[bytes](), 0, False
        limit = LONGEST_ERROR if is_error else self._limit
        try:
            async for packed in response.content.iter_any():
                left = packed
                while left and total <= limit:
                    part, left = unpack(left, limit + 1 - total)
                    parts.append(part)
                    total += len(part)
                if total > limit:
                    response.close()
                    if is_error:
                        break
                    raise BodyError(f"its body is longer than {limit / 2**20:g} MB")
                if total > LARGE_BODY and not is_large:
                    await self._large.acquire()
                    is_large = True
        except zlib.error as error:
            raise BodyError(f"its body cannot be unpacked ({coding})") from error
        finally:
            if is_large:
                self._large.release()
        return b"".join(parts)[:limit]


def _unpacker(coding: str) -> Callable[[bytes, int], tuple[bytes, bytes]]:
    """What unpacks a piece to at most so many bytes, and says what is left of the piece."""
    if coding in ("", "identity"):
        return lambda data, most: (data[:most], b"")
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise BodyError(f"its body is packed as `{coding[:20]}`, which was not asked for")
    unpacker = zlib.decompressobj(_ZLIB_OR_GZIP)

    def unpack(data: bytes, most: int) -> tuple[bytes, bytes]:
        return unpacker.decompress(data, most), unpacker.unconsumed_tail

    return unpack
