"""Tokens that existed while the client had none, and second opinions on what an engine did."""

from __future__ import annotations

from typing import Final

from llmlat_processor.stages.critical_path.calls import report_disagreement
from llmlat_processor.stages.critical_path.tree import Call, Node, Tree
from llmlat_semconv.values import Evidence, FindingKind, SectionLabel

HELD_FLOOR_NS: Final = 5_000_000
"""Decode may exceed the client's stream by this much, or a twentieth, before it was held."""

STREAMING: Final = (SectionLabel.FIRST_CONTENT, SectionLabel.STREAM)


def note_held(tree: Tree, node: Node, call: Call, tolerance_ns: int) -> None:
    """Tokens existed for longer than the client was seen to receive them: something held them."""
    facts = node.facts
    if facts is None or not facts.total_ns(SectionLabel.STREAM):
        return
    engine, gateways = _engine_behind(call)
    if engine is None or engine.facts is None:
        return
    decode = engine.facts.total_ns(SectionLabel.DECODE)
    held = decode - sum(facts.total_ns(label) for label in STREAMING)
    floor = max(HELD_FLOOR_NS, decode // 20) + tolerance_ns
    if held > floor:
        call.held_ns = held
        holding = [g for g in gateways if g.facts is not None and g.facts.relay_hold_ns > 0]
        tree.find(FindingKind.STREAM_HELD, node, held, engine, *holding, epsilon_ns=floor)


def _engine_behind(call: Call) -> tuple[Node | None, list[Node]]:
    """The engine that measured `decode` at the end of the exchanges, and the hops before it."""
    hops: list[Node] = []
    callee = call.callee
    while callee is not None:
        below = None
        for node in callee.local_tree():
            if node.facts is not None and node.facts.total_ns(SectionLabel.DECODE):
                return node, hops
            hops.append(node)
            if node.call is not None and not node.call.rejected and below is None:
                below = node.call.callee
        callee = below
    return None, hops


def compare_reported(tree: Tree, node: Node) -> None:
    """What the peer reported beside a callee that was measured: compared, never added."""
    facts, call = node.facts, node.call
    if facts is None or call is None or call.callee is None or not facts.reported:
        return
    engine, _ = _engine_behind(call)
    if engine is None or engine.facts is None:
        return
    for label, (size, evidence) in facts.reported.items():
        measured = engine.facts.total_ns(label)
        if measured and not (evidence is Evidence.BOUNDED and measured <= size):
            report_disagreement(tree, node, measured, size, engine)
