"""Where phases lie: read from phase spans, in time order, and not overlapping."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from llmlat_processor.model import AttributeValue, Span
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import Evidence, SectionLabel

CENTURY_S: Final = 3_155_760_000
"""No request takes longer; a larger number is no duration in seconds."""

LABELS: Final[dict[str, SectionLabel]] = {phase.value: SectionLabel(phase.value) for phase in Phase}
EVIDENCE: Final[dict[str, Evidence]] = {
    each.value: each for each in (Evidence.BOUNDED, Evidence.REPORTED)
}
_MEASURED: Final = Evidence.MEASURED

Place: TypeAlias = "tuple[int, int, SectionLabel, Evidence]"
"""A recorded phase on its operation's clock: (start, end, label, evidence)."""


def nanoseconds(seconds: AttributeValue) -> int | None:
    """A duration in integer ns; None for whatever is no number of seconds up to a century."""
    if type(seconds) is float:  # nearly all of them
        return round(seconds * 1e9) if 0.0 <= seconds <= CENTURY_S else None
    if isinstance(seconds, (int, float)) and 0 <= seconds <= CENTURY_S and seconds is not True:
        return round(seconds * 1e9) if seconds is not False else None
    return None


def text(value: AttributeValue) -> str:
    """The text that an attribute says; empty for whatever is none."""
    return value if isinstance(value, str) else ""


def evidence(value: AttributeValue, default: Evidence) -> Evidence:
    """How something is known, as an attribute says it; the default where it does not."""
    return EVIDENCE.get(value, default) if isinstance(value, str) else default


def places_of(phases: Sequence[Span], starts_ns: Sequence[int]) -> list[Place]:
    """The phases in the order of their starts."""
    places: list[Place] = []
    for span, start in zip(phases, starts_ns, strict=True):
        attributes = span.attributes
        label = LABELS.get(text(attributes.get(names.LLMLAT_PHASE_NAME)))
        if label is None:  # an open enum: a phase of a later contract is unobserved time here
            continue
        size = nanoseconds(attributes.get(names.LLMLAT_PHASE_DURATION))
        if size is None:
            size = span.end_ns - span.start_ns
        known_by = evidence(attributes.get(names.LLMLAT_PHASE_EVIDENCE), _MEASURED)
        places.append((start, start + size, label, known_by))
    places.sort()
    return places


def apart(places: Iterable[Place]) -> list[Place]:
    """Phases of one boundary do not overlap; where data says otherwise, the earlier one stays."""
    kept: list[Place] = []
    reached = -1
    for place in places:
        start, end, label, known_by = place
        if start >= reached:
            kept.append(place)
        elif end > reached:
            kept.append((reached, end, label, known_by))
        else:
            continue
        reached = end
    return kept
