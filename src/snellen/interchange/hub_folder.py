"""A benchmark of regions as a folder that the `datasets` library loads, with Croissant metadata."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from snellen.errors import MissingExtraError
from snellen.records import JsonObject

TABLES = ("images", "regions", "questions")
# The hub shows pictures of a table only where its row groups are small.
ROWS_A_GROUP = 100
_TYPES = {"string": "sc:Text", "int64": "sc:Integer", "double": "sc:Float", "bool": "sc:Boolean"}


def write_hub_folder(benchmark: Path, out: Path) -> None:
    """Writes `out`: a Parquet file a table, the card as README.md, and `croissant.json`.

    Masks and metadata are JSON texts, since their forms differ between rows.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError("pyarrow, which writes Parquet files", "parquet") from error
    (out / "data").mkdir(parents=True, exist_ok=True)
    card = json.loads((benchmark / "benchmark.json").read_text(encoding="utf-8"))
    records = []
    for table in TABLES:
        lines = (benchmark / f"{table}.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [_flat(json.loads(line), benchmark) for line in lines]
        made = pa.Table.from_pylist(rows)
        if table == "images":
            features: JsonObject = {
                name: {"dtype": "string", "_type": "Value"} for name in made.column_names
            }
            features |= {
                name: {"feature": {"dtype": "string", "_type": "Value"}, "_type": "List"}
                for name in ("l1", "l2")
            }
            features["image"] = {"_type": "Image"}
            info = {"info": {"features": features}}
            made = made.replace_schema_metadata({"huggingface": json.dumps(info)})
        path = out / "data" / f"{table}.parquet"
        pq.write_table(made, path, row_group_size=ROWS_A_GROUP)
        records.append((table, path, {field.name: str(field.type) for field in made.schema}))
    configs = "\n".join(
        f"- config_name: {name}\n  data_files: data/{name}.parquet" for name in TABLES
    )
    head = f"---\nlicense: {card['license'] or 'unknown'}\nconfigs:\n{configs}\n---\n\n"
    text = (benchmark / "card.md").read_text(encoding="utf-8")
    (out / "README.md").write_text(head + text, encoding="utf-8")
    made_json = json.dumps(croissant(card, records), indent=1, ensure_ascii=False)
    (out / "croissant.json").write_text(made_json + "\n", encoding="utf-8")


def _flat(row: JsonObject, folder: Path) -> JsonObject:
    flat: JsonObject = {}
    for name, value in row.items():
        if name == "image":
            flat[name] = {"bytes": (folder / value).read_bytes(), "path": Path(value).name}
        elif name in ("mask", "metadata"):
            flat[name] = json.dumps(value, ensure_ascii=False)
        elif name == "bbox":
            flat[name] = [float(edge) for edge in value]
        else:
            flat[name] = value
    return flat


def croissant(
    card: JsonObject, tables: Iterable[tuple[str, Path, Mapping[str, str]]]
) -> JsonObject:
    """The Croissant 1.0 description of a data set of Parquet files.

    Source: MLCommons, Croissant format 1.0.
    """
    files, sets = [], []
    for name, path, columns in tables:
        files.append(
            {
                "@type": "cr:FileObject",
                "@id": f"{name}.parquet",
                "name": f"{name}.parquet",
                "contentUrl": f"data/{name}.parquet",
                "encodingFormat": "application/x-parquet",
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
        )
        sets.append(
            {
                "@type": "cr:RecordSet",
                "@id": name,
                "name": name,
                "field": [_field(name, column, kind) for column, kind in columns.items()],
            }
        )
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": card["name"],
        "description": "Multiple-choice questions about regions of pictures.",
        "version": str(card["version"]),
        "license": card["license"] or "unknown",
        "distribution": files,
        "recordSet": sets,
    }


def _field(table: str, column: str, kind: str) -> JsonObject:
    is_list = kind.startswith("list")
    inner = kind.partition("item: ")[2].rstrip(">") or kind.partition("element: ")[2].rstrip(">")
    data_type = "sc:ImageObject" if column == "image" else _TYPES.get(inner if is_list else kind)
    found: JsonObject = {
        "@type": "cr:Field",
        "@id": f"{table}/{column}",
        "name": column,
        "dataType": data_type or "sc:Text",
        "source": {"fileObject": {"@id": f"{table}.parquet"}, "extract": {"column": column}},
    }
    if column == "image":
        found["source"]["transform"] = {"jsonPath": "bytes"}
    if is_list:
        found["repeated"] = True
    return found


_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "sc": "https://schema.org/",
    "dct": "http://purl.org/dc/terms/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "jsonPath": "cr:jsonPath",
    "recordSet": "cr:recordSet",
    "repeated": "cr:repeated",
    "source": "cr:source",
    "transform": "cr:transform",
}
