"""Which operations are calls, which spans are only their transport, and who answers whom.

    chat ──────────────────────────      chat ─────────────────────────
      └ HTTP client span ───       =>      └ engine (the chat's callee) ──
          └ engine ──────────────

A transport that ends at the response's headers would else cut its callee short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from llmlat_processor.facts import ENVELOPE_LABELS, attempt_facts
from llmlat_processor.model import CLIENT, CONSUMER
from llmlat_processor.stages.critical_path.tree import Call, Node, Tree
from llmlat_semconv.values import Evidence, FindingKind, SectionLabel

DISAGREEMENT_NS = 5_000_000
"""Two accounts of one phase may differ by this much, or by a twentieth of the larger."""


def find_calls(tree: Tree) -> None:
    """Splice transports out, hand callees to their attempts, and mark the calls of a tree."""
    order = list(tree.roots)
    for node in order:  # parents first: a spliced child is seen under its new parent
        if node.children:
            _settle_children(tree, node)
            order.extend(node.children)
    tree.order = order
    for node in order:
        if node.leaf and node.facts is None and node.span.kind != CLIENT:
            continue
        callees = _callees(node)
        if _is_call(node, callees):
            node.call = Call(callees)
            node.call.split = any(_attempt_number(child) is not None for child in node.children)
            if len(callees) == 1:
                node.call.callee = callees[0]


def _settle_children(tree: Tree, node: Node) -> None:
    facts = node.facts
    if facts is None or not (facts.is_inference or facts.attempt is not None):
        _hand_callees_to_first_attempt(node)
        return
    last_ns = node.end_ns + tree.epsilon_ns(node) + tree.tail_ns
    transports = [
        child for child in node.children if _is_transport(child) and child.end_ns <= last_ns
    ]
    attempts = [child for child in node.children if _attempt_number(child) is not None]
    if len(transports) == 1 and not attempts:
        _splice(node, transports[0])
    elif len(transports) > 1 and not attempts and facts.attempt is None:
        for number, child in enumerate(transports, 1):
            child.facts = attempt_facts(child.span, child.start_ns, number)
    _hand_callees_to_first_attempt(node)


def _is_transport(node: Node) -> bool:
    """A local CLIENT span that says nothing of its own: HTTP under an inference.

    What goes on after the inference was sent for something else, such as a log.
    """
    return (
        node.span.kind == CLIENT and not node.remote and (node.facts is None or node.facts.is_plain)
    )


def _attempt_number(node: Node) -> int | None:
    return node.facts.attempt if node.facts is not None and not node.remote else None


def _splice(node: Node, transport: Node) -> None:
    node.children.remove(transport)
    node.leaf = not node.children
    for child in transport.children:
        node.adopt(child)


def _hand_callees_to_first_attempt(node: Node) -> None:
    """Attempt 1 has sent the operation's own id upstream: what answered it hangs too high."""
    attempts = [
        child
        for child in node.children
        if child.facts is not None and _attempt_number(child) is not None
    ]
    if not attempts:
        return
    first = min(attempts, key=lambda a: (_attempt_number(a) or 0, a.start_ns, a.span.span_id))
    answered = [child for child in node.children if child.remote and not is_one_way(child)]
    for child in answered:
        node.children.remove(child)
        first.adopt(child)


def is_one_way(node: Node) -> bool:
    """True for a message's consumer: nobody waits for it."""
    return node.span.kind == CONSUMER


def _callees(node: Node) -> list[Node]:
    return [child for child in node.children if child.remote and not is_one_way(child)]


def _is_call(node: Node, callees: Sequence[Node]) -> bool:
    facts = node.facts
    if node.span.kind == CLIENT:
        return True
    if facts is not None and (
        facts.is_inference
        or facts.attempt is not None
        or bool(facts.reported)
        or facts.has_envelopes
    ):
        return True
    is_agent = facts is not None and facts.is_agent
    return not is_agent and len(callees) == 1 and len(node.children) == 1


def choose_callee(tree: Tree, node: Node, settle: Callable[[Node], None]) -> None:
    """Of several remote children of one call, take one and explain the others.

    Args:
        tree: receives the findings.
        node: a call whose remote children all have their accounts.
        settle: recomputes the accounts of a node whose callee has changed.
    """
    call = node.call
    if call is None or len(call.callees) < 2:
        return
    ranked = sorted(call.callees, key=_longest_first)
    chosen = call.callee = next(filter(_is_ours, ranked), ranked[0])
    too_high = []
    for other in ranked:
        if other is not chosen and _same_callee(chosen, other):
            _compare(tree, chosen, other)
        elif other is not chosen:
            too_high.append(other)
    if too_high:
        _put_below(tree, chosen, too_high, settle)


