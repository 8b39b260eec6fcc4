"""The cached model file: made once, mended when damaged, never half there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import model_file

CONTENT = b"weights"


class Packaged:
    """Stands for the packages that hold the model; counts how often it is put together."""

    MODEL_NAME = "model.gguf"
    EXPECTED_SHA256 = hashlib.sha256(CONTENT).hexdigest()

    def __init__(self) -> None:
        self.assembled = 0
        self.fails = False

    def assemble(self, target: Path) -> None:
        self.assembled += 1
        target.write_bytes(CONTENT[:3] if self.fails else CONTENT)
        if self.fails:
            raise ValueError("a part is missing")


@pytest.fixture
def packaged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Packaged:
    fake = Packaged()
    monkeypatch.setattr(model_file, "packaged", fake)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return fake


def test_the_file_is_made_once_and_then_found(packaged: Packaged, tmp_path: Path) -> None:
    made = model_file.model_file()
    assert made == tmp_path / "llmlat-otel" / "model.gguf"
    assert made.read_bytes() == CONTENT
    assert model_file.model_file() == made
    assert packaged.assembled == 1


def test_a_damaged_file_is_replaced(packaged: Packaged) -> None:
    model_file.model_file().write_bytes(b"damage!")
    assert model_file.model_file().read_bytes() == CONTENT
    assert packaged.assembled == 2


def test_what_could_not_be_completed_leaves_nothing(packaged: Packaged, tmp_path: Path) -> None:
    packaged.fails = True
    with pytest.raises(ValueError, match="missing"):
        model_file.model_file()
    assert list((tmp_path / "llmlat-otel").iterdir()) == []
