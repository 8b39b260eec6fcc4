"""What the attributes of a known producer's span say of its time, and what of that cannot be.

A stage that was never reached leaves the default 0 of its stamp in a subtraction: what comes of it
is negative, zero, or as long as the host has been up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from llmlat_processor.model import AttributeValue, Span
from llmlat_processor.phase_places import CENTURY_S
from llmlat_processor.producers import Reading
from llmlat_semconv.values import Evidence, FindingKind, SectionLabel

SLACK_NS: Final = 5_000_000
"""A duration may exceed its operation by this much, or by a twentieth of it: two clocks."""

NEVER_ZERO: Final = frozenset((SectionLabel.PREFILL,))
"""Phases that take time wherever there are any: at least one token is always computed."""


class Doubt(NamedTuple):
    """Something that is said and cannot be; it is left out."""

    kind: FindingKind
    amount_ns: int | None
    note: str
    epsilon_ns: int | None = None


class NativeAccount:
    """Durations by phase, and when the first output was (plain slots).

    Attributes:
        durations: in nanoseconds, with how they are known; what cannot be is left out.
        first_output_ns: from the operation's start to its first output; None where unknown.
        doubts: what was left out, and why.
    """

    __slots__ = ("doubts", "durations", "first_output_ns")

    def __init__(self, span: Span, reading: Reading) -> None:
        self.durations: dict[SectionLabel, tuple[int, Evidence]] = {}
        self.first_output_ns: int | None = None
        self.doubts: list[Doubt] = []
        said = span.attributes
        for key, (label, unit_ns, known_by, minus) in reading.durations.items():
            size_ns = _amount_ns(said.get(key), unit_ns)
            less_ns = _amount_ns(said.get(minus), unit_ns) if minus else 0
            if size_ns is None or less_ns is None:
                continue
            # Neither of two is an amount where one is negative, whatever their difference is.
            length_ns = min(size_ns, less_ns) if min(size_ns, less_ns) < 0 else size_ns - less_ns
            if self._is_sound(key, length_ns, span, label):
                self.durations[label] = (length_ns, known_by)
        for key, unit_ns in reading.first_outputs.items():
            size_ns = _amount_ns(said.get(key), unit_ns)
            if size_ns is not None and self._is_sound(key, size_ns, span, SectionLabel.PREFILL):
                self.first_output_ns = size_ns

    def differing_from(self, totals_ns: Mapping[SectionLabel, int]) -> Iterator[Doubt]:
        """Where a better account of the same phases says something else: that one is used."""
        for label, (size_ns, _) in self.durations.items():
            measured_ns = totals_ns.get(label)
            if measured_ns is None:
                continue
            granted_ns = max(SLACK_NS, max(size_ns, measured_ns) // 20)
            apart_ns = abs(size_ns - measured_ns)
            if apart_ns > granted_ns:
                note = f"its producer says otherwise of {label.value} than what was measured"
                yield Doubt(FindingKind.EVIDENCE_DISAGREES, apart_ns, note, granted_ns)

    def _is_sound(self, key: str, size_ns: int, span: Span, label: SectionLabel) -> bool:
        doubt = _doubt_of(key, size_ns, span, label)
        if doubt is not None:
            self.doubts.append(doubt)
        return doubt is None


def without_unset(reported: dict[SectionLabel, tuple[int, Evidence]]) -> Sequence[Doubt]:
    """Take out of what a peer has reported to a call what it never reached.

    A report that is longer than the call waited is another matter: then all of it is left out.
    """
    unset = [label for label, (size_ns, _) in reported.items() if _is_unset(size_ns, label)]
    for label in unset:
        del reported[label]
    return [_unset(f"reported {label.value}") for label in unset]


def _is_unset(size_ns: int, label: SectionLabel) -> bool:
    return size_ns == 0 and label in NEVER_ZERO


def _unset(name: str) -> Doubt:
    note = f"{name} is 0, which it never is: a stamp was never set, or used for both ends"
    return Doubt(FindingKind.UNSET_MILESTONE, None, note)


def _doubt_of(key: str, size_ns: int, span: Span, label: SectionLabel) -> Doubt | None:
    """Why a duration cannot be one of this span's; None where it can."""
    whole_ns = max(0, span.end_ns - span.start_ns)
    excess_ns = size_ns - whole_ns
    if size_ns < 0:
        return Doubt(FindingKind.NEGATIVE_DURATION, size_ns, f"{key} is negative: it is left out")
    if _is_unset(size_ns, label):
        return _unset(key)
    if excess_ns > max(SLACK_NS, whole_ns // 20):
        note = f"{key} is longer than the whole operation: it is left out"
        return Doubt(FindingKind.PHASE_OVERFLOW, excess_ns, note)
    return None


def _amount_ns(value: AttributeValue, unit_ns: int) -> int | None:
    """An amount of some unit in integer ns, negative ones too; None for whatever is no amount."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    limit = CENTURY_S * 1_000_000_000 // unit_ns
    return round(value * unit_ns) if -limit <= value <= limit else None
