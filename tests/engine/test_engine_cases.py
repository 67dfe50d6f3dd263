"""Each situation that other tools were seen to fail in has a test of its own."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
CASES = [
    json.loads(line)
    for line in (HERE / "data" / "engine_cases.jsonl").read_text(encoding="utf-8").splitlines()
]


def names_in(file: Path) -> set[str]:
    """The test functions of a file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_case_is_held_by_the_tests_it_names(case: dict[str, object]) -> None:
    """The named tests exist."""
    tests = case["tests"]
    assert isinstance(tests, list)
    assert tests
    for test in tests:
        file, _, name = test.partition("::")
        assert name in names_in(HERE / file), test


def test_no_case_is_there_twice() -> None:
    """One id, one line."""
    assert len({case["id"] for case in CASES}) == len(CASES) == 24
