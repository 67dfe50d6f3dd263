"""The stage `induce`: the types of errors, ours or from the failures themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from snellen.builders.perception import inducing
from snellen.builders.perception.attributing import DESCRIBE, FAILURE, describe
from snellen.builders.perception.inducing import NamedType, TypeEdit, edited_types, merged_types
from snellen.builders.perception.options import InduceOptions
from snellen.builders.perception.rows import ErrorType, FailureRow
from snellen.builders.perception.taxonomy import DEFAULT, beyond
from snellen.builders.steps import (
    Made,
    Rejected,
    Unit,
    asked_again,
    failure_kind,
    is_failed,
    joined,
    undone,
)
from snellen.construction.files import write_json
from snellen.construction.perception.failure_stages import attributor_roles
from snellen.construction.picture_stages import PICTURE_TOKENS
from snellen.construction.question_stages import encoder_of
from snellen.construction.stages import Context, Expected, Stage
from snellen.errors import DataError
from snellen.flows import Flow
from snellen.keys import seed_for

OURS, INDUCED = "default", "induced"
TAXONOMY, CLUSTERS = "taxonomy.json", "clusters.json"
Vectors = NDArray[np.float32]
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Sampled:
    """The failures that types are induced from."""

    failures: tuple[FailureRow, ...]


class Cluster(msgspec.Struct, frozen=True):
    """A row of `clusters.json`: descriptions that are alike, the most typical first."""

    name: str
    failures: tuple[str, ...]
    descriptions: tuple[str, ...]


def induce_units(context: Context) -> Iterator[Unit]:
    """The units of work of `induce`."""
    options = context.of(InduceOptions)
    if options.taxonomy == OURS:
        yield Unit("taxonomy", [[one.id, one.definition] for one in DEFAULT], Sampled(()))
        return
    if options.taxonomy != INDUCED:
        types = read_types(Path(options.taxonomy))
        yield Unit("taxonomy", [msgspec.to_builtins(types)], Sampled(()))
        return
    rows = context.rows("collect", FailureRow)
    ranked = sorted(rows, key=lambda row: seed_for(context.seed, row.id, "induce"))
    chosen = tuple(sorted(ranked[: options.sample], key=lambda row: row.id))
    settings = [options.similarity, options.least, options.merge, options.reasks]
    yield Unit("taxonomy", [settings, [row.id for row in chosen]], Sampled(chosen))


def read_types(path: Path) -> tuple[ErrorType, ...]:
    """The types of a file: a JSON list of `{"name", "definition", "is_perceptual"}`.

    Raises:
        DataError: the file is absent or of another form, or has no perceptual type.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=list[TypeEdit])
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(
            f"is no taxonomy: {error}", file=path,
            hint='write [{"name": "...", "definition": "...", "is_perceptual": true}, ...]',
        ) from error  # fmt: skip
    types = [
        ErrorType(id=t.name, definition=t.definition, is_perceptual=t.is_perceptual) for t in found
    ]
    if not any(one.is_perceptual for one in types):
        raise DataError("has no perceptual type", file=path, hint="set is_perceptual on some")
    return merged_types(types)


