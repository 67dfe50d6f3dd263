"""The floors of the house: a file imports from its own floor or from floors below, in no circle."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "snellen"

# From the ground up. A name stands for a file, or for a folder with all its files.
FLOORS: tuple[tuple[str, ...], ...] = (
    # 0 ground: pure; the standard library, msgspec and numpy
    (
        "errors", "records", "version", "keys", "templates", "tokens", "flows", "metrics",
        "schemas", "replies", "stats",
    ),
    # 1 flows: protocols and builders without I/O
    ("protocols", "builders"),
    # 2 input and output: each file owns one foreign library
    ("settings", "files", "pictures", "readers", "endpoints", "embedded", "sources", "segment"),
    # 3 drive: calls, runs, and the files of other tools
    ("engine", "runs", "fleet", "interchange", "construction"),
    # 4 questions asked of finished runs
    ("comparisons", "judges", "studies"),
    # 5 show
    (
        "tables", "figures", "report", "web", "rewards", "testing", "api", "cli", "__init__",
        "__main__", "inspect_tasks",
    ),
)  # fmt: skip
# Only the root of the package knows names of all floors, and imports them when they are used.
PURE = {"numpy", "msgspec"}
# The one file, or folder, that may import a heavy library.
OWNERS = {
    "aiohttp": {"endpoints", "testing"},
    "onnxruntime": {"embedded"},
    "matplotlib": {"figures"},
    "jinja2": {"report", "web"},
    "starlette": {"web", "rewards"},
    "uvicorn": {"web"},
    "pandas": {"runs"},
    "pyarrow": {"pictures", "readers", "interchange", "tables"},
    "datasets": {"readers"},
    "modelscope": {"readers"},
    "sacrebleu": {"studies"},
    "rouge_score": {"studies"},
    "nltk": {"studies"},
    "click": {"cli", "__main__"},
    "sqlite3": {"construction", "engine", "web"},
    "skimage": {"segment"},
    "pycocotools": {"segment"},
    "rapidocr": {"segment"},
    "torch": {"segment", "rewards"},
    "transformers": {"segment"},
    "ultralytics": {"segment"},
    "fsspec": {"sources"},
    "ray": {"fleet"},
    "openpyxl": {"interchange"},
    "zstandard": {"interchange"},
}


def modules() -> dict[str, Path]:
    """Every module by its dotted name below `snellen`."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = list(path.relative_to(SOURCE).with_suffix("").parts)
        if parts[-1] == "__init__" and len(parts) > 1:
            parts.pop()
        found[".".join(parts)] = path
    return found


MODULES = modules()


@cache
def imported(path: Path) -> frozenset[str]:
    """Absolute names of all modules that a file imports, type-checking ones included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            base = node.module.removeprefix("snellen.")
            for alias in node.names:
                inner = f"{base}.{alias.name}" if node.module != "snellen" else alias.name
                is_module = node.module.startswith("snellen") and inner in MODULES
                names.add(f"snellen.{inner}" if is_module else node.module)
    return frozenset(names)


def own(path: Path) -> set[str]:
    """The modules of this package that a file imports, by their name below `snellen`."""
    names = {n.removeprefix("snellen.") for n in imported(path) if n.startswith("snellen.")}
    return {name for name in names if name in MODULES}


def floor_of(name: str) -> int:
    for number, floor in enumerate(FLOORS):
        if name.partition(".")[0] in floor:
            return number
    raise AssertionError(f"{name} stands on no floor: add it to FLOORS")


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_arrow_points_up(name: str) -> None:
    """A file imports only from its own floor and from those below."""
    here = floor_of(name)
    if name == "__init__":
        return
    above = {other for other in own(MODULES[name]) if floor_of(other) > here}
    assert above == set()


def test_no_circle() -> None:
    """No file imports itself by way of others."""
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail[trail.index(name) :], name))
        if name not in done:
            for other in own(MODULES[name]):
                visit(other, (*trail, name))
            done.add(name)

    for name in set(MODULES) - {"__init__"}:
        visit(name, ())


def test_no_two_packages_import_each_other() -> None:
    """Between two packages all arrows point the same way."""
    arrows = {
        (name.partition(".")[0], other.partition(".")[0])
        for name, path in MODULES.items()
        if name != "__init__"
        for other in own(path)
    }
    assert {(a, b) for a, b in arrows if a < b and (b, a) in arrows} == set()


@pytest.mark.parametrize("name", sorted(n for n in MODULES if floor_of(n) == 0))
def test_the_ground_is_pure(name: str) -> None:
    """Ground files need the standard library, msgspec and numpy, and nothing else."""
    import sys

    foreign = {n.partition(".")[0] for n in imported(MODULES[name])} - {"snellen"}
    assert foreign - set(sys.stdlib_module_names) - PURE == set()


@pytest.mark.parametrize("library", sorted(OWNERS))
def test_a_heavy_library_has_one_owner(library: str) -> None:
    """A foreign library is imported in its owner only."""
    users = {
        name.partition(".")[0]
        for name, path in MODULES.items()
        if any(n == library or n.startswith(library + ".") for n in imported(path))
    }
    assert users <= OWNERS[library]


def test_flows_do_no_io() -> None:
    """Protocols know neither asyncio nor files nor sockets."""
    forbidden = {"asyncio", "aiohttp", "socket", "pathlib", "os", "subprocess", "threading"}
    for name, path in MODULES.items():
        if name.startswith(("protocols", "builders")):
            assert imported(path) & forbidden == set(), name


def test_nothing_catches_everything_but_the_scheduler() -> None:
    """A broad `except` stands once, where a user's own function is called."""
    broad = []
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler):
                caught = getattr(node.type, "id", None)
                if node.type is None or caught in {"Exception", "BaseException"}:
                    broad.append(name)
    assert len(broad) <= 1
    assert all(name.startswith("engine.") for name in broad)
