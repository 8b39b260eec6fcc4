"""Tokens that existed while the client had none, and second opinions on what an engine did."""

from __future__ import annotations

from itertools import islice
from typing import Final

from llmlat_processor.stages.critical_path.calls import report_disagreement
from llmlat_processor.stages.critical_path.tree import Call, Node, Tree
from llmlat_semconv.values import Evidence, FindingKind, SectionLabel

HELD_FLOOR_NS: Final = 5_000_000
"""Decode may exceed the client's stream by this much, or a twentieth, before it was held."""

MAX_HOPS: Final = 256
"""Operations that are looked at between a client and its engine."""

STREAMING: Final = (SectionLabel.FIRST_CONTENT, SectionLabel.STREAM)


def note_held(tree: Tree, node: Node, call: Call, tolerance_ns: int) -> None:
    """Tokens existed for longer than the client was seen to receive them: something held them."""
    facts = node.facts
    if facts is None or call.callee is None or not facts.total_ns(SectionLabel.STREAM):
        return
    behind = _behind(call.callee)
    engine = next((node for node in behind if _total_ns(node, SectionLabel.DECODE)), None)
    if engine is None:
        return
    decode = _total_ns(engine, SectionLabel.DECODE)
    held = decode - sum(facts.total_ns(label) for label in STREAMING)
    floor = max(HELD_FLOOR_NS, decode // 20) + tolerance_ns
    if held > floor:
        call.held_ns = held
        hops = [hop for hop in behind if hop.facts is not None and hop.facts.relay_hold_ns > 0]
        tree.find(FindingKind.STREAM_HELD, node, held, engine, *hops, epsilon_ns=floor)


def _behind(callee: Node) -> list[Node]:
    """The hops of an exchange, down to the engine: operations with facts, the nearest first.

    At most so many: a chain of calls that is longer is no gateway's.
    """
    hops: list[Node] = []
    below: Node | None = callee
    while below is not None and len(hops) < MAX_HOPS:
        tree, below = list(islice(below.local_tree(), MAX_HOPS)), None
        hops += [node for node in tree if node.facts is not None]
        calls = [node.call for node in tree if node.call is not None and not node.call.rejected]
        below = next((call.callee for call in calls if call.callee is not None), None)
    return hops


def _total_ns(node: Node, label: SectionLabel) -> int:
    return node.facts.total_ns(label) if node.facts is not None else 0


def compare_reported(tree: Tree, node: Node) -> None:
    """What the peer reported beside a callee that was measured: compared, never added."""
    facts, call = node.facts, node.call
    if facts is None or call is None or call.callee is None or not facts.reported:
        return
    behind = _behind(call.callee)
    for label, (size, evidence) in facts.reported.items():
        engine = next((hop for hop in behind if _total_ns(hop, label)), None)
        if engine is None:
            continue
        measured = _total_ns(engine, label)
        if not (evidence is Evidence.BOUNDED and measured <= size):
            report_disagreement(tree, node, measured, size, engine)
