"""A copy of the contract that a test may damage."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import check

SEMCONV = Path(__file__).resolve().parents[2] / "semconv"


@pytest.fixture
def contract(tmp_path: Path) -> Path:
    """The contract's folder in a scratch repository."""
    root = tmp_path / "semconv"
    root.mkdir()
    for folder in ("model", "snapshots"):
        shutil.copytree(SEMCONV / folder, root / folder)
    for file in ("aliases.yaml", "templates.yaml"):
        shutil.copy(SEMCONV / file, root)
    return root


@pytest.fixture
def plant(contract: Path) -> Callable[[str, str, str], None]:
    """Replaces text that stands exactly once in a file of that contract."""

    def replace(file: str, old: str, new: str) -> None:
        path = contract / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{file}: {text.count(old)} times: {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    return replace


@pytest.fixture
def caught(
    contract: Path, plant: Callable[[str, str, str], None]
) -> Callable[[str, list[tuple[str, str]], str], str]:
    """Plants changes in one file; returns what the gate then says of one name."""

    def blame(file: str, changes: list[tuple[str, str]], name: str) -> str:
        for old, new in changes:
            plant(file, old, new)
        return "\n".join(str(one) for one in check.problems(contract) if one.name == name)

    return blame
