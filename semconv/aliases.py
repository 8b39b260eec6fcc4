"""What other producers call the contract's phases: `aliases.yaml` read strictly into values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from documents import read_document
from problems import UnreadableContractError

ALIASES = "aliases.yaml"
NO_PHASE = "none"

_PRODUCER = frozenset({"name", "title", "versions", "sources", "aliases"})
_PRODUCER_TOO = frozenset({"scopes", "marks", "operations", "containers"})
_ALIAS = frozenset({"surface", "key", "unit", "from", "to"})
_ALIAS_TOO = frozenset(
    {"phase", "minus", "reason", "attribute", "less", "instant", "edge", "until", "operation"}
    | {"evidence", "source"}
)
_SCOPE = (frozenset({"scope"}), frozenset({"resource"}))
_MARK = (frozenset({"surface", "key"}), frozenset[str]())
_PATTERN = (frozenset[str](), frozenset({"name", "name_starts", "has"}))

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which spans of a producer are meant: all that is given has to hold."""

    name: str = ""
    name_starts: str = ""
    has: str = ""


@dataclass(frozen=True, slots=True)
class Alias:
    """One name of one producer's; what is not said is empty."""

    surface: str
    key: str
    unit: str
    start: str
    end: str
    phase: str = ""
    minus: str = ""
    reason: str = ""
    attribute: str = ""
    less: int = 0
    instant: str = ""
    edge: str = ""
    until: tuple[str, ...] = ()
    operation: str = ""
    evidence: str = "reported"
    source: str = ""

    @property
    def identity(self) -> tuple[str, str, str]:
        """What may be there once in one producer."""
        return (self.surface, self.key, self.operation)


@dataclass(frozen=True, slots=True)
class Producer:
    """One product in a range of versions, how its spans or responses are known, and its names."""

    name: str
    title: str
    versions: str
    sources: tuple[str, ...]
    scopes: tuple[tuple[str, str], ...]
    marks: tuple[tuple[str, str], ...]
    operations: tuple[Pattern, ...]
    containers: tuple[Pattern, ...]
    aliases: tuple[Alias, ...]


def read_producers(root: Path) -> tuple[Producer, ...]:
    """Reads the producers of a contract's folder.

    Raises:
        UnreadableContractError: The file is missing, or an entry has not the shape of one.
    """
    content = read_document(root, ALIASES).content
    found = list(_shape_problems(content))
    if found:
        raise UnreadableContractError("\n".join(f"{ALIASES}: {each}" for each in found))
    return tuple(_producer(entry) for entry in content["producers"])


def _producer(entry: Entry) -> Producer:
    return Producer(
        name=entry["name"],
        title=entry["title"],
        versions=str(entry["versions"]),
        sources=tuple(entry["sources"]),
        scopes=tuple((each["scope"], each.get("resource", "")) for each in _of(entry, "scopes")),
        marks=tuple((each["surface"], each["key"]) for each in _of(entry, "marks")),
        operations=tuple(Pattern(**each) for each in _of(entry, "operations")),
        containers=tuple(Pattern(**each) for each in _of(entry, "containers")),
        aliases=tuple(_alias(each) for each in entry["aliases"]),
    )


def _of(entry: Entry, key: str) -> list[dict[str, str]]:
    return list(entry.get(key, ()))


def _alias(entry: Entry) -> Alias:
    said = {key: value for key, value in entry.items() if key not in ("from", "to")}
    said["until"] = tuple(said.get("until", ()))
    return Alias(start=entry["from"], end=entry["to"], **said)


def _shape_problems(content: Entry) -> Iterator[str]:
    producers = content.get("producers")
    if not isinstance(producers, list) or set(content) != {"producers"}:
        yield "not one list of `producers`"
        return
    for entry in producers:
        name = entry.get("name", "?") if isinstance(entry, dict) else "?"
        fields = list(_field_problems(entry, _PRODUCER, _PRODUCER_TOO))
        yield from (f"{name}: {each}" for each in fields)
        if not fields:
            yield from (f"{name}: {each}" for each in _list_problems(entry))


def _list_problems(entry: Entry) -> Iterator[str]:
    kinds = {
        "aliases": (_ALIAS, _ALIAS_TOO),
        "scopes": _SCOPE,
        "marks": _MARK,
        "operations": _PATTERN,
        "containers": _PATTERN,
    }
    if not isinstance(entry["sources"], list) or not all(
        isinstance(source, str) for source in entry["sources"]
    ):
        yield "`sources` are no list of text"
    for key, (required, optional) in kinds.items():
        rows = entry.get(key, [])
        if not isinstance(rows, list):
            yield f"`{key}` is no list"
            continue
        for row in rows:
            about = row.get("key", key) if isinstance(row, dict) else key
            yield from (f"{about}: {each}" for each in _field_problems(row, required, optional))


def _field_problems(entry: Any, required: Iterable[str], optional: Iterable[str]) -> Iterator[str]:
    if not isinstance(entry, dict):
        yield f"{entry!r} is no mapping"
        return
    known = {*required, *optional}
    yield from (f"no `{field}`" for field in sorted({*required} - entry.keys()))
    yield from (f"unknown field `{field}`" for field in sorted(entry.keys() - known))
    for field, value in entry.items():
        if field in ("sources", "aliases", "scopes", "marks", "operations", "containers"):
            continue
        kind = {"less": int, "until": list}.get(field, str)
        if field in known and (not isinstance(value, kind) or value is True):
            yield f"`{field}` is {value!r}"