def induce_unit(context: Context, sampled: Sampled) -> Flow[Made]:
    """Describes the sampled failures, clusters the descriptions, and has the clusters named.

    All is one flow: after a kill its calls come back from the journal.
    """
    options = context.of(InduceOptions)
    if options.taxonomy == OURS:
        yield []
        return Made(DEFAULT)
    if options.taxonomy != INDUCED:
        yield []
        return Made(read_types(Path(options.taxonomy)))
    role = context.seats["attributor"][0].role
    asked = yield [describe(row, role=role, reasks=options.reasks) for row in sampled.failures]
    if failed := next((one for one in asked if is_failed(one)), None):
        return undone(failed, "taxonomy")
    pairs = list(zip(sampled.failures, asked, strict=True))
    gone = tuple(
        Rejected(id=row.id, made_from=(row.id,), reason="undescribed")
        for row, one in pairs
        if one.value is None
    )
    counts = joined(Made(counts=asked_again(one)) for one in asked).counts
    texts = {row.id: one.value.description.strip() for row, one in pairs if one.value is not None}
    if not texts:
        return Made((*beyond(DEFAULT),), gone, counts=counts)
    ids = list(texts)
    vectors = _embedded([texts[name] for name in ids])
    groups = [_typical(group, vectors) for group in clustered(vectors, options)]
    named = []
    for number, group in enumerate(groups, 1):
        named.append((yield from _named(context, number, [texts[ids[k]] for k in group])))
        if named[-1] is None:
            return Made(failure="input_error")
    types = [
        ErrorType(
            id=one.name,
            made_from=tuple(ids[k] for k in group),
            definition=one.definition,
            is_perceptual=True,
            n=len(group),
            examples=tuple(texts[ids[k]] for k in group[: inducing.MOST_SHOWN]),
        )
        for one, group in zip(named, groups, strict=True)
        if one is not None
    ]
    clusters = [Cluster(t.id, t.made_from, tuple(texts[k] for k in t.made_from)) for t in types]
    write_json(context.folder / CLUSTERS, clusters)
    counts = {**counts, "descriptions": len(texts), "clusters": len(groups)}
    return Made(_placed(merged_types(types), options), gone, counts=counts)


def _named(context: Context, number: int, descriptions: Sequence[str]) -> Flow[NamedType | None]:
    """A cluster's name; without an inducer, or where it gives none, its most typical description.

    None where the call failed.
    """
    bare = NamedType(f"type_{number:02d}_error", descriptions[0])
    if not context.seats.get("inducer"):
        return bare
    role, reasks = context.seat("inducer").role, context.of(InduceOptions).reasks
    asked = yield from inducing.name_cluster(number, descriptions, role=role, reasks=reasks)
    if asked.reply is None and asked.value is None and failure_kind(asked):
        return None
    return asked.value or bare


def _embedded(texts: Sequence[str]) -> Vectors:
    vectors = encoder_of(os.getpid()).embed(texts)
    found = np.array([vectors[text] for text in texts], np.float32)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    unit: Vectors = found / np.maximum(lengths, 1e-9)
    return unit


def clustered(vectors: Vectors, options: InduceOptions) -> list[list[int]]:
    """Unit vectors (n, d) in groups, the largest first; small groups join the nearest large one.

    Groups are merged while their members are on average at least `similarity` alike. Without a
    group of `least` members all stay as they are.
    """
    if len(vectors) == 1:
        return [[0]]
    from scipy.cluster.hierarchy import fcluster, linkage

    tree = linkage(vectors.astype(np.float64), method="average", metric="cosine")
    marks = fcluster(tree, t=1.0 - options.similarity, criterion="distance")
    groups: dict[int, list[int]] = {}
    for k, mark in enumerate(marks):
        groups.setdefault(int(mark), []).append(k)
    large = [group for group in groups.values() if len(group) >= options.least]
    small = [k for group in groups.values() if len(group) < options.least for k in group]
    if not large:
        return sorted(groups.values(), key=lambda group: (-len(group), group))
    centres = np.array([vectors[group].mean(axis=0) for group in large])
    for k in small:
        large[int((centres @ vectors[k]).argmax())].append(k)
    return sorted(large, key=lambda group: (-len(group), group))


def _typical(group: Sequence[int], vectors: Vectors) -> list[int]:
    """The members of a group, those nearest to its centre first."""
    centre = vectors[list(group)].mean(axis=0)
    return sorted(group, key=lambda k: (-float(vectors[k] @ centre), k))


