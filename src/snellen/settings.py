"""Settings, parsed once at the edge: endpoints, `snellen.toml`, environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A named model behind a URL: what is sent to it, what it costs, how fast it may be asked.

    `url` is the base that ends before `/chat/completions`. `key` is secret and never shown or
    written. Prices are US dollars for a million tokens, None where unknown. `params` are body
    fields sent as they are; those in `soft_params` are given up when the endpoint refuses them.
    """

    name: str
    url: str
    model: str
    key: str = field(default="", repr=False)
    params: Mapping[str, Any] = field(default_factory=dict)
    soft_params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 600.0
    connect_timeout_s: float = 10.0
    concurrency: int = 64
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    price_in_usd: float | None = None
    price_cached_in_usd: float | None = None
    price_out_usd: float | None = None
    family: str = ""
    license: str = ""
    released: str = ""
    revision: str = ""
    quantization: str = ""
