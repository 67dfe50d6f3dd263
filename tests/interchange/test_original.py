"""What `import snellen` offers."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import snellen


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that runs some code."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_public_name_exists_and_is_documented() -> None:
    """Each name in `__all__` can be had, and each function or class has a docstring."""
    for name in snellen.__all__:
        value = getattr(snellen, name)
        if callable(value):
            assert inspect.getdoc(value), name


def test_names_are_the_commands_words() -> None:
    """The names that outside scripts rely on are there."""
    assert {"run", "score_captions", "load_run", "compare"} <= set(snellen.__all__)
    assert set(snellen.__all__) <= set(dir(snellen))


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name says so at once."""
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        _ = snellen.rum


def test_importing_the_package_loads_nothing_heavy() -> None:
    """`import snellen` and the overview of commands load neither numpy nor aiohttp."""
    code = (
        "import sys, snellen, snellen.__main__; "
        "heavy = {'numpy', 'aiohttp', 'scipy', 'matplotlib', 'PIL'} & set(sys.modules); "
        "sys.exit(repr(sorted(heavy)) if heavy else 0)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


@pytest.mark.slow
def test_running_loads_no_analysis_library() -> None:
    """A run needs neither scipy nor pandas nor matplotlib."""
    code = (
        "import sys, snellen; "
        "snellen.run('mini-direct', model=lambda m: 'two', judge=lambda m: 'True', limit=1); "
        "heavy = {'scipy', 'pandas', 'matplotlib'} & set(sys.modules); "
        "sys.exit(repr(sorted(heavy)) if heavy else 0)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
