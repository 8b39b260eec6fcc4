"""What peers say of themselves, as a callee that nobody saw: read slowly, for the oracle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tests.properties.oracle_facts import (
    Operation,
    Section,
    engine_phases,
    merged,
    order_of,
    without_first,
)

LAST_OUTPUTS: Final = ("decode", "detokenize", "relay")
STREAMING: Final = ("first_content", "stream")


@dataclass(slots=True)
class Callee:
    """What a call can be exchanged for: sections, and where they stand if one clock shows it."""

    sections: list[Section]
    start: int | None = None
    end: int | None = None
    ends_with_last_byte: bool = False
    is_part: bool = False
    bounded: int = 0

    @property
    def amount(self) -> int:
        """C."""
        return sum(section.amount for section in self.sections)

    def giving_way(self, room: int) -> Callee:
        """Without what is only an upper bound at its end, as far as there is no room for it."""
        excess = min(self.bounded, max(0, self.amount - room))
        kept = merged(without_first(excess, self.sections[::-1])[::-1])
        return replace(self, sections=kept)


def reported(call: Operation, room: int | None, clipped: bool) -> Callee:
    """A virtual callee: up to prefill where clipped; what is only bounded is cut to fit.

    What an engine says is a part of what a gateway calls its `upstream`, and stands in its place.
    """
    said = dict(call.raw["reported"])
    if clipped:
        said = {p: n for p, n in said.items() if order_of(p) <= order_of("prefill")}
    engine = engine_phases(said)
    is_whole = any(phase in said for phase in (("prefill",) if clipped else LAST_OUTPUTS))
    known = sorted(engine.items(), key=lambda item: order_of(item[0]))
    if "upstream" in said and not is_whole:
        left = said["upstream"] - sum(engine.values())
        if left > 0 or not engine:
            known.append(("upstream", left))
            is_whole = not (clipped or _is_streamed(call))
    excess = max(0, sum(amount for _, amount in known) - room) if room is not None else 0
    sections = []
    for phase, amount in known[::-1]:  # the last bound gives way first
        cut = min(amount, excess) if phase in call.raw.get("bounded", ()) else 0
        excess -= cut
        sections.append(Section(call.id, phase, amount - cut))
    return Callee(sections[::-1], is_part=not is_whole)


def _is_streamed(call: Operation) -> bool:
    """Whether anything says that the answer came in pieces."""
    said = bool(call.raw.get("stream")) or "first_useful_content" in call.raw
    return said or bool(call.phases & set(STREAMING))