def _is_ours(node: Node) -> bool:
    return node.facts is not None and node.facts.ours


def _is_native(node: Node) -> bool:
    return node.facts is not None and node.facts.known_by is Evidence.REPORTED


def _longest_first(node: Node) -> tuple[int, bool, bytes]:
    gateway = node.facts is not None and node.facts.is_gateway
    return (-output_ns(node), not gateway, node.span.span_id)


def output_ns(node: Node) -> int:
    """How long a callee took up to its last output."""
    return node.output.total_ns if node.output is not None else node.end_ns - node.start_ns


def waiting_ns(node: Node) -> int:
    """How long a call without a callee waited for somebody else."""
    facts = node.facts
    if facts is not None and facts.has_envelopes:
        return sum(facts.total_ns(label) for label in ENVELOPE_LABELS)
    if node.account is None:  # a plain span with nothing in it
        return node.end_ns - node.start_ns
    parts = node.account.parts
    own = [part for part in parts if isinstance(part, tuple) and part[0] is node]
    return sum(part[3] for part in own if part[1] is node.rest_label)


def _same_callee(one: Node, other: Node) -> bool:
    if _is_native(one) and _is_native(other) and one.span.scope == other.span.scope:
        return False  # one product on two servers, such as one for prefill and one for decode
    if not (_is_ours(one) and _is_ours(other)):
        return True
    assert one.facts is not None and other.facts is not None  # noqa: PT018 - for mypy
    return (
        one.span.resource.process == other.span.resource.process
        or one.facts.boundary == other.facts.boundary
    )


def _compare(tree: Tree, chosen: Node, other: Node) -> None:
    """Two accounts of one callee are compared phase by phase, never added."""
    if chosen.facts is None or other.facts is None:
        return
    for label in SectionLabel:
        one, two = chosen.facts.total_ns(label), other.facts.total_ns(label)
        if one and two:
            report_disagreement(tree, chosen, one, two, other)


def report_disagreement(
    tree: Tree, node: Node, one_ns: int, other_ns: int, *witnesses: Node
) -> None:
    """Say where two accounts of one phase differ beyond their tolerance."""
    tolerance = max(DISAGREEMENT_NS, max(one_ns, other_ns) // 20)
    difference = abs(one_ns - other_ns)
    if difference > tolerance:
        tree.find(
            FindingKind.EVIDENCE_DISAGREES, node, difference, *witnesses, epsilon_ns=tolerance
        )


def _put_below(
    tree: Tree, chosen: Node, too_high: Sequence[Node], settle: Callable[[Node], None]
) -> None:
    """Spans that hang too high become the callee's callees, if they fit its waiting.

    The longest goes where most waiting was; what does not fit there fits nowhere.
    """
    slots = [
        (waiting_ns(node), node)
        for node in chosen.local_tree()
        if node.call is not None and node.call.callee is None
    ]
    slots.sort(key=lambda slot: (slot[0], slot[1].span.span_id))
    changed: set[Node] = set()
    for other in too_high:
        waiting, slot = slots[-1] if slots else _in_itself(chosen)
        room = waiting + tree.epsilon_ns(slot, other) + tree.tail_ns
        if waiting == 0 or output_ns(other) > room:
            continue
        del slots[-1:]
        _hand_over(tree, other, slot)
        changed.update((slot, *_up_to(chosen, slot)))
    for node in [node for node in reversed(list(chosen.local_tree())) if node in changed]:
        settle(node)


def _in_itself(chosen: Node) -> tuple[int, Node]:
    """A gateway with no span but its own is its own call upstream, as it would be rightly told."""
    facts = chosen.facts
    is_alone = facts is not None and facts.is_gateway and chosen.leaf and chosen.call is None
    return (waiting_ns(chosen) if is_alone else 0, chosen)


def _hand_over(tree: Tree, callee: Node, slot: Node) -> None:
    """Hang a callee under the call that it fits; what was found there without it is void."""
    report = (slot.span.span_id,) * 2  # the slot's own report did not fit its waiting
    tree.findings[:] = [finding for finding in tree.findings if finding.witnesses != report]
    tree.find(FindingKind.HOP_BYPASSED, callee, None, slot)
    if callee.parent is not None:
        callee.parent.children.remove(callee)
    slot.adopt(callee)
    slot.call = Call([callee])
    slot.call.callee = callee


def _up_to(top: Node, node: Node) -> Iterator[Node]:
    while node is not top and node.parent is not None:
        node = node.parent
        yield node
