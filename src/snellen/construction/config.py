"""`build.toml`: the seed, who plays which role, and the options of each stage."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from snellen.construction.stages import Options, Pipeline
from snellen.errors import SettingsError
from snellen.records import JsonObject
from snellen.schemas import nearest
from snellen.settings import ModelSettings, Settings


@dataclass(frozen=True, slots=True)
class RoleTable:
    """One model of a role: a name of `snellen.toml`, or a served name and its address."""

    label: str
    settings: ModelSettings
    model: str


@dataclass(frozen=True, slots=True)
class BuildConfig:
    """A whole `build.toml`, checked; `digestible` is the same as plain data for `build.json`."""

    seed: int = 0
    roles: Mapping[str, tuple[RoleTable, ...]] = field(default_factory=dict)
    options: Options = field(default_factory=dict)


def load_config(
    path: str | Path | None, pipelines: Sequence[Pipeline], *, settings: Settings
) -> BuildConfig:
    """The configuration of a file; without a path the defaults, and nobody in any role.

    One file may serve all kinds of benchmarks, hence holds sections of every pipeline.

    Raises:
        SettingsError: the file is missing, no TOML, or has an unknown or wrong key.
    """
    if path is None:
        return BuildConfig()
    try:
        raw = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(
            f"{path} cannot be read: {error}", hint="give a TOML file in UTF-8"
        ) from error
    sections = {name: kind for one in pipelines for name, kind in one.sections.items()}
    _refuse_unknown(raw, ("seed", "roles", *sections), f"{path}")
    seed = raw.get("seed", 0)
    if type(seed) is not int:
        raise SettingsError(f"{path}: `seed` is {seed!r}", hint="give a whole number")
    options: dict[type[msgspec.Struct], msgspec.Struct] = {}
    for name, kind in sections.items():
        where = f"{path}, [{name}]"
        table = _table(raw.get(name, {}), where)
        _refuse_unknown(table, kind.__struct_encode_fields__, where)
        try:
            options[kind] = msgspec.convert(table, kind)
        except msgspec.ValidationError as error:
            raise SettingsError(f"{where}: {error}", hint="see the guide on building") from error
    roles = _table(raw.get("roles", {}), f"{path}, [roles]")
    known = [role for one in pipelines for role in (*one.roles, *one.embedding_roles(options))]
    _refuse_unknown(roles, tuple(dict.fromkeys(known)), f"{path}, [roles]")
    players = {name: _role(name, given, f"{path}", settings) for name, given in roles.items()}
    return BuildConfig(seed, players, options)


def _role(name: str, given: object, path: str, settings: Settings) -> tuple[RoleTable, ...]:
    """The models of one role; two of the same name are told apart by a number."""
    where = f"{path}, [roles.{name}]"
    found: list[RoleTable] = []
    for one in given if isinstance(given, list) else [given]:
        table, fields = _table(one, where), tuple(ModelSettings.__dataclass_fields__)
        _refuse_unknown(table, fields, where)
        named = settings.models.get(str(table.get("model", "")))
        try:
            own = msgspec.convert(table, ModelSettings)
        except msgspec.ValidationError as error:
            raise SettingsError(f"{where}: {error}", hint="see the settings page") from error
        if not own.model:
            raise SettingsError(
                f"{where} names no model", hint='write model = "NAME" and url = "http://..."'
            )
        base = named or ModelSettings()
        merged = {k: table.get(k, getattr(base, k)) for k in fields if k not in ("model", "params")}
        params = {**base.params, **own.params}
        model = base.model or own.model
        same = sum(role.label.partition("#")[0] == own.model for role in found)
        label = f"{own.model}#{same + 1}" if same else own.model
        found.append(RoleTable(label, ModelSettings(model=model, params=params, **merged), model))
    return tuple(found)


def _table(value: object, where: str) -> JsonObject:
    if not isinstance(value, dict):
        raise SettingsError(f"{where} is no table", hint="write its keys below its name")
    return value


def _refuse_unknown(table: Mapping[str, object], known: Sequence[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise SettingsError(f"{where}: unknown key `{key}`", hint=nearest(key, list(known)))
