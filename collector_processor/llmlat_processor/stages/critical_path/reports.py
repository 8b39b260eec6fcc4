"""What an engine says of itself, told of the call that it answered: gateways only pass it on.

    app       chat ────────────────────────────   prefill, decode: reported, in the last chunk
    gateway     └ gateway ─────────────────────
    gateway         └ chat ─────────────────      nobody else answers this one: it is about this

Beside a gateway that was measured the report would be nobody's: the client's call has an account
of its own already, and the gateway's call upstream has none (ADR 014).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from llmlat_processor.facts import ENGINE_LABELS
from llmlat_processor.stages.critical_path.tree import Node, Tree
from llmlat_semconv.values import Evidence

MAX_HOPS: Final = 64
"""Calls between a client and its engine; a longer chain is no chain of gateways."""

MAX_OPERATIONS: Final = 256
"""Operations of one hop that are looked at; among more, nobody says which brought the answer."""


def hand_down_reports(tree: Tree) -> None:
    """Give each report to the innermost call that its engine answered, where there is one."""
    for node in tree.order:  # parents first
        facts = node.facts
        if facts is None or ENGINE_LABELS.isdisjoint(facts.reported):
            continue
        *above, innermost = _chain(node)
        if not above or innermost.facts is None:
            continue
        told = {label: said for label, said in facts.reported.items() if label in ENGINE_LABELS}
        innermost.facts.reported = {**told, **innermost.facts.reported}
        if any(evidence is Evidence.BOUNDED for _, evidence in told.values()):
            for each in above:
                if each.call is not None:
                    each.call.has_bounds_within = True


def _chain(node: Node) -> Sequence[Node]:
    """Calls each of which waited for the next, the last for nobody seen; else the call alone."""
    chain = [node]
    while len(chain) <= MAX_HOPS:
        call = chain[-1].call
        if call is None or (call.callees and call.callee is None):
            break
        if not call.split and call.callee is None:
            return chain
        found = list(_next_calls(chain[-1]))
        if len(found) != 1 or _has_own_report(found[0]):
            break
        chain.append(found[0])
    return chain[:1]


def _next_calls(node: Node) -> Iterator[Node]:
    """The calls that may have brought what a call got: its attempts, or those of its callee."""
    call = node.call
    if call is None:
        return
    if call.split:
        yield from (child for child in node.children if _is_attempt(child) and not _failed(child))
        return
    hop = list(islice(call.callee.local_tree(), MAX_OPERATIONS + 1)) if call.callee else []
    if len(hop) > MAX_OPERATIONS or any(_is_engine(each) for each in hop):
        return
    yield from (each for each in hop if each is not call.callee and _may_have_brought_it(each))


def _may_have_brought_it(node: Node) -> bool:
    """Whether an operation of a hop is an inference that went well."""
    is_inference = node.facts is not None and node.facts.is_inference
    return node.call is not None and is_inference and not _failed(node)


def _is_attempt(node: Node) -> bool:
    return node.facts is not None and node.facts.attempt is not None and not node.remote


def _failed(node: Node) -> bool:
    return node.facts is not None and (node.facts.failed or node.facts.lost)


def _is_engine(node: Node) -> bool:
    """An engine that was measured needs no report."""
    return node.facts is not None and not ENGINE_LABELS.isdisjoint(node.facts.totals_ns)


def _has_own_report(node: Node) -> bool:
    return node.facts is not None and not ENGINE_LABELS.isdisjoint(node.facts.reported)
