"""The tools of `make check` catch a planted fault with the project's own configuration."""

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.repo.programs import Plant, run

FORMAT = ("ruff", "format", "--check", "--no-cache")
LINT = ("ruff", "check", "--no-cache")
TYPES = ("mypy", "--cache-dir", "mypy_cache")
DOCUMENTED = '"""A module."""\n\n'


class Row(NamedTuple):
    """A file that a tool refuses, and what it says about it."""

    name: str
    tool: tuple[str, ...]
    text: str
    finds: str


ROWS = [
    Row("a quote of the other kind", FORMAT, f"{DOCUMENTED}x = 'y'\n", "would be reformatted"),
    Row("an unused import", LINT, f"{DOCUMENTED}import os\n", "F401"),
    Row("a module without a docstring", LINT, "x = 1\n", "D100"),
    Row("a function without a docstring", LINT, f"{DOCUMENTED}def f():\n    return 1\n", "D103"),
    Row(
        "a docstring that leaves out an argument",
        LINT,
        f'{DOCUMENTED}def f(a, b):\n    """Add.\n\n    Args:\n        a: One.\n    """\n'
        "    return a + b\n",
        "D417",
    ),
    Row(
        "a blind except",
        LINT,
        f"{DOCUMENTED}try:\n    x = 1\nexcept Exception:\n    x = 2\n",
        "BLE001",
    ),
    Row(
        "a type: ignore that does not say what it ignores",
        LINT,
        f"{DOCUMENTED}x: int = 1  # type: ignore\n",
        "PGH003",
    ),
    Row("commented-out code", LINT, f"{DOCUMENTED}# x = f(1)\n", "ERA001"),
    Row("a function without types", TYPES, "def f(a):\n    return a\n", "no-untyped-def"),
    Row("a wrong type", TYPES, 'x: int = "1"\n', "assignment"),
    Row(
        "a type: ignore without a code, for mypy",
        TYPES,
        'x: int = "1"  # type: ignore\n',
        "ignore-without-code",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_planted_fault_is_reported_with_its_file(
    row: Row, plant: Plant, root: Path, tmp_path: Path
) -> None:
    shutil.copy(root / "pyproject.toml", tmp_path)
    plant("src/llmlat_otel/planted.py", row.text)
    result = run(sys.executable, "-m", *row.tool, "src", cwd=tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert row.finds in result.stdout
    assert "src/llmlat_otel/planted.py" in result.stdout


def test_a_clean_file_passes_every_tool(plant: Plant, root: Path, tmp_path: Path) -> None:
    shutil.copy(root / "pyproject.toml", tmp_path)
    plant(
        "src/llmlat_otel/planted.py",
        f'{DOCUMENTED}\ndef add(a: int, b: int) -> int:\n    """Add."""\n    return a + b\n',
    )
    for tool in (FORMAT, LINT, TYPES):
        result = run(sys.executable, "-m", *tool, "src", cwd=tmp_path)
        assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("tool", [FORMAT, LINT], ids=" ".join)
def test_this_repository_passes(tool: tuple[str, ...], root: Path) -> None:
    result = run(sys.executable, "-m", *tool, ".", cwd=root)
    assert result.returncode == 0, result.stdout + result.stderr
