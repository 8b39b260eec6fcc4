"""A caller's waiting exchanged for the callee's own account, by durations alone.

    caller   send █ wait ▒▒▒▒▒▒▒▒▒▒▒▒ stream ▒▒▒▒▒▒▒▒▒▒ finalize █       E = wait + stream
    callee            queue ██ prefill ███ decode ████████               C = start .. last output
    path     send █ queue ██ prefill ███ decode ████████ transit ░░ finalize █

The sum of both legs of transit is E - C, whatever the clocks say; how it splits is not known.
"""

from __future__ import annotations

from typing import Final

from llmlat_processor.relations import ends_with_its_answer
from llmlat_processor.stages.critical_path.account import Part
from llmlat_processor.stages.critical_path.envelope import (
    Envelope,
    Labels,
    consumer_inside_ns,
    envelope_labels,
    first_labels,
    lend,
    own_ns,
    repaid,
    split_upstream,
    standing,
)
from llmlat_processor.stages.critical_path.held import note_held
from llmlat_processor.stages.critical_path.offer import Offer, first_offer, whole_offer
from llmlat_processor.stages.critical_path.tree import Call, Node, Tree
from llmlat_semconv.values import Evidence, FindingKind, SectionLabel

# Members looked up once: on Python 3.11 each look-up costs as much as a call.
_CONSUMER: Final = SectionLabel.CONSUMER
_HELD: Final = SectionLabel.HELD
_SEND: Final = SectionLabel.SEND
_TRANSIT: Final = SectionLabel.TRANSIT
_UPSTREAM: Final = SectionLabel.UPSTREAM
_UPSTREAM_STREAM: Final = SectionLabel.UPSTREAM_STREAM
_MEASURED: Final = Evidence.MEASURED
_DERIVED: Final = Evidence.DERIVED


def exchange_whole(tree: Tree, node: Node, parts: list[Part]) -> list[Part]:
    """Exchange a call's envelopes for its callee's account up to the last output."""
    call = node.call
    if call is None:
        return parts
    offer = None if call.split else whole_offer(node, call)
    if offer is None:
        return standing(node, parts)
    envelope = _envelope_of(node, parts, offer)
    if call.has_bounds_within and offer.total_ns > envelope.total_ns:
        offer = offer.giving_way()
    needed_ns = offer.total_ns - envelope.total_ns
    loans = lend(node, offer, parts, needed_ns)
    room_ns = envelope.total_ns + sum(loans.values())
    tolerance_ns = tree.epsilon_ns(node, offer.node) + tree.tail_ns
    if offer.sure_ns > room_ns + tolerance_ns:
        call.rejected = True
        _report_misfit(tree, node, offer, (envelope.total_ns, room_ns, tolerance_ns))
        return standing(node, parts)
    call.send_overlap_ns = loans.get(_SEND, 0)
    note_held(tree, node, call, tolerance_ns)
    surplus = max(0, room_ns - offer.total_ns)
    if offer.is_part:
        told = [*offer.fitted(room_ns), envelope.rest(surplus)]
        return standing(node, repaid(envelope.replaced(told), node, loans))
    # What was lent was no streaming: the caller held nothing then.
    consumer = min(consumer_inside_ns(node, parts), envelope.total_ns)
    rest = _split(node, surplus, _CONSUMER, consumer)
    return repaid(envelope.replaced([*offer.fitted(room_ns), *rest]), node, loans)


def _envelope_of(node: Node, parts: list[Part], offer: Offer) -> Envelope:
    """What a whole call's callee answers for: an account that is only a part, for its beginning."""
    if not offer.is_part:
        return Envelope(node, parts, envelope_labels(node))
    primary, wider = first_labels(node)
    first = Envelope(node, parts, primary)
    missing_ns = offer.sure_ns - first.total_ns
    if missing_ns <= 0:
        return first
    return Envelope(node, split_upstream(node, parts, missing_ns), wider)


