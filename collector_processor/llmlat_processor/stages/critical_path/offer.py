"""What a callee has to say: the parts that can stand in place of its caller's waiting."""

from __future__ import annotations

from collections.abc import Sequence

from llmlat_processor.facts import (
    CONTRACT_ORDER,
    ENGINE_LABELS,
    ENVELOPE_LABELS,
    LAST_OUTPUT,
    Facts,
    in_order,
)
from llmlat_processor.stages.critical_path.account import Account, Part, Piece, Slice, cut, flatten
from llmlat_processor.stages.critical_path.held import STREAMING
from llmlat_processor.stages.critical_path.tree import Call, Node
from llmlat_semconv.values import Evidence, SectionLabel


class Offer:
    """What the callee has to say: parts to put in place of the envelope (plain slots: hot path).

    Attributes:
        node: who says so; the caller itself where only its peer's report is known.
        bounded_ns: how much of it is only an upper bound and may be cut to what fits.
        last_byte: the callee's last output is its last byte.
        is_part: it does not reach the output that is asked for: what is left of the waiting is
            still the callee's, and no transit.
    """

    __slots__ = ("bounded_ns", "is_part", "last_byte", "node", "parts", "total_ns")

    def __init__(
        self,
        node: Node,
        parts: Sequence[Piece] | Account | Slice,
        total_ns: int,
        bounded_ns: int = 0,
        last_byte: bool = False,
        is_part: bool = False,
    ) -> None:
        self.node = node
        self.parts = parts
        self.total_ns = total_ns
        self.bounded_ns = bounded_ns
        self.last_byte = last_byte
        self.is_part = is_part

    @property
    def sure_ns(self) -> int:
        """What cannot be cut."""
        return self.total_ns - self.bounded_ns

    def shares_clock_with(self, caller: Node) -> bool:
        """True where the overlap of callee and caller can be read off one clock."""
        return self.node is not caller and not self.node.foreign

    def giving_way(self) -> Offer:
        """The same in pieces, so that the upper bounds within it are known as such."""
        if not isinstance(self.parts, (Account, Slice)):
            return self
        pieces = list(flatten(Account([self.parts])))
        bounded = sum(piece[3] for piece in pieces if piece[2] is Evidence.BOUNDED)
        bounded_ns = self.bounded_ns + bounded
        return Offer(self.node, pieces, self.total_ns, bounded_ns, self.last_byte, self.is_part)

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
        total_ns = callee.output.total_ns
        bounded_ns = min(_relayed_ns(callee), total_ns)
        return Offer(callee, callee.output, total_ns, bounded_ns, _ends_at_last_byte(callee))
    return _reported(node, node.facts, None)


def first_offer(node: Node, call: Call) -> Offer | None:
    """From the callee's start to its first output; None where no such edge is known."""
    callee = call.callee
    if callee is not None:
        first = callee.first
        return Offer(callee, first, first.total_ns) if first is not None else None
    return _reported(node, node.facts, SectionLabel.PREFILL)


# A peer, and the gateways before it, may report of themselves side by side: what a gateway calls
# its `upstream` is the engine's time once more.
#
#   upstream  ├─────────────────────────┤     the head of the response: in a stream, no output yet
#   engine      queue ██ prefill ███           all of it, or only as much as the engine has said
#   path        queue ██ prefill ███ upstream ▒
#
# Where the engine's account is whole it stands alone, and what the gateway had beyond it is
# transit. Where it is not, the rest of `upstream` stands: whose time it was, nobody has said.


def _reported(node: Node, facts: Facts | None, last: SectionLabel | None) -> Offer | None:
    """A virtual callee: the durations that the peer reported, in contract order.

    Args:
        node: the caller.
        facts: its facts.
        last: the phase that ends with the output that is asked for; None for the last output.
    """
    if facts is None or not facts.reported:
        return None
    reported = facts.reported
    if last is not None:
        limit = CONTRACT_ORDER[last]
        reported = {each: reported[each] for each in reported if CONTRACT_ORDER[each] <= limit}
    sizes = in_order({label: size for label, (size, _) in reported.items()})
    is_whole = last in sizes if last is not None else not LAST_OUTPUT.isdisjoint(sizes)
    _take_out_of_envelopes(sizes, is_whole)
    if last is None and SectionLabel.UPSTREAM in sizes:
        is_whole = is_whole or _came_whole(facts)
    pieces: list[Piece] = [(node, each, reported[each][1], size) for each, size in sizes.items()]
    bounded = sum(piece[3] for piece in pieces if piece[2] is Evidence.BOUNDED)
    total_ns = sum(sizes.values())
    return Offer(node, pieces, total_ns, bounded, is_part=not is_whole) if sizes else None


def _came_whole(facts: Facts) -> bool:
    """Whether the response was there when its head was."""
    return not (facts.streamed or any(facts.total_ns(label) for label in STREAMING))


def _take_out_of_envelopes(sizes: dict[SectionLabel, int], is_whole: bool) -> None:
    """Engine phases replace as much of envelopes as they take; what is left comes after them."""
    inner_ns = sum(size for label, size in sizes.items() if label in ENGINE_LABELS)
    if ENGINE_LABELS.isdisjoint(sizes):
        return
    for label in [each for each in sizes if each in ENVELOPE_LABELS]:
        size = sizes.pop(label)
        if not is_whole and size > inner_ns:
            sizes[label] = size - inner_ns
        inner_ns = max(0, inner_ns - size)


def _relayed_ns(callee: Node) -> int:
    """How much of a gateway's account is only an upper bound: from its last event from upstream on.

    It knows when its server's `send` returned, and the last byte may have arrived before: a busy
    machine can keep it waiting for as long as it likes.
    """
    facts = callee.facts
    if facts is None or (facts.overflow_ns and SectionLabel.RELAY in facts.durations):
        return 0
    return facts.total_ns(SectionLabel.RELAY)


def _ends_at_last_byte(callee: Node) -> bool:
    """A relay's end or a span's own end is its last byte; decode's end is not."""
    facts = callee.facts
    if facts is None or facts.last_output_ns is None:
        return True
    return SectionLabel.RELAY in facts.totals_ns  # of whatever length
