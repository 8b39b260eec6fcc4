"""What a released contract promises, and what a later one may not take back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from documents import MANIFEST, Document, read_document
from problems import Problem
from registry import Attribute, Metric, Phase, Ref, Registry, Span

Entry = Mapping[str, Any]

#: What may never change once a version has been released, by section of a snapshot.
FROZEN: Mapping[str, tuple[str, ...]] = {
    "attributes": ("type", "unit"),
    "phases": ("boundary", "class", "envelope", "start", "end", "nested_in"),
    "events": (),
    "spans": ("kind", "name"),
    "metrics": ("instrument", "unit"),
}
_KEEP_NAME = "Put it back; to replace it, add `deprecated: {reason: renamed, renamed_to: ...}`."
_NEW_NAME = "Restore it and give the new meaning a new name."
_NEXT_MINOR = f"Set the next minor version in {MANIFEST}."


def snapshot_of(registry: Registry) -> dict[str, Any]:
    """The resolved contract as plain data, which is what a snapshot file holds."""
    return {
        "version": registry.version,
        "schema_url": registry.schema_url,
        "phases": {phase.name: _phase(phase) for phase in registry.phases},
        "attributes": {
            one.key: _attribute(one) for one in sorted(registry.attributes, key=lambda a: a.key)
        },
        "events": {event.name: {"attributes": _levels(event.refs)} for event in registry.events},
        "spans": {span.type: _span(span) for span in registry.spans},
        "metrics": {metric.name: _metric(metric) for metric in registry.metrics},
    }


def _phase(phase: Phase) -> dict[str, Any]:
    return {
        "boundary": phase.boundary,
        "class": phase.phase_class,
        "envelope": phase.envelope,
        "start": phase.whole_start,
        "end": phase.end,
        "nested_in": list(phase.nested_in),
    }


def _attribute(attribute: Attribute) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": attribute.type, "origin": attribute.origin}
    if attribute.unit:
        entry["unit"] = attribute.unit
    if attribute.members:
        entry["values"] = {member.value: member.brief for member in attribute.members}
    if attribute.boundaries:
        entry["boundaries"] = list(attribute.boundaries)
    return entry


def _span(span: Span) -> dict[str, Any]:
    return {"kind": span.kind, "name": span.name, "attributes": _levels(span.refs)}


def _metric(metric: Metric) -> dict[str, Any]:
    return {
        "instrument": metric.instrument,
        "unit": metric.unit,
        "boundaries": list(metric.boundaries),
        "attributes": _levels(metric.refs),
    }


def _levels(refs: tuple[Ref, ...]) -> dict[str, str]:
    return {ref.key: ref.level for ref in refs}


def released_snapshots(root: Path) -> tuple[Document, ...]:
    """Reads every released version in a contract's folder.

    Raises:
        UnreadableContractError: A snapshot is not YAML.
    """
    files = sorted(path.name for path in (root / "snapshots").glob("*.yaml"))
    return tuple(read_document(root, f"snapshots/{file}") for file in files)


def compatibility_problems(registry: Registry, released: Iterable[Document]) -> list[Problem]:
    """What the contract takes back of any released version."""
    now = snapshot_of(registry)
    found = {one for then in released for one in _against(now, then.content, then.file)}
    return sorted(found)


def _against(now: Entry, released: Entry, file: str) -> Iterator[Problem]:
    if _numbers(now) < _numbers(released):
        what = f"older than {released['version']}, which is released"
        yield Problem(MANIFEST, now["version"], what, _NEXT_MINOR)
    for section, frozen in FROZEN.items():
        for name, then in released[section].items():
            if name not in now[section]:
                yield Problem(file, name, f"removed from the {section}", _KEEP_NAME)
                continue
            yield from _changes(file, name, then, now[section][name], frozen)
            if _numbers(now)[:2] == _numbers(released)[:2]:
                yield from _bucket_changes(file, name, then, now[section][name])
        if now["version"] == released["version"]:
            yield from _additions(now[section], released[section], now["version"])


def _numbers(snapshot: Entry) -> tuple[int, ...]:
    return tuple(int(part) for part in str(snapshot["version"]).split("."))


def _changes(
    file: str, name: str, then: Entry, now: Entry, frozen: tuple[str, ...]
) -> Iterator[Problem]:
    for fact in frozen:
        if then.get(fact) != now.get(fact):
            what = f"{fact} changed from {then.get(fact)!r} to {now.get(fact)!r}"
            yield Problem(file, name, what, _NEW_NAME)
    for value, meaning in then.get("values", {}).items():
        if value not in now.get("values", {}):
            yield Problem(file, name, f"value {value!r} removed", _KEEP_NAME)
        elif now["values"][value] != meaning:
            what = f"value {value!r} changed its meaning from {meaning!r}"
            yield Problem(file, name, what, _NEW_NAME)


def _bucket_changes(file: str, name: str, then: Entry, now: Entry) -> Iterator[Problem]:
    if then.get("boundaries", []) != now.get("boundaries", []):
        yield Problem(file, name, "bucket boundaries changed", _NEXT_MINOR)


def _additions(now: Entry, released: Entry, version: str) -> Iterator[Problem]:
    for name, entry in now.items():
        new = set(entry.get("values", {})) - set(released.get(name, {}).get("values", {}))
        if name not in released:
            yield Problem(MANIFEST, name, f"not in {version}, which is released", _NEXT_MINOR)
        elif new:
            what = f"values {sorted(new)} not in {version}, which is released"
            yield Problem(MANIFEST, name, what, _NEXT_MINOR)
