"""Settings, parsed once at the edge: `snellen.toml`, environment variables, endpoints."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from snellen.errors import SettingsError

CONFIG_NAME = "snellen.toml"
CACHE_VARIABLE = "SNELLEN_CACHE"
DECODING_VARIABLE = "SNELLEN_DECODING_PIXELS"
DECODING_PIXELS = 100_000_000
ENCODER_VARIABLE = "SNELLEN_ENCODER"
KEY_VARIABLE, URL_VARIABLE = "OPENAI_API_KEY", "OPENAI_BASE_URL"
OPENAI_HOST = "api.openai.com"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A named model behind a URL: what is sent to it, what it costs, how fast it may be asked.

    `url` is the base that ends before `/chat/completions`. `key` is secret and never shown or
    written. Prices are US dollars for a million tokens, None where unknown. `params` are body
    fields sent as they are; those in `soft_params` are given up when the endpoint refuses them.
    `variables` are those of the environment that gave the address or the key unasked.
    """

    name: str
    url: str
    model: str
    key: str = field(default="", repr=False)
    params: Mapping[str, object] = field(default_factory=dict)
    soft_params: Mapping[str, object] = field(default_factory=dict)
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
    variables: tuple[str, ...] = ()


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
    params: dict[str, object] = field(default_factory=dict)


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(
    r"(.*[-_])?(api_?key|key|token|secret|password|passwd|pwd|auth|authorization|credentials?|"
    r"bearer|jwt)",
    re.IGNORECASE,
)
_HARMLESS = frozenset({"eos_token", "bos_token", "pad_token", "stop_token", "prompt_cache_key"})
# What people write in place of our keys.
_OTHER_NAMES = {
    "base_url": "url", "api_url": "url", "api_base": "url", "endpoint": "url",
    "model_name": "model", "served_model_name": "model", "max_concurrency": "concurrency",
}  # fmt: skip
_BODY_FIELDS = frozenset(
    {
        "temperature", "max_tokens", "max_completion_tokens", "top_p", "top_k", "min_p", "seed",
        "stop", "presence_penalty", "frequency_penalty", "repetition_penalty", "extra_body",
        "reasoning_effort", "chat_template_kwargs",
    }
)  # fmt: skip
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
    """A whole `snellen.toml`: named models, and whether replies are shared between runs."""

    models: Mapping[str, ModelSettings] = field(default_factory=dict)
    cache: bool = False


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
    _refuse_unknown(raw, ("models", "cache"), f"{file}")
    cache = raw.get("cache", False)
    if not isinstance(cache, bool):
        raise SettingsError(f"{file}: `cache` is {cache!r}", hint="write cache = true, or false")
    models = raw.get("models", {})
    if not isinstance(models, dict):
        raise SettingsError(f"{file}: `models` is no table", hint="write [models.NAME]")
    return Settings(
        {name: _model(name, entry, f"{file}, [models.{name}]") for name, entry in models.items()},
        cache,
    )


def _model(name: str, entry: object, where: str) -> ModelSettings:
    if not isinstance(entry, dict):
        raise SettingsError(f"{where} is no table", hint="write [models.NAME] and keys below it")
    valid = tuple(f.name for f in fields(ModelSettings))
    for key in set(entry) - set(valid):
        if isinstance(entry[key], dict):
            raise SettingsError(
                f"{where}: unknown table `{key}`; a dot divides a name in TOML",
                hint=f'write the name in quotes: [models."{name}.{key}"]',
            )
        if key in _BODY_FIELDS:
            raise SettingsError(
                f"{where}: `{key}` is a parameter of the request",
                hint=f"write it below [models.{_toml_key(name)}.params]",
            )
        if _SECRET.fullmatch(key):
            raise SettingsError(
                f"{where}: unknown key `{key}`; no key stands in this file",
                hint='put the key into a variable, and write its name: key_env = "MY_KEY"',
            )
        if key in _OTHER_NAMES:
            raise SettingsError(
                f"{where}: unknown key `{key}`", hint=f"did you mean `{_OTHER_NAMES[key]}`?"
            )
    _refuse_unknown(entry, valid, where)
    try:
        model = msgspec.convert(entry, ModelSettings)
    except msgspec.ValidationError as error:
        raise SettingsError(
            f"{where}: {error}", hint="see the settings page of the docs"
        ) from error
    for key in (*_ABOVE_ZERO, *_PRICES):
        value = getattr(model, key)
        if value is None or 0 < value < float("inf") or (value == 0 and key in _PRICES):
            continue
        bound = "at least 0" if key in _PRICES else "above 0"
        raise SettingsError(
            f"{where}: `{key}` is {value:g}", hint=f"give a number {bound}, or leave it out"
        )
    return model


