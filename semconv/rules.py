"""The rules that every version of the contract keeps, whatever it says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from alias_rules import alias_problems
from problems import Problem
from python_source import placeholders
from registry import NUMERIC_TYPES, Attribute, Metric, Phase, Registry, constant

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*(\.[a-z][a-z0-9]*(_[a-z0-9]+)*)+")
_OWN_ROOT = "llmlat."


def rule_problems(registry: Registry) -> list[Problem]:
    """Every breach of every rule, sorted by file and name."""
    return sorted({problem for rule in _RULES for problem in rule(registry)})


def _names(registry: Registry) -> Iterator[tuple[str, str, str, bool]]:
    """Kind, file, name and whether it is ours, of every attribute, event and metric."""
    for one in registry.attributes:
        yield "attribute", one.file, one.key, one.origin == "own"
    for event in registry.events:
        yield "event", event.file, event.name, True
    for metric in registry.metrics:
        yield "metric", metric.file, metric.name, metric.origin == "own"


def names_are_well_formed(registry: Registry) -> Iterator[Problem]:
    """Lower-case dotted snake_case, and ours under our own root."""
    for _, file, name, own in _names(registry):
        if not _NAME.fullmatch(name):
            yield Problem(
                file, name, "not lower-case dotted snake_case", "Rename it: `llmlat.some.thing`."
            )
        elif own and not name.startswith(_OWN_ROOT):
            yield Problem(file, name, "ours, but under another root", f"Begin with `{_OWN_ROOT}`.")


def no_name_is_a_namespace(registry: Registry) -> Iterator[Problem]:
    """Within attributes, events and metrics: no name is the beginning of another one."""
    for kind in ("attribute", "event", "metric"):
        names = {name: (file, own) for k, file, name, own in _names(registry) if k == kind}
        for inner, (_, inner_own) in names.items():
            for outer in _namespaces(inner):
                # Two names of others may collide (rpc.system): that is not ours to mend.
                if outer in names and (inner_own or names[outer][1]):
                    yield Problem(
                        names[outer][0],
                        outer,
                        f"this {kind} is also the namespace of `{inner}`",
                        "Rename one of the two, for instance by one more word at the end.",
                    )


def _namespaces(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def nothing_is_defined_twice(registry: Registry) -> Iterator[Problem]:
    """One definition per name."""
    counts = Counter((kind, name) for kind, _, name, _ in _names(registry))
    for kind, file, name, _ in _names(registry):
        if counts[kind, name] > 1:
            yield Problem(file, name, f"this {kind} is defined twice", "Keep one definition.")


def constants_are_unique(registry: Registry) -> Iterator[Problem]:
    """Two names never give one constant in one generated module."""
    for kind in ("attribute", "event", "metric"):
        seen: dict[str, str] = {}
        for _, file, name, _ in (entry for entry in _names(registry) if entry[0] == kind):
            other = seen.setdefault(constant(name), name)
            if other != name:
                yield Problem(
                    file,
                    name,
                    f"gives the constant {constant(name)}, as `{other}` does",
                    "Rename one of the two.",
                )


def numbers_have_units(registry: Registry) -> Iterator[Problem]:
    """Every numeric attribute and every metric has a unit; nothing else has one."""
    for one in registry.attributes:
        if one.type in NUMERIC_TYPES and not one.unit:
            yield Problem(
                one.file,
                one.key,
                "numeric without a unit",
                "Add `annotations: {unit: ...}` in UCUM: s, ns, {token}, 1.",
            )
        elif one.type not in NUMERIC_TYPES and one.unit:
            yield Problem(one.file, one.key, f"a {one.type} with a unit", "Drop the unit.")
    for metric in registry.metrics:
        if not metric.unit:
            yield Problem(metric.file, metric.name, "no unit", "Add `unit` in UCUM: s, {token}.")


def buckets_grow(registry: Registry) -> Iterator[Problem]:
    """A histogram has boundaries above 0 that strictly grow; nothing but it has any."""
    holders: list[Attribute | Metric] = [*registry.metrics]
    holders += (one for one in registry.attributes if one.boundaries)
    for holder in holders:
        name = holder.name if isinstance(holder, Metric) else holder.key
        edges = holder.boundaries
        if isinstance(holder, Metric) and (holder.instrument == "histogram") != bool(edges):
            yield Problem(
                holder.file,
                name,
                "boundaries and instrument do not fit",
                "Give `annotations: {boundaries: [...]}` to a histogram, and only to one.",
            )
        if list(edges) != sorted(set(edges)) or (edges and edges[0] <= 0):
            yield Problem(
                holder.file, name, "boundaries that do not strictly grow from above 0", "Sort them."
            )


def phases_have_edges(registry: Registry) -> Iterator[Problem]:
    """Every phase has two different edges, which are two instants."""
    for phase in registry.phases:
        for edge, text in (("start", phase.start), ("end", phase.end)):
            if not text:
                yield Problem(
                    phase.file,
                    phase.name,
                    f"a phase without its {edge} edge",
                    f"Add `annotations: {{{edge}: ...}}`, an instant that a program can stamp.",
                )
        if phase.start and phase.start == phase.end:
            yield Problem(phase.file, phase.name, "starts and ends at one edge", "Name two.")


def phases_have_facts(registry: Registry) -> Iterator[Problem]:
    """Boundary and class are known values; an envelope is what has class remote."""
    known = {
        "boundary": _values(registry, "llmlat.boundary.name"),
        "class": _values(registry, "llmlat.phase.class"),
    }
    for phase in registry.phases:
        for fact, value in (("boundary", phase.boundary), ("class", phase.phase_class)):
            if value not in known[fact]:
                yield Problem(
                    phase.file,
                    phase.name,
                    f"unknown {fact} `{value}`",
                    f"One of {', '.join(sorted(known[fact]))}.",
                )
        if phase.envelope != (phase.phase_class == "remote"):
            yield Problem(
                phase.file,
                phase.name,
                "class and envelope do not fit",
                "An envelope, and nothing else, has class `remote`.",
            )


def _values(registry: Registry, key: str) -> set[str]:
    attribute = registry.attribute(key)
    return {member.value for member in attribute.members} if attribute else set()


def phases_are_in_order(registry: Registry) -> Iterator[Problem]:
    """Boundaries stand in one piece; a nested phase comes after the phases that it lies in."""
    by_name = {phase.name: phase for phase in registry.phases}
    closed: set[str] = set()
    previous = ""
    for phase in registry.phases:
        if phase.boundary != previous:
            closed.add(previous)
            previous = phase.boundary
        if phase.boundary in closed:
            yield Problem(
                phase.file,
                phase.name,
                f"apart from the other phases of boundary `{phase.boundary}`",
                "The table is the allowed order: keep the phases of one boundary together.",
            )
        yield from _nesting_problems(phase, by_name)


def _nesting_problems(phase: Phase, by_name: dict[str, Phase]) -> Iterator[Problem]:
    for name in phase.nested_in:
        outer = by_name.get(name)
        if outer is None or outer.boundary != phase.boundary:
            yield Problem(
                phase.file,
                phase.name,
                f"nested in `{name}`, which is no phase of its boundary",
                "Name phases of the same boundary in `nested_in`.",
            )
        elif outer.order >= phase.order or outer.nested_in:
            yield Problem(
                phase.file,
                phase.name,
                f"nested in `{name}`, which comes later or is nested itself",
                "Move it behind the phases that it lies in; nesting has one level.",
            )


def every_attribute_has_a_place(registry: Registry) -> Iterator[Problem]:
    """Every reference has its attribute, and every attribute is referred to somewhere."""
    known = {one.key for one in registry.attributes}
    used: set[str] = set()
    for file, name, keys in _uses(registry):
        used |= keys
        for key in sorted(keys - known):
            yield Problem(
                file,
                name,
                f"refers to `{key}`, which is nowhere defined",
                "Define it, or list it in model/reused.yaml with its type.",
            )
    for one in registry.attributes:
        if one.key not in used:
            yield Problem(
                one.file,
                one.key,
                "stands on no span, event, metric or group",
                "Refer to it where it is written, with a `requirement_level`.",
            )


def _uses(registry: Registry) -> Iterator[tuple[str, str, set[str]]]:
    for span in registry.spans:
        keys = {ref.key for ref in span.refs} | set(placeholders(span.name))
        yield span.file, span.type, keys
    for event in registry.events:
        yield event.file, event.name, {ref.key for ref in event.refs}
    for metric in registry.metrics:
        yield metric.file, metric.name, {ref.key for ref in metric.refs}
    for group in registry.groups:
        yield group.file, group.id, {ref.key for ref in group.refs}


def enums_agree(registry: Registry) -> Iterator[Problem]:
    """One class has one set of values; an attribute with values has a class."""
    classes: dict[str, Attribute] = {}
    for one in (one for one in registry.attributes if one.members):
        if not one.enum:
            yield Problem(
                one.file, one.key, "values without a class", "Add `annotations: {enum: Name}`."
            )
            continue
        first = classes.setdefault(one.enum, one)
        if [m.value for m in first.members] != [m.value for m in one.members]:
            yield Problem(
                one.file,
                one.key,
                f"class {one.enum} with other values than `{first.key}`",
                "Share the members, or give it a class of its own.",
            )
        yield from _member_problems(one)


def _member_problems(attribute: Attribute) -> Iterator[Problem]:
    for field in ("id", "value"):
        counts = Counter(getattr(member, field) for member in attribute.members)
        for text in (text for text, count in counts.items() if count > 1):
            yield Problem(
                attribute.file, attribute.key, f"{field} `{text}` given twice", "Rename one."
            )


def text_has_examples(registry: Registry) -> Iterator[Problem]:
    """Weaver asks for examples of text that is not an enum."""
    for one in registry.attributes:
        free = one.type in ("string", "string[]") and not one.members and not one.enum
        if free and one.origin != "reused" and not one.examples:
            yield Problem(one.file, one.key, "text without an example", "Add `examples: [...]`.")


def span_names_can_be_made(registry: Registry) -> Iterator[Problem]:
    """Every span's name has a function with one parameter per placeholder."""
    functions = Counter(span.function for span in registry.spans)
    for span in registry.spans:
        if functions[span.function] > 1 or not span.function:
            yield Problem(
                span.file,
                span.type,
                "no function of its own",
                "Name one in `annotations`.",
            )
        if len(span.parameters) != len(placeholders(span.name)):
            yield Problem(
                span.file,
                span.type,
                "other placeholders than parameters",
                "List one of `annotations: {parameters: [...]}` per placeholder of the name.",
            )


def renames_lead_somewhere(registry: Registry) -> Iterator[Problem]:
    """A deprecated name says which one has taken its place."""
    known = {one.key for one in registry.attributes}
    for one in registry.attributes:
        if one.deprecated and one.deprecated.get("reason") == "renamed":
            target = one.deprecated.get("renamed_to")
            if target not in known:
                yield Problem(
                    one.file, one.key, f"renamed to `{target}`, which is not there", "Define it."
                )


_RULES: Iterable[Callable[[Registry], Iterator[Problem]]] = (
    names_are_well_formed,
    nothing_is_defined_twice,
    no_name_is_a_namespace,
    constants_are_unique,
    numbers_have_units,
    buckets_grow,
    phases_have_edges,
    phases_have_facts,
    phases_are_in_order,
    every_attribute_has_a_place,
    enums_agree,
    text_has_examples,
    span_names_can_be_made,
    renames_lead_somewhere,
    alias_problems,
)
