"""From YAML documents to the resolved contract: templates written out, groups and enums joined."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aliases import read_producers
from documents import CONCRETE, MANIFEST, TEMPLATES, Document, read_document, read_model
from problems import UnreadableContractError
from registry import (
    PHASE_NAMES,
    Attribute,
    Event,
    Group,
    Member,
    Metric,
    Phase,
    Ref,
    Registry,
    Span,
    Template,
)
from shape import shape_problems

Entry = Mapping[str, Any]
_SCHEMA_URL = re.compile(r"https?://.+/\d+\.\d+\.\d+")


def load(root: Path) -> Registry:
    """Reads and resolves the contract in a folder.

    Raises:
        UnreadableContractError: A file is missing, is not YAML or lacks what it must have.
    """
    schema_url = str(read_document(root, MANIFEST).content.get("schema_url"))
    if not _SCHEMA_URL.fullmatch(schema_url):
        raise UnreadableContractError(f"{MANIFEST}: schema_url: not a URL that ends in x.y.z")
    model, templates = read_model(root), read_document(root, TEMPLATES)
    misshapen = shape_problems(model, templates)
    if misshapen:
        raise UnreadableContractError("\n".join(map(str, misshapen)))
    registry = resolve(schema_url, model, templates.content["templates"])
    return replace(registry, producers=read_producers(root))


def resolve(schema_url: str, model: Iterable[Document], templates: Iterable[Entry]) -> Registry:
    """Joins the documents of a model whose shape has been checked into one registry."""
    documents = tuple(model)
    rules = tuple(templates)
    defined = _joined_enums(tuple(_attributes(documents)))
    concrete = tuple(_concrete(rules, {one.key: one for one in defined}))
    groups = {entry["id"]: entry for _, entry in _entries(documents, "attribute_groups")}
    return Registry(
        version=schema_url.rpartition("/")[2],
        schema_url=schema_url,
        attributes=defined + concrete,
        phases=tuple(_phases(defined)),
        spans=tuple(_spans(documents, groups)),
        events=tuple(_events(documents, groups)),
        metrics=tuple(_metrics(documents, groups)),
        groups=tuple(_groups(documents, rules, concrete)),
        templates=tuple(_template(rule) for rule in rules),
    )


def _entries(documents: Iterable[Document], section: str) -> Iterator[tuple[str, Entry]]:
    for document in documents:
        for entry in document.content.get(section, ()):
            yield document.file, entry


def _attributes(documents: tuple[Document, ...]) -> Iterator[Attribute]:
    for file, entry in _entries(documents, "attributes"):
        yield _attribute(file, entry)
    for file, group in _entries(documents, "attribute_groups"):
        for ref in group.get("attributes", ()):
            if "type" in ref.get("annotations", {}):
                yield _reused(file, ref)


def _attribute(file: str, entry: Entry) -> Attribute:
    notes = entry.get("annotations", {})
    members = _members(entry["type"])
    return Attribute(
        file=file,
        key=entry["key"],
        type="string" if members else entry["type"],
        brief=entry["brief"],
        origin="foreign" if "origin" in notes else "own",
        note=entry.get("note", ""),
        unit=notes.get("unit"),
        enum=notes.get("enum"),
        members=members,
        examples=tuple(entry.get("examples", ())),
        deprecated=entry.get("deprecated"),
        annotations=notes,
    )


def _members(kind: object) -> tuple[Member, ...]:
    if not isinstance(kind, dict):
        return ()
    return tuple(
        Member(m["id"], m["value"], m.get("brief", ""), {**m.get("annotations", {}), **_note(m)})
        for m in kind["members"]
    )


def _note(entry: Entry) -> dict[str, str]:
    return {"note": entry["note"]} if "note" in entry else {}


def _reused(file: str, ref: Entry) -> Attribute:
    notes = ref["annotations"]
    return Attribute(
        file=file,
        key=ref["ref"],
        type=notes["type"],
        brief="",
        origin="reused",
        unit=notes.get("unit"),
        enum=notes.get("enum"),
        members=tuple(Member(value, value, "") for value in notes.get("values", ())),
    )


def _joined_enums(attributes: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
    """Puts the members of an included enum before the attribute's own."""
    members = {one.key: one.members for one in attributes}
    return tuple(
        _with_members(one, members.get(one.annotations.get("includes", ""), ()))
        for one in attributes
    )


def _with_members(attribute: Attribute, included: tuple[Member, ...]) -> Attribute:
    if not included:
        return attribute
    plain = tuple(Member(one.id, one.value, one.brief) for one in included)
    return replace(attribute, members=plain + attribute.members)


