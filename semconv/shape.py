"""The shape of the model's files: which fields weaver's `definition/2` and we ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from documents import TEMPLATES, Document
from problems import Problem

FORMAT = "definition/2"
STABILITIES = frozenset({"development", "alpha", "beta", "release_candidate", "stable"})
TYPES = frozenset({"string", "int", "double", "boolean", "string[]", "int[]", "double[]"})
_DESCRIBED = frozenset({"stability", "brief"})
_EXTRA = frozenset({"note", "deprecated", "annotations", "attributes"})


@dataclass(frozen=True, slots=True)
class _Shape:
    """The fields of one kind of entry; `name` is the field that identifies it."""

    name: str
    required: frozenset[str]
    optional: frozenset[str] = frozenset()


_ATTRIBUTE = _Shape(
    "key", _DESCRIBED | {"type"}, frozenset({"note", "deprecated", "annotations", "examples"})
)
_MEMBER = _Shape("id", _DESCRIBED | {"value"}, frozenset({"note", "deprecated", "annotations"}))
_REF = _Shape(
    "ref",
    frozenset(),
    frozenset({"brief", "note", "annotations", "requirement_level", "sampling_relevant"}),
)
_SECTIONS: Mapping[str, _Shape] = {
    "attributes": _ATTRIBUTE,
    "attribute_groups": _Shape("id", _DESCRIBED | {"visibility"}, _EXTRA),
    "spans": _Shape("type", _DESCRIBED | {"kind", "name"}, _EXTRA),
    "span_refinements": _Shape("id", _DESCRIBED | {"ref", "name"}, _EXTRA),
    "events": _Shape("name", _DESCRIBED, _EXTRA),
    "metrics": _Shape("name", _DESCRIBED | {"instrument", "unit"}, _EXTRA),
    "metric_refinements": _Shape("id", _DESCRIBED | {"ref"}, _EXTRA),
}
_TEMPLATE = _Shape(
    "key",
    frozenset({"over", "type", "function", "parameter", "group", "brief", "group_brief"}),
    frozenset({"unit", "enum", "constants", "examples"}),
)


def shape_problems(documents: Iterable[Document], templates: Document) -> list[Problem]:
    """What keeps the documents from being read as a contract at all."""
    found: list[Problem] = []
    for document in documents:
        found += _document_problems(document)
    rules = templates.content.get("templates")
    found += _entry_list(templates.file, TEMPLATES, rules, _TEMPLATE)
    return found


def _document_problems(document: Document) -> Iterator[Problem]:
    file, content = document.file, document.content
    if content.get("file_format") != FORMAT:
        yield Problem(file, "file_format", f"not {FORMAT}", f"Begin with `file_format: {FORMAT}`.")
    for section, entries in content.items():
        if section in _SECTIONS:
            yield from _entry_list(file, section, entries, _SECTIONS[section])
        elif section not in ("file_format", "imports"):
            yield Problem(file, section, "no such section", f"One of {_listed(_SECTIONS)}.")


def _entry_list(file: str, section: str, entries: Any, shape: _Shape) -> Iterator[Problem]:
    if not isinstance(entries, list):
        yield Problem(file, section, "not a list", "Give one entry per list item.")
        return
    for entry in entries:
        yield from _entry_problems(file, section, entry, shape)


def _entry_problems(file: str, section: str, entry: Any, shape: _Shape) -> Iterator[Problem]:
    if not isinstance(entry, dict) or not isinstance(entry.get(shape.name), str):
        yield Problem(file, section, f"an entry without `{shape.name}`", f"Add `{shape.name}`.")
        return
    name = entry[shape.name]
    known = shape.required | shape.optional | {shape.name}
    for field in sorted(shape.required - entry.keys()):
        yield Problem(file, name, f"no `{field}`", f"Add `{field}`.")
    for field in sorted(entry.keys() - known):
        yield Problem(file, name, f"unknown field `{field}`", f"One of {_listed(known)}.")
    yield from _value_problems(file, name, entry)


def _value_problems(file: str, name: str, entry: Mapping[str, Any]) -> Iterator[Problem]:
    if entry.get("stability", "stable") not in STABILITIES:
        yield Problem(file, name, "unknown stability", f"One of {_listed(STABILITIES)}.")
    kind = entry.get("type")
    if isinstance(kind, dict):
        yield from _entry_list(file, name, kind.get("members"), _MEMBER)
    elif "key" in entry and kind is not None and kind not in TYPES:
        yield Problem(file, name, f"unknown type {kind!r}", f"One of {_listed(TYPES)}.")
    for use in entry.get("attributes", ()):
        if not isinstance(use, dict) or "ref_group" not in use:
            yield from _entry_problems(file, name, use, _REF)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