def _placed(types: Sequence[ErrorType], options: InduceOptions) -> tuple[ErrorType, ...]:
    """Induced types, like ones merged, beside our six beyond perception.

    Each names the type of ours that its words are nearest to; one that is nearest to a type beyond
    perception goes into that.
    """
    ours = _embedded([f"{one.id}: {one.definition}" for one in DEFAULT])
    own = _embedded([f"{one.id}: {one.definition}" for one in types])
    kept: list[ErrorType] = []
    at: list[int] = []
    for k, one in enumerate(types):
        near = DEFAULT[int((ours @ own[k]).argmax())]
        if not near.is_perceptual:
            kept.append(msgspec.structs.replace(near, n=one.n, made_from=one.made_from))
            at.append(-1)
            continue
        twin = next(
            (
                j
                for j in range(len(kept))
                if at[j] >= 0 and float(own[at[j]] @ own[k]) >= options.merge
            ),
            None,
        )
        name = one.id if twin is None else kept[twin].id
        kept.append(msgspec.structs.replace(one, id=name, nearest=near.id))
        at.append(k)
    return merged_types((*kept, *beyond(DEFAULT)))


def induce_settled(context: Context, parts: Sequence[Made]) -> Made:
    """The types as people's edits leave them; `taxonomy.json` is where they edit."""
    made = joined(parts)
    if not made.rows:
        return made
    path = context.folder / TAXONOMY
    before = _edits(path)
    names = [one.id for one in made.rows]
    write_json(path, [
        TypeEdit(
            one.id, one.definition, one.is_perceptual, one.n, one.nearest,
            *((e.new_name, e.new_definition, e.into, e.perceptual, e.drop)
              if (e := before.get(one.id)) else ()),
        )
        for one in made.rows
    ])  # fmt: skip
    types = edited_types(made.rows, {k: v for k, v in before.items() if k in names})
    if not any(one.is_perceptual for one in types):
        raise DataError(
            "the taxonomy has no perceptual type left", file=path,
            hint="undo an edit, or lower [induce] least",
        )  # fmt: skip
    lost = sum(one.has_edit for name, one in before.items() if name not in names)
    n_failures = len(context.rows("collect", FailureRow)) - len(made.rejected)
    counts = {**made.counts, "kept_inputs": n_failures, "edited": len(names) - len(types)}
    counts |= {"edits of types that are gone": lost} if lost else {}
    return Made(types, made.rejected, counts=counts)


def _edits(path: Path) -> dict[str, TypeEdit]:
    if not path.exists():
        return {}
    try:
        found = msgspec.json.decode(path.read_bytes(), type=list[TypeEdit])
    except msgspec.MsgspecError as error:
        raise DataError(
            f"cannot be read: {error}", file=path, hint="mend it, or delete it to begin anew"
        ) from error
    return {one.name: one for one in found}


def induce_roles(context: Context) -> tuple[str, ...]:
    """The roles that `induce` asks."""
    if context.of(InduceOptions).taxonomy != INDUCED:
        return ()
    return (*attributor_roles(context), *(("inducer",) if context.seats.get("inducer") else ()))


def induce_waits(context: Context) -> str:
    """What people must do after `induce`; empty for nothing."""
    if not context.rows("induce", ErrorType):
        return "no types of errors yet: a call failed; start again"
    edits = _edits(context.folder / TAXONOMY)
    if context.of(InduceOptions).manual and not any(one.has_edit for one in edits.values()):
        return f"look at {context.folder / TAXONOMY}, edit it, then set [induce] manual = false"
    return ""


def induce_expected(context: Context) -> Expected:
    """One unit of work, after which each failure is attributed; before `collect`, one a failure."""
    options = context.of(InduceOptions)
    failures = context.handed_on.get("collect")
    n = 1.0 if failures is None else float(len(failures))
    if options.taxonomy != INDUCED:
        return Expected(1.0, n)
    calls = {"attributor": min(float(options.sample), n)}
    if context.seats.get("inducer"):
        calls["inducer"] = 12.0 if failures is not None else 0.1
    return Expected(1.0, n, calls, PICTURE_TOKENS + 700, 200)


INDUCE = Stage(
    "induce",
    ErrorType,
    induce_units,
    induce_unit,
    settle=induce_settled,
    roles=induce_roles,
    waits=induce_waits,
    expects=induce_expected,
    prompts=(FAILURE, DESCRIBE, inducing.NAME),
)
