"""What a callee has to say: the parts that can stand in place of its caller's waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llmlat_processor.stages.critical_path.account import Account, Part, Piece, Slice, cut
from llmlat_processor.stages.critical_path.facts import CONTRACT_ORDER, Facts
from llmlat_processor.stages.critical_path.tree import Call, Node
from llmlat_semconv.values import Evidence, SectionLabel


@dataclass(frozen=True, slots=True)
class Offer:
    """What the callee has to say: parts to put in place of the envelope.

    Attributes:
        node: who says so; the caller itself where only its peer's report is known.
        bounded_ns: how much of it is only an upper bound and may be cut to what fits.
        last_byte: the callee's last output is its last byte.
    """

    node: Node
    parts: Sequence[Piece] | Account | Slice
    total_ns: int
    bounded_ns: int = 0
    last_byte: bool = False

    @property
    def sure_ns(self) -> int:
        """What cannot be cut."""
        return self.total_ns - self.bounded_ns

    def shares_clock_with(self, caller: Node) -> bool:
        """True where the overlap of callee and caller can be read off one clock."""
        return self.node is not caller and not self.node.foreign

    def fitted(self, room_ns: int) -> list[Part]:
        """The parts in at most `room_ns`: bounded durations give way, then the last sections."""
        excess = self.total_ns - room_ns
        if isinstance(self.parts, (Account, Slice)):
            return [cut(self.parts, 0, excess)]
        pieces, excess = _shortened(self.parts, excess, only=Evidence.BOUNDED)
        return list(_shortened(pieces, excess)[0])


def _shortened(
    pieces: Sequence[Piece], excess_ns: int, only: Evidence | None = None
) -> tuple[list[Piece], int]:
    """Pieces cut by an excess from the last one on, and what of the excess is left."""
    kept: list[Piece] = []
    for node, label, evidence, size in reversed(pieces):
        taken = max(0, min(size, excess_ns)) if only in (evidence, None) else 0
        excess_ns -= taken
        kept.append((node, label, evidence, size - taken))
    return kept[::-1], excess_ns


def whole_offer(node: Node, call: Call) -> Offer | None:
    """From the callee's start to its last output; best evidence wins: a span, else a report."""
    callee = call.callee
    if callee is not None and callee.output is not None:
        return Offer(callee, callee.output, callee.output.total_ns, 0, _ends_at_last_byte(callee))
    return _reported(node, node.facts, None)


def first_offer(node: Node, call: Call) -> Offer | None:
    """From the callee's start to its first output; None where no such edge is known."""
    callee = call.callee
    if callee is not None:
        first = callee.first
        return Offer(callee, first, first.total_ns) if first is not None else None
    return _reported(node, node.facts, SectionLabel.PREFILL)


def _reported(node: Node, facts: Facts | None, last: SectionLabel | None) -> Offer | None:
    """A virtual callee: the durations that the peer reported, in contract order."""
    if facts is None or not facts.reported or (last is not None and last not in facts.reported):
        return None
    labels = sorted(facts.reported, key=lambda label: CONTRACT_ORDER[label])
    if last is not None:
        labels = [label for label in labels if CONTRACT_ORDER[label] <= CONTRACT_ORDER[last]]
    pieces: list[Piece] = []
    bounded = 0
    for label in labels:
        size, evidence = facts.reported[label]
        pieces.append((node, label, evidence, size))
        bounded += size if evidence is Evidence.BOUNDED else 0
    return Offer(node, pieces, sum(piece[3] for piece in pieces), bounded)


def _ends_at_last_byte(callee: Node) -> bool:
    """A relay's end or a span's own end is its last byte; decode's end is not."""
    facts = callee.facts
    if facts is None or facts.last_output_ns is None:
        return True
    return facts.total_ns(SectionLabel.RELAY) > 0
