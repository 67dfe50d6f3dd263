"""Result files of VLMEvalKit: `MODEL/MODEL_DATASET_JUDGE_result.xlsx` and the like.

A table has the columns of the data set, less its pictures, with `prediction`; the evaluation of the
tool writes it again with a column that says whether the prediction is right.
"""

from __future__ import annotations

import csv
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from snellen.errors import DataError, MissingExtraError
from snellen.interchange.samples import ForeignSample, Found, listed, verdict_of
from snellen.readers.rows import read_rows
from snellen.records import LETTERS

TITLE = "VLMEvalKit"
TABLES = (".xlsx", ".tsv", ".csv", ".json")
# The column of the verdict: of multiple choice, judges, scores of short answers, and yes or no.
VERDICTS = ("hit", "judge_result", "correct", "is_correct", "match", "eval_score", "score")
FAILED = "Failed to obtain answer"
_PLACE = re.compile(r"<image[ _]?(\d+)>", re.I)

Cells = Mapping[str, str]
# A row's number, from 1 below the heading, and its cells or what is wrong with it.
Numbered = tuple[int, Cells | DataError]


def is_results(path: Path) -> bool:
    """Whether a file is a table below the folder of its model, with predictions and verdicts."""
    if path.suffix not in TABLES or not _model_of(path):
        return False
    try:
        first = next(iter(_rows(path)), None)
    except DataError:
        return False
    if first is None or isinstance(first[1], DataError):
        return False
    names = first[1].keys()
    return "prediction" in names and any(name in names for name in VERDICTS)


def read(path: Path) -> Iterator[Found]:
    """The samples of a table, bad rows as errors.

    Pictures stand there only as `image_path`; those of a data set's own table are looked up by
    data set and index.

    Raises:
        DataError: the file is no table, or has not the columns.
        MissingExtraError: openpyxl is not installed.
    """
    model = _model_of(path)
    benchmark = _dataset_of(path, model)
    for number, cells in _rows(path):
        if isinstance(cells, DataError):
            yield cells
            continue
        absent = next((n for n in ("index", "prediction", "question") if n not in cells), "")
        if absent:
            raise DataError(
                "there is no such column", file=path.name, field=absent,
                hint="give a table of predictions, such as MODEL_DATASET.xlsx",
            )  # fmt: skip
        if not cells["index"]:
            yield DataError("there is no index", file=path.name, row=number, field="index")
            continue
        name = next((one for one in VERDICTS if cells.get(one)), "")
        correct, score = verdict_of(cells[name]) if name else (None, None)
        reply = cells["prediction"]
        failed = reply.startswith(FAILED)
        index = cells["index"]
        question = _PLACE.sub(lambda place: f"<|image_{place[1]}|>", cells["question"]).strip()
        yield ForeignSample(
            id=f"{benchmark}/{index}",
            question=f"{cells['hint']}\n{question}" if cells.get("hint") else question,
            reference=cells.get("answer", ""),
            reply=None if failed else reply,
            model=model,
            benchmark=benchmark,
            index=int(index) if index.isdecimal() and str(int(index)) == index else index,
            file=path,
            row=number,
            pictures=listed(cells.get("image_path", "")),
            options=tuple(cells[one] for one in LETTERS if cells.get(one)),
            correct=None if failed else correct,
            score=None if failed else score,
        )


def _model_of(path: Path) -> str:
    """The folder above that the file is named after; "" for a file of another name."""
    for folder in path.absolute().parents[:2]:
        if path.name.startswith(f"{folder.name}_"):
            return folder.name
    return ""


def _dataset_of(path: Path, model: str) -> str:
    """The data set of a file: what its predictions, beside it, are called; else all of the name."""
    stem = path.stem.removeprefix(f"{model}_") if model else path.stem
    beside = [
        one.stem.removeprefix(f"{model}_")
        for one in path.parent.glob(f"{model}_*")
        if one.suffix in TABLES and one.stem != path.stem
    ]
    return min((one for one in beside if stem.startswith(f"{one}_")), key=len, default=stem)


def _rows(path: Path) -> Iterator[Numbered]:
    if path.suffix == ".xlsx":
        return _sheet(path)
    return _objects(path) if path.suffix == ".json" else table(path)


def table(path: Path) -> Iterator[Numbered]:
    """The rows of a TSV or CSV file; a cell may hold a whole picture."""
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = csv.reader(stream, delimiter="\t" if path.suffix == ".tsv" else ",")
        try:
            names = next(rows, [])
            for number, values in enumerate(rows, 1):
                if len(values) != len(names):
                    found = f"expected {len(names)} cells, found {len(values)}"
                    yield number, DataError(found, file=path.name, row=number)
                else:
                    yield number, dict(zip(names, values, strict=True))
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataError(f"is no table in UTF-8: {error}", file=path) from error


def _objects(path: Path) -> Iterator[Numbered]:
    decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
    for row in read_rows(path):
        try:
            fields = decoder.decode(row.data)
        except msgspec.MsgspecError as error:
            yield row.number, DataError(f"is no object: {error}", file=path.name, row=row.number)
            continue
        yield row.number, {name: _plain(raw) for name, raw in fields.items()}


def _plain(raw: msgspec.Raw) -> str:
    text = bytes(raw).decode()
    if text == "null":
        return ""
    return msgspec.json.decode(raw, type=str) if text.startswith('"') else text


def _sheet(path: Path) -> Iterator[Numbered]:
    """The rows of the first sheet; openpyxl names no row where the file is broken."""
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtraError("openpyxl, which reads .xlsx files", "import") from error
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (KeyError, ValueError, OSError, zipfile.BadZipFile) as error:
        raise DataError(f"is no Excel file: {error}", file=path) from error
    try:
        rows = book.worksheets[0].iter_rows(values_only=True)
        names = [str(one) for one in next(rows, ()) if one is not None]
        for number, values in enumerate(rows, 1):
            cells = values[: len(names)]
            if any(one is not None for one in cells):
                yield number, {n: _cell(v) for n, v in zip(names, cells, strict=False)}
    finally:
        book.close()


def _cell(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value)
