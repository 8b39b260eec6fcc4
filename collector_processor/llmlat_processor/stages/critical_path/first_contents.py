"""When the first content of a call was there, as its callee and as its caller saw it.

    caller   send █ wait ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▼ stream           sent .. first content      by its clock
    callee            queue ██ prefill ██▼ decode         start .. first output      by its own

Two durations: what is left of the longer one is the way there and the way back, and no clocks are
compared. The callee may have been later than is known (a gateway's first event from upstream can be
a role chunk), so what is left is the most that both ways took.
"""

from __future__ import annotations

from typing import Final

from llmlat_processor.facts import FIRST_OUTPUT, Facts
from llmlat_processor.model import FirstContent
from llmlat_processor.stages.critical_path.exchange import first_extension_ns
from llmlat_processor.stages.critical_path.tree import Node, Tree
from llmlat_semconv.values import Evidence, SectionLabel

SENDING: Final = (SectionLabel.SEND, SectionLabel.UPSTREAM)
"""The first of these that has a place begins when the request is sent."""


def first_contents(tree: Tree) -> tuple[FirstContent, ...]:
    """Of every call of which both sides tell; outer calls first.

    A callee that has its first output only after its caller had the content is left out.
    """
    found = (_seen_by_both(tree, node) for node in tree.order if node.call is not None)
    return tuple(each for each in found if each is not None)


def _seen_by_both(tree: Tree, node: Node) -> FirstContent | None:
    call = node.call
    if call is None or call.split or call.rejected or call.callee is None:
        return None
    client_ns, server_ns = _client_ns(node), _server_ns(tree, call.callee)
    if client_ns is None or server_ns is None:
        return None
    transit_ns = client_ns - server_ns
    if transit_ns < -tree.epsilon_ns(node, call.callee):
        return None
    return FirstContent(node.span, call.callee.span, server_ns, client_ns, max(0, transit_ns))


def _client_ns(node: Node) -> int | None:
    """From when the request was sent; the span's start where that has no place."""
    content_ns = _content_ns(node)
    if content_ns is None:
        return None
    placed = node.facts.outer if node.facts is not None else ()
    starts = {label: start for start, _, label, _ in reversed(placed) if label in SENDING}
    sent_ns = next((starts[label] for label in SENDING if label in starts), node.start_ns)
    return content_ns - sent_ns


def _content_ns(node: Node) -> int | None:
    """When the caller had the first content; an attempt may leave that to its operation."""
    facts = node.facts
    if facts is None or facts.first_content_ns is not None:
        return None if facts is None else facts.first_content_ns
    whole = node.parent.facts if node.parent is not None else None
    if whole is None or facts.attempt is None or node.remote or node.foreign:
        return None
    at_ns = whole.first_content_ns
    return at_ns if at_ns is not None and node.start_ns <= at_ns <= node.end_ns else None


def _server_ns(tree: Tree, callee: Node) -> int | None:
    """From the callee's start to its first output; None where no such edge was measured.

    The callee's own edge counts, else the first one of what it did in its own process.
    """
    is_gateway = callee.facts is not None and callee.facts.is_gateway
    edges = []
    for node in callee.local_tree():
        facts = node.facts
        if facts is None or facts.failed or node.domain != callee.domain:
            continue
        at_ns = facts.first_output_ns
        if at_ns is None or not _is_measured(tree, node, facts):
            continue
        if not facts.total_ns(SectionLabel.PREFILL):
            if not (is_gateway or facts.is_gateway):
                continue
            at_ns += first_extension_ns(node)
        if node is callee:
            return at_ns - callee.start_ns
        edges.append(at_ns)
    return min(edges) - callee.start_ns if edges else None


def _is_measured(tree: Tree, holder: Node, facts: Facts) -> bool:
    """Whether the edge has a place of its own, or durations that leave nothing open give it one."""
    for _, end_ns, label, evidence in facts.outer:
        if label in FIRST_OUTPUT and end_ns == facts.first_output_ns:
            return evidence is Evidence.MEASURED
    if facts.overflow_ns or not all(child.remote for child in holder.children):
        return False
    told_ns = sum(facts.totals_ns.values())
    return holder.end_ns - holder.start_ns - told_ns <= tree.epsilon_ns(holder)
