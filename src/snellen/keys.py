"""Content hashes and seeds: the same on every machine and in every run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec
import numpy as np

canonical_json = msgspec.json.Encoder(order="deterministic").encode


def digest(data: bytes | str) -> str:
    """The SHA-256 of bytes, or of a text in UTF-8, in hex.

    >>> digest("E")[:8]
    'a9f51566'
    """
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def digest_of(value: object) -> str:
    """The SHA-256 of a plain value's canonical JSON (sorted keys).

    >>> digest_of({"b": 1, "a": 2}) == digest_of({"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(canonical_json(value)).hexdigest()


def digest_of_set(digests: Iterable[str]) -> str:
    """One digest for many, whatever their order."""
    return digest("\n".join(sorted(digests)))


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