def exchange_first(tree: Tree, node: Node, parts: list[Part]) -> list[Part]:
    """The same for a call entered before its end: up to the callee's first output."""
    call = node.call
    if call is None or call.rejected or call.split:
        return parts
    offer = first_offer(node, call)
    primary, wider = first_labels(node)
    envelope = Envelope(node, parts, primary)
    if offer is None or envelope.total_ns == 0 or _is_cut_short(node, envelope, primary):
        return parts
    overlap = _overlap_ns(node, call, offer, parts, envelope.total_ns)
    epsilon_ns = tree.epsilon_ns(node, offer.node)
    missing_ns = offer.total_ns - envelope.total_ns - overlap
    if missing_ns > epsilon_ns:
        envelope = Envelope(node, split_upstream(node, parts, missing_ns), wider)
        overlap = _overlap_ns(node, call, offer, parts, envelope.total_ns)
        if call.has_bounds_within:
            offer = offer.giving_way()
        if offer.sure_ns > envelope.total_ns + overlap + epsilon_ns:
            return parts
    room_ns = envelope.total_ns + overlap
    surplus = max(0, room_ns - offer.total_ns)
    rest = _split(node, surplus, _HELD, call.held_ns)
    if offer.is_part:
        rest = [envelope.rest(surplus)]
    return repaid(envelope.replaced([*offer.fitted(room_ns), *rest]), node, {_SEND: overlap})


def _overlap_ns(node: Node, call: Call, offer: Offer, parts: list[Part], envelope_ns: int) -> int:
    """How much of `send` the callee was at work: what one clock shows, else what is needed."""
    overlap = min(call.send_overlap_ns, own_ns(node, parts, _SEND))
    if offer.shares_clock_with(node):
        return overlap
    return min(overlap, max(0, offer.total_ns - envelope_ns))


def _split(node: Node, surplus_ns: int, label: SectionLabel, amount_ns: int) -> list[Part]:
    """What is left of the waiting: first what has a name of its own, then transit."""
    named = min(surplus_ns, amount_ns)
    evidence = _MEASURED if label is _CONSUMER else _DERIVED
    return [
        (node, label, evidence, named),
        (node, _TRANSIT, _DERIVED, surplus_ns - named),
    ]


def _is_cut_short(node: Node, envelope: Envelope, labels: Labels) -> bool:
    """Where the wait itself is cut, nothing says what of the callee lies in it."""
    facts = node.facts
    if facts is None:
        return False
    return envelope.total_ns < sum(facts.total_ns(label) for label in labels if label is not None)


def first_extension_ns(node: Node) -> int:
    """How much of `upstream_stream` a gateway's call needs for its callee's first output.

    A role chunk can come before the first token: then the engine's prefill does not fit what
    lies before the first upstream event.
    """
    call, facts = node.call, node.facts
    if call is None or facts is None or call.rejected:
        return 0
    offer = first_offer(node, call)
    if offer is None:
        return 0
    room_ns = facts.total_ns(_UPSTREAM) + call.send_overlap_ns
    more_ns = facts.total_ns(_UPSTREAM_STREAM)
    if offer.sure_ns > room_ns + more_ns:
        return 0
    return max(0, min(offer.total_ns - room_ns, more_ns))


def _tells_its_end(callee: Node) -> bool:
    """Whether the end of a callee's account is known to be that of its answer."""
    facts = callee.facts
    if facts is not None and (facts.ours or facts.last_output_ns is not None or facts.reported):
        return True
    return ends_with_its_answer(callee.span)


def _report_misfit(tree: Tree, node: Node, offer: Offer, sizes_ns: tuple[int, int, int]) -> None:
    """The callee took longer than the caller waited: said, and left off both paths."""
    envelope_ns, room_ns, tolerance_ns = sizes_ns
    facts = node.facts
    amount = envelope_ns - offer.total_ns
    if facts is not None and (facts.cancelled or facts.failed):
        kind = FindingKind.OUTLIVED_CANCELLED_PARENT
    elif facts is not None and facts.saw_last_byte and _tells_its_end(offer.node):
        kind = FindingKind.NEGATIVE_TRANSIT
    else:
        kind, amount = FindingKind.OUTLIVED_PARENT, offer.total_ns - room_ns
    tree.find(kind, offer.node, amount, node, epsilon_ns=tolerance_ns)
