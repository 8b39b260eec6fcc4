"""Traces for the tests of the stages, one row per span, and outcomes read back as lines.

Rows are those of a case file (milliseconds, ids of a few letters). What no case can say (wrong
types, flags, scopes, bytes) is set on the span as it is, by the row's keys in `SET`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from llmlat_processor.model import Assumptions, Finding, Span
from llmlat_processor.pipeline import process
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import FindingKind
from tests.cases.case_format import EXACT, Case, Json
from tests.cases.case_spans import id_bytes, name_of, spans_of
from tests.cases.outcome import Outcome

MS: Final = 1_000_000

SET: Final = ("attributes", "flags", "name", "scope", "raw", "start_ns", "end_ns", "resource")
"""Keys of a row that are set on the span; attributes are added to those that the row implies."""


def row(name: str, parent: str | None, start: float, end: float, **keys: Any) -> Json:
    """One operation, in milliseconds from the start of the trace."""
    return {"id": name, "parent": parent, "start": start, "end": end, **keys}


def phase(name: Phase, of: str, start: float, end: float, **keys: Any) -> Json:
    """One phase span of an operation, with an id that says both."""
    return row(f"{of}.{name.value}", of, start, end, phase=name.value, **keys)


def chat(name: str, parent: str | None, start: float, end: float, **keys: Any) -> Json:
    """One inference as our SDK records it, without its phases."""
    return row(name, parent, start, end, kind="client", op="chat", boundary="client", **keys)


def engine(name: str, parent: str | None, start: float, end: float, **keys: Any) -> Json:
    """One engine span on a clock of its own."""
    place = {"host": "gpu", "kind": "server", "boundary": "engine"}
    return row(name, parent, start, end, **{**place, **keys})


def not_awaited(parent: str) -> Mapping[str, Json]:
    """Children, called x, that nobody waits for; the parent has to end at 100 or earlier."""
    return {
        "outlives everybody": row("x", parent, 5, 150),
        "async": row("x", parent, 5, 50, **{"async": True}),
        "lost": row("x", parent, 5, 50, lost=True),
    }


def spans(*rows: Json, links: Sequence[Json] = ()) -> list[Span]:
    """The spans of some rows, in their order."""
    plain = [{key: value for key, value in raw.items() if key not in SET} for raw in rows]
    made = spans_of(_case(plain, links))
    for raw, span in zip(rows, made, strict=True):
        for key in SET:
            if key == "attributes":
                span.attributes = {**span.attributes, **raw.get(key, {})}
                span.attribute_count = len(span.attributes)
            elif key in raw:
                setattr(span, key, raw[key])
    return made


def explained(*rows: Json, links: Sequence[Json] = (), assumptions: Assumptions = EXACT) -> Outcome:
    """What the processor says about some rows."""
    return outcome_of(spans(*rows, links=links), assumptions)


def outcome_of(made: Sequence[Span], assumptions: Assumptions = EXACT) -> Outcome:
    """What the processor says about some spans."""
    return Outcome(_case([], ()), process(made, assumptions))


def link(after: str, before: str, relationship: str = "follows", **keys: Any) -> Json:
    """A link on `after` that points to `before`."""
    return {"from_span": after, "to_span": before, "type": relationship, **keys}


def placed(outcome: Outcome, which: str = "e2e", root: str | None = None) -> list[str]:
    """The sections of a path as `span label start..end`."""
    return [outcome.placed_line(section) for section in outcome.sections(which, root)]


def amounts(outcome: Outcome, which: str = "e2e", root: str | None = None) -> list[str]:
    """The sections of a path as `span label amount`."""
    return [outcome.section_line(section) for section in outcome.sections(which, root)]


def findings(outcome: Outcome) -> list[str]:
    """What was found in a trace, as `findings_of` says it, but for what raw stamps only look like.

    Many of these traces have clocks far apart, so that a stamp compared across clocks would show.
    """
    return findings_of(
        finding
        for finding in outcome.explained.findings
        if finding.kind is not FindingKind.APPARENT_NEGATIVE_NETWORK
    )


def findings_of(found: Iterable[Finding]) -> list[str]:
    """`kind of span amount`, sorted; the amount, in milliseconds, only where there is one."""
    return sorted(
        f"{finding.kind.value} of {name_of(finding.of)}"
        + ("" if finding.amount_ns is None else f" {finding.amount_ns / MS:g}")
        for finding in found
    )


def span_named(outcome: Outcome, name: str) -> Span:
    """An operation of an explained trace."""
    operations = outcome.explained.trace.operations
    return next(span for span in operations if span.span_id == id_bytes(name))


def _case(rows: Sequence[Json], links: Sequence[Json]) -> Case:
    return Case("stages", "call", "ms", spans=rows, links=links)
