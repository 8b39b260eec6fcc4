"""`--what-if TARGET=CHANGE`: what it asks, which operation it means, and how the answer reads.

queue=0.5                 every queue half as long
tool:get_orders=0.5       the one operation with the tool, retrieval or name get_orders
decode@6f1c=-720ms        the decode of the span whose id starts with 6f1c
@6f1c=0.5                 that span as a whole
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from llmlat_processor.model import ExplainedTrace, Span
from llmlat_processor.schedule import Schedule
from llmlat_processor.stages.critical_path.what_if import Change, WhatIf, reschedule
from llmlat_processor.views.wording import Answer
from llmlat_semconv.attributes import GEN_AI_AGENT_NAME, GEN_AI_TOOL_NAME, LLMLAT_RETRIEVAL_SOURCE
from llmlat_semconv.phases import Phase

_UNITS_NS: Final = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9}
_LONGEST_NS: Final = 2**63 - 1
_LARGEST_FACTOR: Final = 1_000_000

_AMOUNT: Final = re.compile(r"([+-]\d+(?:\.\d+)?)(ns|us|µs|ms|s)")
_TARGET: Final = re.compile(r"(?P<phase>[^:@]*)(?::(?P<name>.+)|@(?P<span>[0-9a-fA-F]{1,16}))?")
_NAMING: Final = (GEN_AI_TOOL_NAME, LLMLAT_RETRIEVAL_SOURCE, GEN_AI_AGENT_NAME)


@dataclass(frozen=True, slots=True)
class Supposition:
    """One what-if as asked.

    Attributes:
        text: as written.
        phase: whose time changes; None for an operation as a whole.
        name: of one operation, or empty.
        span_prefix: start of one operation's span id in hex, or empty.
        factor: what its time is multiplied by; None where `by_ns` is given.
        by_ns: what is added to its time; negative shortens.
    """

    text: str
    phase: Phase | None
    name: str
    span_prefix: str
    factor: float | None
    by_ns: int | None

    @property
    def is_for_one(self) -> bool:
        """True where it means one operation, and not every one that has the phase."""
        return bool(self.name or self.span_prefix)


def parse(text: str) -> Supposition:
    """Read TARGET=CHANGE.

    Raises:
        ValueError: it cannot be read; the message says what would be.
    """
    target, equals, change = text.rpartition("=")
    parts = _TARGET.fullmatch(target)
    if not equals or parts is None or not target:
        raise ValueError(f"{text!r} is not TARGET=CHANGE, as in queue=0.5 or decode=-720ms")
    phase, name, span = (parts.group(part) or "" for part in ("phase", "name", "span"))
    if not phase and not span:
        raise ValueError(f"{text!r} names no phase and no span")
    factor, by_ns = _change(change)
    return Supposition(text, _phase(phase) if phase else None, name, span.lower(), factor, by_ns)


def meant(supposition: Supposition, explained: ExplainedTrace) -> Span | None:
    """Find the one operation that a supposition means; None where it means every one.

    Raises:
        ValueError: none of that name or id, or several.
    """
    if not supposition.is_for_one:
        return None
    found = [span for span in explained.trace.operations if _matches(span, supposition)]
    if len(found) == 1:
        return found[0]
    if not found:
        known = ", ".join(dict.fromkeys(span.name for span in explained.trace.operations))
        raise ValueError(f"{supposition.text!r} matches no operation of this trace: {known}")
    ids = ", ".join(f"@{span.span_id.hex()} ({span.name})" for span in found)
    raise ValueError(f"{supposition.text!r} matches several operations, name one: {ids}")


def answer(
    supposition: Supposition, explained: ExplainedTrace, plans: Mapping[Span, Schedule]
) -> dict[Span, Answer]:
    """Answer a supposition for every root.

    Args:
        supposition: what is asked.
        explained: the trace.
        plans: the schedules of its roots, made once for all that is asked.

    Raises:
        ValueError: it means no operation of the trace, or several.
    """
    one, phase, factor = meant(supposition, explained), supposition.phase, supposition.factor
    change = Change(
        label=None if phase is None else phase.value,
        span_id=None if one is None else one.span_id,
        factor=None if factor is None else Fraction(factor),
        by_ns=supposition.by_ns,
    )
    return {root: _answer(supposition, reschedule(plan, change)) for root, plan in plans.items()}


def _answer(supposition: Supposition, found: WhatIf) -> Answer:
    return Answer(
        supposition.text,
        found.saves_ns,
        found.saves_low_ns,
        found.saves_high_ns,
        found.duration_ns,
    )


def _phase(name: str) -> Phase:
    try:
        return Phase(name)
    except ValueError:
        known = ", ".join(phase.value for phase in Phase)
        raise ValueError(f"{name!r} is no phase; the phases are {known}") from None


def _change(text: str) -> tuple[float | None, int | None]:
    amount = _AMOUNT.fullmatch(text)
    if amount is not None:
        by_ns = float(amount.group(1)) * _UNITS_NS[amount.group(2)]
        if abs(by_ns) > _LONGEST_NS:
            raise ValueError(f"{text!r} is longer than any trace")
        return None, round(by_ns)
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 0 <= factor <= _LARGEST_FACTOR:  # NaN is not either
        raise ValueError(
            f"{text!r} is neither a factor of 0 to {_LARGEST_FACTOR:,} nor an amount like -720ms"
        )
    return factor, None


def _matches(span: Span, supposition: Supposition) -> bool:
    if supposition.span_prefix:
        return span.span_id.hex().startswith(supposition.span_prefix)
    return supposition.name in (span.name, *_names(span))


def _names(span: Span) -> Iterator[object]:
    return (span.attributes[key] for key in _NAMING if key in span.attributes)
