"""Settings, parsed once at the edge: `snellen.toml`, environment variables, endpoints."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import msgspec

from snellen.errors import SettingsError

CONFIG_NAME = "snellen.toml"
CACHE_VARIABLE = "SNELLEN_CACHE"
ENCODER_VARIABLE = "SNELLEN_ENCODER"


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


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """A `[models.NAME]` table of `snellen.toml`; `key_env` names a variable, never a key."""

    url: str = ""
    model: str = ""
    key_env: str = ""
    family: str = ""
    license: str = ""
    released: str = ""
    revision: str = ""
    quantization: str = ""
    price_in_usd: float | None = None
    price_cached_in_usd: float | None = None
    price_out_usd: float | None = None
    concurrency: int = 64
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout_s: float = 600.0
    connect_timeout_s: float = 10.0
    headers: dict[str, str] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)


_ABOVE_ZERO = (
    "timeout_s",
    "connect_timeout_s",
    "concurrency",
    "requests_per_minute",
    "tokens_per_minute",
)
_PRICES = ("price_in_usd", "price_cached_in_usd", "price_out_usd")


@dataclass(frozen=True, slots=True)
class Settings:
    """A whole `snellen.toml`: named models."""

    models: Mapping[str, ModelSettings] = field(default_factory=dict)


def load_settings(path: str | Path | None = None) -> Settings:
    """The settings of a file; without a path those of `./snellen.toml`, if there is one.

    Raises:
        SettingsError: the file is missing, no TOML, or has an unknown or wrong key.
    """
    file = Path(path) if path is not None else Path(CONFIG_NAME)
    if path is None and not file.exists():
        return Settings()
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(
            f"{file} cannot be read: {error}", hint="it must be a TOML file in UTF-8"
        ) from error
    _refuse_unknown(raw, ("models",), f"{file}")
    models = raw.get("models", {})
    if not isinstance(models, dict):
        raise SettingsError(f"{file}: `models` is no table", hint="write [models.NAME]")
    return Settings(
        {name: _model(entry, f"{file}, [models.{name}]") for name, entry in models.items()}
    )


def _model(entry: Any, where: str) -> ModelSettings:
    if not isinstance(entry, dict):
        raise SettingsError(f"{where} is no table", hint="write [models.NAME] and keys below it")
    _refuse_unknown(entry, tuple(f.name for f in fields(ModelSettings)), where)
    try:
        model = msgspec.convert(entry, ModelSettings)
    except msgspec.ValidationError as error:
        raise SettingsError(
            f"{where}: {error}", hint="see the settings page of the docs"
        ) from error
    for name in (*_ABOVE_ZERO, *_PRICES):
        value = getattr(model, name)
        if value is None or 0 < value < float("inf") or (value == 0 and name in _PRICES):
            continue
        bound = "at least 0" if name in _PRICES else "above 0"
        raise SettingsError(
            f"{where}: `{name}` is {value:g}", hint=f"give a number {bound}, or leave it out"
        )
    return model


def _refuse_unknown(table: Mapping[str, Any], valid: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in valid:
            close = difflib.get_close_matches(key, valid, 1, 0.4)
            near = close[0] if close else ", ".join(valid)
            hint = f"did you mean `{near}`?" if close else f"known keys: {near}"
            raise SettingsError(f"{where}: unknown key `{key}`", hint=hint)


@dataclass(frozen=True, slots=True)
class EndpointWish:
    """An endpoint as a command names it: what is given wins over the settings file."""

    name: str
    url: str = ""
    key: str = field(default="", repr=False)
    key_env: str = ""
    concurrency: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)


def endpoint_of(wish: EndpointWish, settings: Settings) -> Endpoint:
    """The endpoint of a wish: the named table of the settings, with what the command says on top.

    Raises:
        SettingsError: there is no URL, or the variable that should hold the key is not set.
    """
    table = settings.models.get(wish.name, ModelSettings())
    url = wish.url or table.url
    if not url:
        known = ", ".join(sorted(settings.models)) or "none"
        raise SettingsError(
            f"no URL for `{wish.name}`",
            hint=f"give its URL, or a [models.{wish.name}] table in {CONFIG_NAME} "
            f"(named there: {known})",
        )
    return Endpoint(
        name=wish.name,
        url=url,
        model=table.model or wish.name,
        key=wish.key.strip() or _key(wish.key_env or table.key_env),
        params={**table.params, **wish.params},
        headers=table.headers,
        timeout_s=table.timeout_s,
        connect_timeout_s=table.connect_timeout_s,
        concurrency=wish.concurrency or table.concurrency,
        requests_per_minute=table.requests_per_minute,
        tokens_per_minute=table.tokens_per_minute,
        price_in_usd=table.price_in_usd,
        price_cached_in_usd=table.price_cached_in_usd,
        price_out_usd=table.price_out_usd,
        family=table.family,
        license=table.license,
        released=table.released,
        revision=table.revision,
        quantization=table.quantization,
    )


def _key(variable: str) -> str:
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise SettingsError(
            f"the variable {variable} that should hold the key is not set, or empty",
            hint=f"export {variable}=... in the shell that starts snellen",
        )
    return key


def cache_folder() -> Path:
    """Where replies and fetched data are kept: `SNELLEN_CACHE`, or the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "snellen"


def encoder_path() -> Path | None:
    """Another model folder for the embedded judge, from `SNELLEN_ENCODER`; None for the bundled."""
    chosen = os.environ.get(ENCODER_VARIABLE)
    return Path(chosen) if chosen else None