def _concrete(rules: Iterable[Entry], defined: Mapping[str, Attribute]) -> Iterator[Attribute]:
    for rule in rules:
        for member in defined[rule["over"]].members if rule["over"] in defined else ():
            words = {"member": member.value, "start": "", "end": "", **member.facts}
            yield Attribute(
                file=CONCRETE,
                key=rule["key"].format(member=member.value),
                type=rule["type"],
                brief=rule["brief"].format(**words),
                unit=rule.get("unit"),
                enum=rule.get("enum"),
                template=rule["key"],
                examples=tuple(rule.get("examples", ())),
            )


def _phases(attributes: Iterable[Attribute]) -> Iterator[Phase]:
    for attribute in attributes:
        if attribute.key == PHASE_NAMES:
            for order, member in enumerate(attribute.members):
                yield _phase(attribute.file, order, member)


def _phase(file: str, order: int, member: Member) -> Phase:
    return Phase(
        file=file,
        id=member.id,
        name=member.value,
        brief=member.brief,
        note=member.facts.get("note", ""),
        boundary=member.facts.get("boundary", ""),
        phase_class=member.facts.get("class", ""),
        start=member.facts.get("start", ""),
        start_else=member.facts.get("start_else", ""),
        end=member.facts.get("end", ""),
        envelope=member.facts.get("envelope", False),
        nested_in=tuple(member.facts.get("nested_in", ())),
        order=order,
    )


def _refs(entry: Entry, groups: Mapping[str, Entry]) -> tuple[Ref, ...]:
    found: list[Ref] = []
    for use in entry.get("attributes", ()):
        if "ref_group" in use:
            found += _refs(groups.get(use["ref_group"], {}), groups)
        else:
            found.append(Ref(use["ref"], _level(use.get("requirement_level", "recommended"))))
    return tuple(found)


def _level(level: str | Mapping[str, str]) -> str:
    if isinstance(level, str):
        return level
    return "; ".join(f"{name}: {condition}" for name, condition in level.items())


def _spans(documents: tuple[Document, ...], groups: Mapping[str, Entry]) -> Iterator[Span]:
    for section, key in (("spans", "type"), ("span_refinements", "ref")):
        for file, entry in _entries(documents, section):
            notes = entry.get("annotations", {})
            yield Span(
                file=file,
                type=entry[key],
                kind=entry.get("kind", notes.get("kind", "")),
                name=entry["name"]["note"],
                brief=entry["brief"],
                note=entry.get("note", ""),
                function=notes.get("function", ""),
                parameters=tuple(notes.get("parameters", ())),
                refs=_refs(entry, groups),
            )


def _events(documents: tuple[Document, ...], groups: Mapping[str, Entry]) -> Iterator[Event]:
    for file, entry in _entries(documents, "events"):
        yield Event(file, entry["name"], entry["brief"], _refs(entry, groups))


def _metrics(documents: tuple[Document, ...], groups: Mapping[str, Entry]) -> Iterator[Metric]:
    for section, key in (("metrics", "name"), ("metric_refinements", "ref")):
        for file, entry in _entries(documents, section):
            notes = entry.get("annotations", {})
            yield Metric(
                file=file,
                name=entry[key],
                instrument=entry.get("instrument", notes.get("instrument", "")),
                unit=entry.get("unit", notes.get("unit", "")),
                brief=entry["brief"],
                boundaries=tuple(float(edge) for edge in notes.get("boundaries", ())),
                refs=_refs(entry, groups),
                origin="own" if key == "name" else "reused",
            )


def _groups(
    documents: tuple[Document, ...], rules: Iterable[Entry], concrete: Iterable[Attribute]
) -> Iterator[Group]:
    named = {entry["id"]: entry for _, entry in _entries(documents, "attribute_groups")}
    for file, entry in _entries(documents, "attribute_groups"):
        yield Group(file, entry["id"], entry.get("brief", ""), _refs(entry, named))
    made = tuple(concrete)
    for rule in rules:
        uses = (Ref(one.key, "recommended") for one in made if one.template == rule["key"])
        yield Group(CONCRETE, rule["group"], rule["group_brief"], tuple(uses))


def _template(rule: Entry) -> Template:
    return Template(
        key=rule["key"],
        over=rule["over"],
        function=rule["function"],
        parameter=rule["parameter"],
        constants=rule.get("constants", False),
        brief=rule["brief"],
    )