def _refuse_unknown(table: Mapping[str, object], valid: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in valid:
            close = difflib.get_close_matches(key, valid, 1, 0.4)
            near = close[0] if close else ", ".join(valid)
            hint = f"did you mean `{near}`?" if close else f"known keys: {near}"
            raise SettingsError(f"{where}: unknown key `{key}`", hint=hint)


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """An endpoint as a command names it.

    `url`, `key`, `key_env`, `concurrency` and `params` win over the table of that name in the
    settings file, and its params win over `defaults`.
    """

    name: str
    url: str = ""
    key: str = field(default="", repr=False)
    key_env: str = ""
    concurrency: int | None = None
    params: Mapping[str, object] = field(default_factory=dict)
    defaults: Mapping[str, object] = field(default_factory=dict)


def endpoint_of(options: EndpointOptions, settings: Settings) -> Endpoint:
    """The endpoint that a command means: the table of that name, with the command's options on top.

    Raises:
        SettingsError: there is no URL, or the variable that should hold the key is not set.
    """
    table = settings.models.get(options.name, ModelSettings())
    given = options.url or table.url
    usual = os.environ.get(URL_VARIABLE, "").strip()
    url = given or usual
    if not url:
        known = ", ".join(sorted(settings.models)) or "none"
        raise SettingsError(
            f"no URL for `{options.name}`",
            hint=f"give --api-url URL, or a [models.{_toml_key(options.name)}] table in "
            f"{CONFIG_NAME} (named there: {known}), or set {URL_VARIABLE}",
        )
    for name in _secret_names({**table.params, **options.params}):
        raise SettingsError(
            f"the body field `{name}` of `{options.name}` would send a secret, and is written to "
            "run.json",
            hint="name the variable that holds the key: --api-key-env VAR, --judge-key-env VAR, "
            "or key_env in the settings",
        )
    key = options.key.strip() or _key(options.key_env or table.key_env)
    variables: tuple[str, ...] = () if given else (URL_VARIABLE,)
    # The key goes to its own address alone.
    is_openai = urlsplit(url).hostname == OPENAI_HOST or (usual and url == usual)
    if is_openai and not (options.key or options.key_env or table.key_env):
        key = os.environ.get(KEY_VARIABLE, "").strip()
        variables += (KEY_VARIABLE,) if key else ()
    return Endpoint(
        name=options.name,
        url=url,
        model=table.model or options.name,
        key=key,
        params=_params(options, table),
        headers=table.headers,
        timeout_s=table.timeout_s,
        connect_timeout_s=table.connect_timeout_s,
        concurrency=options.concurrency or table.concurrency,
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
        variables=variables,
    )


def _params(options: EndpointOptions, table: ModelSettings) -> dict[str, object]:
    """The body fields; servers that know the newer name of the token limit refuse both."""
    chosen = {**table.params, **options.params}
    if "max_completion_tokens" in table.params and "max_tokens" in options.params:
        chosen["max_completion_tokens"] = chosen.pop("max_tokens")
    newer = "max_completion_tokens" in chosen
    usual = {k: v for k, v in options.defaults.items() if k != "max_tokens" or not newer}
    return {**usual, **chosen}


def _key(variable: str) -> str:
    """The key in a variable; an empty one stands for an endpoint that needs none.

    Raises:
        SettingsError: the variable is not set, or a key was given in place of its name.
    """
    if not variable:
        return ""
    # A text that is no variable looks like a key when it is long, of mixed case and digits.
    kinds = [any(map(kind, variable)) for kind in (str.isdigit, str.islower, str.isupper)]
    is_key = len(variable) >= 16 and kinds[0] and sum(kinds) >= 2
    if not _VARIABLE.fullmatch(variable) or (variable not in os.environ and is_key):
        raise SettingsError(
            "a key was given where the name of a variable is expected",
            hint="export MY_KEY=... in the shell that starts snellen, and give the name MY_KEY; "
            "a key that others may have seen should be replaced",
        )
    key = os.environ.get(variable)
    if key is None:
        raise SettingsError(
            f"the variable {variable} that should hold the key is not set",
            hint=f"export {variable}=... in the shell that starts snellen; leave it empty for an "
            "endpoint that needs no key",
        )
    return key.strip()


def _secret_names(params: Mapping[str, object]) -> Iterator[str]:
    """The body fields, inner ones too, whose name says that they hold a secret."""
    for name, value in params.items():
        if _SECRET.fullmatch(name) and name not in _HARMLESS:
            yield name
        if isinstance(value, Mapping):
            yield from _secret_names(value)


def _toml_key(name: str) -> str:
    """A name as TOML wants it: in quotes where it has a dot or another sign."""
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else f'"{name}"'


def cache_folder() -> Path:
    """Where replies and fetched data are kept: `SNELLEN_CACHE`, or the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "snellen"


def decoding_pixels() -> int:
    """How many pixels are decoded at once: `SNELLEN_DECODING_PIXELS`, or 100 million.

    Raises:
        SettingsError: the variable holds no whole number above 0.
    """
    chosen = os.environ.get(DECODING_VARIABLE, "").strip()
    if chosen and not (chosen.isascii() and chosen.isdigit() and int(chosen)):
        raise SettingsError(
            f"{DECODING_VARIABLE} is {chosen!r}, expected a whole number above 0",
            hint="give the pixels that may be decoded at once, such as 100000000",
        )
    return int(chosen or DECODING_PIXELS)


def encoder_path() -> Path | None:
    """Another model folder for the embedded judge, from `SNELLEN_ENCODER`; None for the bundled."""
    chosen = os.environ.get(ENCODER_VARIABLE)
    return Path(chosen) if chosen else None
