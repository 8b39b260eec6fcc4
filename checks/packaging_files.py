"""pyproject.toml names no index of its own, and uv.lock is locked from it against one index."""

import importlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from checks.violation import Violation

# The same module under two names: the standard library has it from 3.11 on.
_TOML = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

_INDEX_KEYS = ("index", "index-url", "extra-index-url", "default-index", "find-links", "sources")
_REGISTRY = re.compile(r'registry = "([^"]*)"')
_PLAIN_INDEX = re.compile(r"https://[a-z][a-z.]*[a-z]/simple")

_WHY = "an install from a fresh clone must mean the same everywhere"


def violations(root: Path) -> list[Violation]:
    """Index configuration, mirrors or private indexes in the lock, a lock behind pyproject."""
    project, lock = root / "pyproject.toml", root / "uv.lock"
    if not (project.exists() and lock.exists()):
        return [Violation("pyproject.toml", 0, "pyproject.toml or uv.lock is missing", _WHY, _LOCK)]
    metadata = toml(project.read_text(encoding="utf-8"))
    text = lock.read_text(encoding="utf-8")
    return [*_index_keys(metadata), *_foreign_sources(text), *_stale(metadata, toml(text))]


_LOCK = "`.venv/bin/uv lock`, with no index configured"


def toml(text: str) -> dict[str, Any]:
    """Parses TOML.

    Raises:
        ValueError: The text is no TOML.
    """
    parsed: dict[str, Any] = _TOML.loads(text)
    return parsed


def _index_keys(metadata: dict[str, Any]) -> Iterator[Violation]:
    settings = metadata.get("tool", {}).get("uv", {})
    for key in (*settings, *settings.get("pip", {})):
        if key in _INDEX_KEYS:
            what = f"[tool.uv] sets {key}"
            yield Violation("pyproject.toml", 0, what, _WHY, "leave the index to whoever installs")


def _foreign_sources(text: str) -> Iterator[Violation]:
    found = [
        (number, match.group(1))
        for number, line in enumerate(text.splitlines(), 1)
        for match in _REGISTRY.finditer(line)
    ]
    for number, registry in found:
        if not _PLAIN_INDEX.fullmatch(registry) or registry != found[0][1]:
            what = f"locked from {registry}, which is not the one public index"
            yield Violation("uv.lock", number, what, _WHY, _LOCK)


def _stale(metadata: dict[str, Any], lock: dict[str, Any]) -> Iterator[Violation]:
    project = metadata["project"]
    ours = [p for p in lock.get("package", ()) if p["name"] == project["name"]]
    locked = {
        (_canonical(entry["name"]), _extra_of(entry.get("marker", "")))
        for package in ours
        for entry in package.get("metadata", {}).get("requires-dist", ())
    }
    for name, extra in sorted(_wanted(project) ^ locked):
        what = f"{name} ({extra or 'no extra'}) is in one of pyproject.toml and uv.lock only"
        yield Violation("uv.lock", 0, what, _WHY, _LOCK)


def _wanted(project: dict[str, Any]) -> set[tuple[str, str]]:
    extras: dict[str, Iterable[str]] = {"": project.get("dependencies", ())}
    extras |= project.get("optional-dependencies", {})
    return {
        (_canonical(re.split(r"[^\w.-]", wanted, maxsplit=1)[0]), extra)
        for extra, requirements in extras.items()
        for wanted in requirements
    }


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _extra_of(marker: str) -> str:
    found = re.search(r"extra == '([^']+)'", marker)
    return found.group(1) if found else ""
