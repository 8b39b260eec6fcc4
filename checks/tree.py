"""The tree under check: which folders it has, and how its files are read."""

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SDK = "src/llmlat_otel"
PROCESSOR = "collector_processor/llmlat_processor"
CONTRACT = "semconv/llmlat_semconv"
PRODUCT = (SDK, PROCESSOR)
EVERYTHING = ("src", "collector_processor", "semconv", "checks", "bench", "examples", "tests")

_NOT_OURS = {"build", "dist", "htmlcov", "node_modules", "__pycache__"}
_TEXT = {".md", ".py", ".toml", ".yaml", ".yml", ".json", ".jsonl", ".txt", ".cfg", ".html", ""}


@dataclass(frozen=True, slots=True)
class Module:
    """One Python file: its path relative to the root, its text and its syntax tree."""

    path: str
    text: str
    tree: ast.Module


def modules(root: Path, *folders: str) -> Iterator[Module]:
    """Every Python file below the folders, sorted; folders that do not exist have none.

    Raises:
        SyntaxError: A file does not parse; the error names it.
    """
    for path in files(root, *folders):
        if path.suffix == ".py":
            yield _parsed(path, path.relative_to(root).as_posix(), path.stat().st_mtime_ns)


def text_files(root: Path) -> Iterator[tuple[str, str]]:
    """Every text file of the tree as (path relative to the root, text), sorted by path."""
    for path in files(root, "."):
        if path.suffix in _TEXT:
            try:
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
            except UnicodeDecodeError:  # a binary without a suffix
                continue


def files(root: Path, *folders: str) -> Iterator[Path]:
    """Every file below the folders except what tools leave behind, sorted within each folder."""
    for folder in folders:
        for where, names, leaves in os.walk(root / folder):
            names[:] = sorted(name for name in names if _is_ours(name))
            yield from (Path(where, leaf) for leaf in sorted(leaves) if leaf != ".git")


def _is_ours(folder: str) -> bool:
    """Hidden folders are tools' (.git, .venv, caches), except the one that holds our CI script."""
    return folder == ".ci" or not (folder.startswith(".") or folder in _NOT_OURS)


@cache
def _parsed(path: Path, name: str, changed_ns: int) -> Module:
    """Parsed once per change, since every rule reads the same files."""
    del changed_ns
    text = path.read_text(encoding="utf-8")
    return Module(name, text, ast.parse(text, filename=name))
