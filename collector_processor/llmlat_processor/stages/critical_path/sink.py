"""Where the path to the first useful content ends, and from where it is walked.

    (1) the app says so (an event of its own)
    (2) the root's own first content
    (3) the earliest first content of a streamed inference that no tool, no retrieval and no
        second agent stands above

Of these the first that holds; else the path is absent, and says why.
"""

from __future__ import annotations

from dataclasses import dataclass

from llmlat_processor.facts import Facts
from llmlat_processor.stages.critical_path.predecessors import placed
from llmlat_processor.stages.critical_path.tree import Before, Node
from llmlat_processor.stages.critical_path.walk import Extent, Frame, frames_down
from llmlat_semconv import events
from llmlat_semconv.values import OperationName, TtftAbsence

_HIDING = (OperationName.EXECUTE_TOOL, OperationName.RETRIEVAL)


@dataclass(frozen=True, slots=True)
class Sink:
    """An operation, the instant of the first useful content in it, and who said so."""

    node: Node
    at_ns: int
    by_app: bool = False


def subtree(root: Node) -> list[Node]:
    """A node and everything below it, parents first."""
    order = [root]
    for node in order:
        order.extend(node.children)
    return order


def find_sink(root: Node, below: list[Node]) -> Sink | TtftAbsence:
    """The sink of one root's path to the first useful content, or the first reason for none."""
    said = [
        Sink(node, placed(event.at_ns, node), by_app=True)
        for node in below
        for event in node.span.events
        if event.name == events.LLMLAT_FIRST_CONTENT
    ]
    if said:
        return _nearest(root, said)
    own = _shown(root.facts)
    if own is not None:
        return Sink(root, own)
    shown_to_user = [node for node in _unhidden(below) if node.facts and node.facts.is_inference]
    candidates = [sink for sink in map(_sink_of, shown_to_user) if sink is not None]
    if candidates:
        return _nearest(root, candidates)
    return _absence([node.facts for node in shown_to_user if node.facts is not None])


def _nearest(root: Node, sinks: list[Sink]) -> Sink:
    """The earliest on the root's clock; where none is, the earliest that can be told without."""
    near = [sink for sink in sinks if sink.node.domain == root.domain]
    return min(near or sinks, key=_earliest)


def _earliest(sink: Sink) -> tuple[int, bytes]:
    """By the time that passed since a root began: who was called began when it was called, at best.

    That needs no offset between clocks.
    """
    at_ns, node = sink.at_ns, sink.node
    while node.parent is not None:
        if node.foreign:
            at_ns += node.parent.start_ns - node.start_ns
        node = node.parent
    return (at_ns - node.start_ns, sink.node.span.span_id)


def _shown(facts: Facts | None) -> int | None:
    if facts is None or facts.first_is_tool_call:
        return None
    return facts.first_content_ns


def _unhidden(below: list[Node]) -> list[Node]:
    """Operations whose content reaches the user: under no tool, retrieval or second agent.

    Nor under an inference that has shown content itself: it shows the same, to somebody nearer.
    """
    agents: dict[Node, int] = {}  # agents above an operation; absent where it is hidden
    for node in below:  # parents first
        parent = node.parent
        if parent is None or node is below[0]:
            agents[node] = 0
            continue
        facts = parent.facts
        count = agents.get(parent)
        if count is None:
            continue
        if facts is None:
            agents[node] = count
        elif count + facts.is_agent <= 1 and not (
            facts.operation in _HIDING or (facts.is_inference and _shown(facts) is not None)
        ):
            agents[node] = count + facts.is_agent
    return list(agents)


def _sink_of(node: Node) -> Sink | None:
    at_ns = _shown(node.facts)
    return None if at_ns is None else Sink(node, at_ns)


def _absence(inferences: list[Facts]) -> TtftAbsence:
    if not inferences:
        return TtftAbsence.NO_INFERENCE
    streamed = [facts for facts in inferences if facts.streamed]
    if not streamed:
        return TtftAbsence.NOT_STREAMED
    if any(facts.first_is_tool_call for facts in streamed):
        return TtftAbsence.ONLY_TOOL_CALLS
    return TtftAbsence.CHUNK_ONLY


def sink_frames(root: Node, sink: Sink) -> list[Frame]:
    """Frames from the first span of the sink's clock domain down to the sink.

    Nothing else that is open at the sink is a predecessor: it is hidden behind the content.
    """
    top = _domain_root(sink.node, root)
    frames = frames_down(_between(top, sink.node), sink.at_ns, Extent.FIRST)
    if sink.by_app:
        content = _content_before(sink)
        if content is not None:
            frames[-1].pending = content
        return frames
    attempt = _open_attempt(sink.node, sink.at_ns)
    if attempt is not None:
        chain = [*_between(top, sink.node), attempt]
        return frames_down(chain, sink.at_ns, Extent.FIRST)
    return frames


def _domain_root(node: Node, root: Node) -> Node:
    """The first operation on the way up whose parent has another clock, wherever it is placed."""
    while node is not root and node.parent is not None and node.domain == node.parent.domain:
        node = node.parent
    return node


def _between(top: Node, bottom: Node) -> list[Node]:
    chain = [bottom]
    for above in bottom.ancestors():
        if chain[-1] is top:
            break
        chain.append(above)
    return chain[::-1]


def _open_attempt(node: Node, at_ns: int) -> Node | None:
    attempts = [
        child
        for child in node.children
        if child.facts is not None
        and child.facts.attempt is not None
        and not child.foreign
        and not child.facts.lost
        and child.start_ns <= at_ns <= child.end_ns
    ]
    return max(attempts, key=lambda a: (a.start_ns, a.span.span_id), default=None)


def _content_before(sink: Sink) -> Before | None:
    """The streamed inference below the app's mark with the latest content before it."""
    shown = []
    for node in subtree(sink.node)[1:]:
        # Of any kind: that the app showed it is what the mark says.
        at_ns = node.facts.first_content_ns if node.facts is not None else None
        if at_ns is not None and at_ns <= sink.at_ns and _same_clock(node, sink.node):
            shown.append((at_ns, node.span.span_id, node))
    if not shown:
        return None
    at_ns, _, node = max(shown)
    chain = _between(sink.node, node)[1:]
    attempt = _open_attempt(node, at_ns)
    return Before(at_ns, tuple([*chain, attempt] if attempt is not None else chain))


def _same_clock(node: Node, top: Node) -> bool:
    while node is not top and node.parent is not None:
        if node.foreign or node.remote:
            return False
        node = node.parent
    return True
