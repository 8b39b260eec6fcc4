"""The rules that every alias keeps: a name that means something says from where to where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from aliases import ALIASES, NO_PHASE, Alias, Producer
from problems import Problem
from registry import Registry

SURFACES = ("span_attribute", "span_name", "span_event", "response_field", "response_header")
TIMES = ("s", "ms", "us", "ns")
_OF_SPANS = frozenset({"span_attribute", "span_name", "span_event"})
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_VERSIONS = re.compile(r"\S+( to \S+)?")
_COUNT = re.compile(r"\{[a-z]+\}")
_EVIDENCE = ("reported", "bounded")
_INSTANTS = ("first_output",)


def alias_problems(registry: Registry) -> Iterator[Problem]:
    """Every breach of every rule of the producers."""
    yield from _twice((producer.name for producer in registry.producers), "producer")
    yield from _twice(
        (f"{scope} {resource}" for each in registry.producers for scope, resource in each.scopes),
        "scope",
    )
    for producer in registry.producers:
        for what, remedy in _producer_faults(producer):
            yield Problem(ALIASES, producer.name, what, remedy)
        names = (" ".join(alias.identity) for alias in producer.aliases)
        yield from _twice(names, f"alias of {producer.name}")
        for alias in producer.aliases:
            for what, remedy in _alias_faults(alias, producer, registry):
                yield Problem(ALIASES, f"{producer.name}: {alias.key}", what, remedy)


Fault = tuple[str, str]
"""(what is wrong, what to do)"""


def _twice(names: Iterator[str], kind: str) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(ALIASES, name.strip(), f"this {kind} is there twice", "Keep one of them.")


def _producer_faults(producer: Producer) -> Iterator[Fault]:
    if not _NAME.fullmatch(producer.name):
        yield "not lower-case snake_case", "Rename it."
    if not _VERSIONS.fullmatch(producer.versions):
        yield "no range of versions", "Write `first to last`, or the only one."
    if not producer.sources or not all("://" in source for source in producer.sources):
        yield "no source", "Give an address, and file and version, of each thing that was read."
    of_spans = any(alias.surface in _OF_SPANS for alias in producer.aliases)
    if of_spans != bool(producer.scopes):
        yield "scopes and names on spans do not go together", "Give both, or neither."
    if bool(producer.scopes) != bool(producer.operations):
        yield "nobody knows which spans are its operations", "Give `operations`, with `scopes`."
    if any(not (each.name or each.name_starts or each.has) for each in producer.operations):
        yield "an operation that every span would be", "Give `name`, `name_starts` or `has`."


def _alias_faults(alias: Alias, producer: Producer, registry: Registry) -> Iterator[Fault]:
    if alias.surface not in SURFACES:
        yield f"unknown surface `{alias.surface}`", f"One of {', '.join(SURFACES)}."
    if not alias.start.strip() or not alias.end.strip():
        yield "an edge is empty", "Say from where to where it counts."
    if alias.source and "://" not in alias.source:
        yield "a source without an address", "Give one, with file and version."
    if alias.surface == "response_header" and alias.key != alias.key.lower():
        yield "a header that is not in lower case", "Write it in lower case."
    if alias.evidence not in _EVIDENCE:
        yield f"unknown evidence `{alias.evidence}`", f"One of {', '.join(_EVIDENCE)}."
    yield from _meaning_faults(alias, registry)
    yield from _unit_faults(alias)
    yield from _reference_faults(alias, producer)


def _meaning_faults(alias: Alias, registry: Registry) -> Iterator[Fault]:
    if sum(map(bool, (alias.phase, alias.attribute, alias.instant))) != 1:
        yield "not one of phase, attribute and instant", "Give exactly one."
    known = {phase.name for phase in registry.phases}
    if alias.phase and alias.phase not in {*known, NO_PHASE}:
        yield f"unknown phase `{alias.phase}`", "Name one of the contract's, or `none`."
    if (alias.phase == NO_PHASE) != bool(alias.reason):
        yield "phase and reason do not go together", "Say why with `none`, and only then."
    attribute = registry.attribute(alias.attribute)
    if alias.attribute and (attribute is None or attribute.origin != "own"):
        yield f"unknown attribute `{alias.attribute}`", "Name one of the contract's own."
    if alias.instant and alias.instant not in _INSTANTS:
        yield f"unknown instant `{alias.instant}`", f"One of {', '.join(_INSTANTS)}."
    if alias.minus and alias.phase in ("", NO_PHASE):
        yield "`minus` of what is no phase", "Drop it."
    if alias.less and not alias.attribute:
        yield "`less` of what is no count", "Drop it."


def _unit_faults(alias: Alias) -> Iterator[Fault]:
    only = {"span_name": "span", "span_event": "event"}.get(alias.surface)
    if only is not None and alias.unit != only:
        yield f"unit `{alias.unit}`", f"Write `{only}`: its stamps are OTLP's."
    elif only is None and alias.attribute:
        if not _COUNT.fullmatch(alias.unit) and alias.unit not in (*TIMES, "text"):
            yield f"unit `{alias.unit}`", "Write s, ms, us, ns, `text` or, of a count, `{token}`."
    elif only is None and alias.unit not in TIMES:
        yield f"unit `{alias.unit}`", f"One of {', '.join(TIMES)}."


def _reference_faults(alias: Alias, producer: Producer) -> Iterator[Fault]:
    is_edge = alias.surface == "span_event" and alias.phase not in ("", NO_PHASE)
    if is_edge != (alias.edge in ("start", "end")):
        yield "an event's phase without its edge, or the reverse", "Say `edge: start` or `end`."
    if alias.until and alias.edge != "start":
        yield "`until` of what is no start", "Drop it."
    beside = {each.key: each.unit for each in producer.aliases if each.surface == alias.surface}
    if alias.minus and beside.get(alias.minus) != alias.unit:
        yield f"minus `{alias.minus}`, which is none of it in that unit", "Name one beside it."
    spans = {each.key for each in producer.aliases if each.surface == "span_name"}
    for name in alias.until:
        if name not in spans:
            yield f"until `{name}`, which is no span of it", "Name one of its spans."
