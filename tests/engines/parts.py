"""What `make engines` keeps in the cache, each in a folder whose name tells what is pinned."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Final

from backends import cache_folder

HERE: Final = Path(__file__).parent
PINS: Final = HERE / "vllm.txt"
MODEL_SCRIPT: Final = HERE / "tiny_llama.py"

SOURCES: Final = ("0.10.2.post2", "0.14.1", "0.20.2", "0.32.0")
"""The versions of vLLM whose names are looked up: a year of them, the last is the one that runs."""

MODEL_NAME: Final = "tiny"
"""As which the model is served."""


class MissingPartError(Exception):
    """`make engines` has not been run for what is pinned now."""


def folder() -> Path:
    """Where all of it is kept."""
    return cache_folder() / "engines"


def vllm_folder() -> Path:
    """The environment of vLLM: another Python, or another pin, another environment."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return folder() / f"vllm-{_digest(PINS)}-python{python}"


def model_folder() -> Path:
    """The tiny Llama: another script, another model."""
    return folder() / f"tiny-llama-{_digest(MODEL_SCRIPT)}"


def source_folder(version: str) -> Path:
    """What one version of vLLM consists of, its Python files only."""
    return folder() / f"vllm-source-{version}"


def vllm_python() -> Path:
    """The interpreter that has vLLM, torch and transformers.

    Raises:
        MissingPartError: there is none.
    """
    return _present(vllm_folder() / "bin" / "python")


def model() -> Path:
    """The tiny Llama: a config and a tokenizer, no weights.

    Raises:
        MissingPartError: there is none.
    """
    return _present(model_folder())


def vllm_sources() -> dict[str, Path]:
    """Each version of `SOURCES`, and the folder in which its package `vllm` lies.

    They are for reading: nothing of torch is there, and nothing compiled.

    Raises:
        MissingPartError: one of them is not there.
    """
    return {version: _present(source_folder(version)) for version in SOURCES}


def _present(path: Path) -> Path:
    if not path.exists():
        raise MissingPartError(f"{path.name} is not there yet; run: make engines")
    return path


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]
