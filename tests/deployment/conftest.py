"""How a file is planted for a tool to find fault with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repo.programs import Plant


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    """Writes a file at a path relative to `tmp_path`."""

    def write(path: str, text: str) -> Path:
        file = tmp_path / path
        file.write_text(text, encoding="utf-8")
        return file

    return write
