"""The caller's waiting: which of its own time may be exchanged, and what it can lend beside it.

    send     ███▒            ▒ the callee was already at work while the body was being sent
    wait         ▒▒▒▒▒▒▒▒
    finalize             ▒██ ▒ its last byte came while the caller was already finalizing

What is lent is taken out of `send` and `finalize`, so that the sum stays what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from llmlat_processor.facts import ENVELOPE_LABELS
from llmlat_processor.stages.critical_path.account import Part, length
from llmlat_processor.stages.critical_path.held import STREAMING
from llmlat_processor.stages.critical_path.offer import Offer
from llmlat_processor.stages.critical_path.tree import Node
from llmlat_semconv.values import Evidence, SectionLabel

Labels: TypeAlias = "frozenset[SectionLabel | None]"
"""Labels of envelopes; None stands for time under no phase."""

UNLABELLED: Final[Labels] = frozenset((None,))
FIRST_ENVELOPES: Final[Labels] = frozenset((SectionLabel.WAIT, SectionLabel.UPSTREAM))
NEXT_ENVELOPES: Final[Labels] = FIRST_ENVELOPES | {SectionLabel.FIRST_CONTENT}

Loans = dict[SectionLabel, int]
"""Nanoseconds of `send` and `finalize` during which the callee was at work."""

# Members looked up once: on Python 3.11 each look-up costs as much as a call.
_CONSUMER: Final = SectionLabel.CONSUMER
_FINALIZE: Final = SectionLabel.FINALIZE
_SEND: Final = SectionLabel.SEND
_WAIT: Final = SectionLabel.WAIT
_UPSTREAM: Final = SectionLabel.UPSTREAM
_UPSTREAM_STREAM: Final = SectionLabel.UPSTREAM_STREAM
_MEASURED: Final = Evidence.MEASURED


class Envelope:
    """The pieces of a call under envelope phases, and the block to put an account in."""

    def __init__(self, node: Node, parts: Sequence[Part], labels: Labels) -> None:
        self.node = node
        self.parts = parts
        self.inside: list[bool] = []
        self.total_ns = 0
        for part in parts:
            if isinstance(part, tuple) and part[0] is node and part[1] in labels:
                self.inside.append(True)
                self.total_ns += part[3]
            else:
                self.inside.append(False)

    def replaced(self, account: Sequence[Part]) -> list[Part]:
        """The parts with the account in place of the longest block of envelopes.

        Where there is none, all that was exchanged was lent: it stands after `send`, else
        before `finalize`.
        """
        place = self._longest_block() if any(self.inside) else self._between()
        result: list[Part] = []
        for position, part in enumerate(self.parts):
            if position == place:
                result.extend(account)
            if not self.inside[position]:
                result.append(part)
        return [*result, *account] if place == len(self.parts) else result

    def rest(self, size_ns: int) -> Part:
        """What of the envelopes stands after an account that goes no further: their last piece."""
        pieces = zip(self.parts, self.inside, strict=True)
        last = next((part for part, inside in reversed(list(pieces)) if inside), None)
        if not isinstance(last, tuple):
            return self.node, SectionLabel.WAIT, _MEASURED, size_ns
        return last[0], last[1], last[2], size_ns

    def _between(self) -> int:
        own = [
            part[1] if isinstance(part, tuple) and part[0] is self.node else None
            for part in self.parts
        ]
        if _SEND in own:
            return len(own) - own[::-1].index(_SEND)
        return own.index(_FINALIZE) if _FINALIZE in own else 0

    def _longest_block(self) -> int:
        best, best_size, start, size = 0, -1, 0, 0
        for position, (part, inside) in enumerate(zip(self.parts, self.inside, strict=True)):
            if not inside:
                size = 0
                continue
            start = start if size else position
            size += length(part)
            if size > best_size:
                best, best_size = start, size
        return best


def envelope_labels(node: Node) -> Labels:
    """What may be exchanged of a whole call; without envelope phases, time under no phase."""
    return ENVELOPE_LABELS | _unnamed(node) if _has_envelopes(node) else UNLABELLED


def first_labels(node: Node) -> tuple[Labels, Labels]:
    """What may be exchanged up to the first output, and what where that is too short."""
    if _has_envelopes(node):
        unnamed = _unnamed(node)
        return FIRST_ENVELOPES | unnamed, NEXT_ENVELOPES | unnamed
    return UNLABELLED, UNLABELLED


def _has_envelopes(node: Node) -> bool:
    return node.facts is not None and node.facts.has_envelopes


def _unnamed(node: Node) -> Labels:
    """Where durations overflowed and were left out, time under no phase may be theirs."""
    return UNLABELLED if node.facts is not None and node.facts.overflow_ns else frozenset()


def consumer_ns(node: Node) -> int:
    """How long the caller held the stream between its pulls."""
    return node.facts.consumer_ns if node.facts is not None else 0


def consumer_inside_ns(node: Node, parts: Sequence[Part]) -> int:
    """How much of that can lie in the envelopes of the path: it is part of streaming."""
    held_ns = consumer_ns(node)
    if not held_ns or not _has_envelopes(node):
        return held_ns
    return min(held_ns, sum(own_ns(node, parts, label) for label in STREAMING))


def split_upstream(node: Node, parts: Sequence[Part], needed_ns: int) -> list[Part]:
    """Mark as `upstream` as much of the start of `upstream_stream` as an exchange needs."""
    result: list[Part] = []
    for part in parts:
        if is_own(part, node, _UPSTREAM_STREAM) and needed_ns > 0:
            taken = min(needed_ns, length(part))
            needed_ns -= taken
            result.append((node, _UPSTREAM, _MEASURED, taken))
            rest = length(part) - taken
            result.append((node, _UPSTREAM_STREAM, _MEASURED, rest))
        else:
            result.append(part)
    return result


def is_own(part: Part, node: Node, label: SectionLabel) -> bool:
    """True for a piece that an operation owns under one label."""
    return isinstance(part, tuple) and part[0] is node and part[1] is label


def lend(node: Node, offer: Offer, parts: Sequence[Part], needed_ns: int) -> Loans:
    """How much of `finalize` and `send` the callee was at work.

    Where one clock shows the overlap, all of it; else no more than is needed to fit.
    """
    shown = _shown_overlaps(node, offer)
    loans: Loans = {}
    for label in (_FINALIZE, _SEND):
        if label is _FINALIZE and not offer.last_byte:
            continue
        if label is _SEND:  # Upper bounds give way before that.
            needed_ns -= offer.bounded_ns
        available = own_ns(node, parts, label)
        loans[label] = min(available, shown.get(label, max(0, needed_ns)))
        needed_ns -= loans[label]
    return loans


def _shown_overlaps(node: Node, offer: Offer) -> Loans:
    """Overlaps that can be read off, where caller and callee share a clock."""
    if node.facts is None or not offer.shares_clock_with(node):
        return {}
    overlaps: Loans = {}
    for start, end, label, _ in node.facts.outer:
        if label is _SEND:
            overlaps[label] = max(0, end - offer.node.start_ns)
        elif label is _WAIT:  # It begins where `send` ends, which may be known by its length only.
            overlaps.setdefault(_SEND, max(0, start - offer.node.start_ns))
        elif label is _FINALIZE:
            overlaps[label] = max(0, _last_output(offer.node) - start)
    return overlaps


def _last_output(callee: Node) -> int:
    return callee.start_ns + (callee.output.total_ns if callee.output is not None else 0)


def own_ns(node: Node, parts: Sequence[Part], label: SectionLabel) -> int:
    """How much of some parts an operation owns under one label."""
    return sum(
        [
            part[3]
            for part in parts
            if isinstance(part, tuple) and part[0] is node and part[1] is label
        ]
    )


def repaid(parts: list[Part], node: Node, loans: Loans) -> list[Part]:
    """Take what was borrowed out of `send`'s end and `finalize`'s start."""
    owed = {label: size for label, size in loans.items() if size > 0}
    if not owed:
        return parts
    result: list[Part] = []
    for part in parts:
        if isinstance(part, tuple) and part[0] is node and part[1] is not None and part[1] in owed:
            taken = min(part[3], owed[part[1]])
            owed[part[1]] -= taken
            result.append((node, part[1], part[2], part[3] - taken))
        else:
            result.append(part)
    return result


def standing(node: Node, parts: list[Part]) -> list[Part]:
    """No callee: envelopes stand; `stream` splits into waiting at the pull and the consumer."""
    owed = consumer_ns(node)
    if not owed:
        return parts
    result: list[Part] = []
    for part in reversed(parts):
        if isinstance(part, tuple) and part[0] is node and part[1] in STREAMING and owed:
            taken = min(owed, part[3])
            owed -= taken
            result.append((node, _CONSUMER, _MEASURED, taken))
            result.append((node, part[1], part[2], part[3] - taken))
        else:
            result.append(part)
    return result[::-1]
