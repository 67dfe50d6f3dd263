"""Content hashes, request keys, addresses and seeds: the same on every machine and in every run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

from snellen.records import Image, Message, Request

KEY_VERSION = "1"

_encoder = msgspec.json.Encoder(order="deterministic")


def digest(data: bytes | str) -> str:
    """The SHA-256 of bytes, or of a text in UTF-8, in hex.

    >>> digest("E")[:8]
    'a9f51566'
    """
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def digest_of(value: Any) -> str:
    """The SHA-256 of a plain value's canonical JSON (sorted keys).

    >>> digest_of({"b": 1, "a": 2}) == digest_of({"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(_encoder.encode(value)).hexdigest()


def digest_of_set(digests: Iterable[str]) -> str:
    """One digest for many, whatever their order."""
    return digest("\n".join(sorted(digests)))


def request_key(
    request: Request, *, model: str, params: Mapping[str, Any], repeat: int = 0, prep: str = ""
) -> str:
    """The hash of everything that shapes an answer, save the endpoint's address.

    `params` are the body fields that will be sent; `prep` names the picture preparation. Pictures
    enter by digest, never by path. The ask and the repeat are in the key, so that a second ask is
    an entry of its own.
    """
    h = hashlib.sha256()
    head = [KEY_VERSION, model, params, request.ask, repeat, prep]
    if request.schema is not None:
        head.append(request.schema)
    h.update(_encoder.encode(head))
    for message in request.messages:
        _hash_message(h, message)
    return h.hexdigest()


def _hash_message(h: Any, message: Message) -> None:
    h.update(f"\x00{message.role}".encode())
    for part in message.parts:
        if isinstance(part, Image):
            h.update(b"\x01" + part.digest.encode())
        else:
            data = part.encode(errors="surrogatepass")
            h.update(b"\x02" + len(data).to_bytes(8, "big"))
            h.update(data)


def address(item_id: str, repeat: int, request: Request) -> str:
    """Where a call stands in its run, unique there: item, repeat, purpose, probe, ask."""
    return "\x1f".join((item_id, str(repeat), request.purpose, request.probe, str(request.ask)))


def seed_for(seed: int, *names: str) -> int:
    """A stable 64-bit seed for one purpose, from the run's seed and some names.

    >>> seed_for(0, "item-1", "order") == seed_for(0, "item-1", "order")
    True
    """
    text = "\x1f".join((str(seed), *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def rng_for(seed: int, *names: str) -> np.random.Generator:
    """A random generator of its own for one purpose."""
    return np.random.default_rng(seed_for(seed, *names))
