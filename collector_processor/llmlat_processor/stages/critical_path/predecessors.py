"""Who is known to have waited for whom: links, tool calls, and where the edge leaves.

chat  ├──────▼───────┤          ▼ the tool call's arguments are complete
tool          ├────────┤        the edge leaves the chat there, though it goes on
chat                    ├───┤   the next chat of the same agent waited for the tool
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from llmlat_processor.model import Attributes
from llmlat_processor.stages.critical_path.tree import Before, Node, Tree
from llmlat_semconv import attributes as names
from llmlat_semconv import events
from llmlat_semconv.values import FindingKind, LinkRelationship, OperationName

PRECEDES = frozenset((LinkRelationship.FOLLOWS, LinkRelationship.RETRY_OF))


class EdgeClaim(NamedTuple):
    """Somebody says that one operation waited for another.

    The edge leaves `before` at an instant; where that is at or after the last content, all of
    `before` was waited for that had ended by then.
    """

    before: Node
    at_ns: int
    after: Node

    def leaves_ns(self, successor: Node) -> int:
        """Where the edge leaves, seen from the sibling that it leads to."""
        before = self.before
        if before.last_content_ns <= self.at_ns <= successor.start_ns:
            return min(before.end_ns, successor.start_ns)
        return min(self.at_ns, before.end_ns)


def find_predecessors(tree: Tree) -> None:
    """Fill `before` of every node of a tree whose calls are known."""
    claims = [*_linked(tree), *_tool_calls(tree)]
    if claims:
        _set_predecessors(tree, claims)


def relationship(attributes: Attributes) -> str:
    """What a link says the linked span is to this one; empty where it does not say."""
    said = attributes.get(names.LLMLAT_LINK_RELATIONSHIP) or attributes.get(
        names.GEN_AI_ATTRIBUTION_LINK_TYPE
    )
    return said if isinstance(said, str) else ""


def _linked(tree: Tree) -> Iterator[EdgeClaim]:
    linking = [node for node in tree.order if node.span.links]
    by_id = {node.span.span_id: node for node in tree.order} if linking else {}
    for node in linking:
        for link in node.span.links:
            if link.trace_id and link.trace_id != node.span.trace_id:
                continue
            before = by_id.get(link.span_id)
            if before is not None and relationship(link.attributes) in PRECEDES:
                yield EdgeClaim(before, before.end_ns, node)


def _tool_calls(tree: Tree) -> Iterator[EdgeClaim]:
    """The chat that asked -> the tool -> the next chat of the same agent."""
    tools = [node for node in tree.order if _is_asked_tool(node)]
    if not tools:
        return
    chats: dict[Node | None, list[Node]] = {}
    asked: dict[str, tuple[Node, int]] = {}
    for node in tree.order:
        if node.facts is not None and node.facts.is_inference:
            chats.setdefault(_agent(node), []).append(node)
            asked.update(_asked(node))
    for own in chats.values():
        own.sort(key=lambda chat: (chat.start_ns, chat.span.span_id))
    ends = {agent: sorted(own, key=lambda chat: chat.end_ns) for agent, own in chats.items()}
    for tool in tools:
        agent = _agent(tool)
        call_id = tool.facts.tool_call_id if tool.facts is not None else ""
        asker = asked.get(call_id) or _last_ended(ends.get(agent, []), tool.start_ns)
        if asker is not None:
            yield EdgeClaim(*asker, tool)
        following = _first_started(chats.get(agent, []), tool.end_ns)
        if following is not None:
            yield EdgeClaim(tool, tool.end_ns, following)


def _is_asked_tool(node: Node) -> bool:
    facts = node.facts
    return (
        facts is not None
        and facts.operation == OperationName.EXECUTE_TOOL
        and bool(facts.tool_call_id)
    )


def _agent(node: Node) -> Node | None:
    """The nearest agent above, else the root."""
    top = None
    for ancestor in node.ancestors():
        if ancestor.facts is not None and ancestor.facts.is_agent:
            return ancestor
        top = ancestor
    return top


def _asked(chat: Node) -> Iterator[tuple[str, tuple[Node, int]]]:
    for event in chat.span.events:
        call_id = event.attributes.get(names.GEN_AI_TOOL_CALL_ID)
        if event.name == events.LLMLAT_TOOL_CALL and isinstance(call_id, str):
            yield call_id, (chat, placed(event.at_ns, chat))


def placed(at_ns: int, node: Node) -> int:
    """A wall stamp inside a span, on the clock that the span is placed on."""
    return node.start_ns + at_ns - node.span.start_ns


def _last_ended(chats: list[Node], at_ns: int) -> tuple[Node, int] | None:
    position = bisect_right([chat.end_ns for chat in chats], at_ns)
    return (chats[position - 1], chats[position - 1].end_ns) if position else None


def _first_started(chats: list[Node], at_ns: int) -> Node | None:
    position = bisect_left([chat.start_ns for chat in chats], at_ns)
    return chats[position] if position < len(chats) else None


def _set_predecessors(tree: Tree, claims: Iterable[EdgeClaim]) -> None:
    """Lift each edge to siblings, drop cycles, keep what the clock allows."""
    lifted: dict[tuple[Node, Node], Before] = {}
    for claim in claims:
        chains = _siblings_above(claim.before, claim.after)
        if chains is None:
            continue
        chain, successor = chains
        inner = chain[-1]
        leaves_ns = claim.leaves_ns(successor) if inner is claim.before else inner.until_ns
        key = (chain[0], successor)
        if key not in lifted or lifted[key].at_ns < leaves_ns:
            lifted[key] = Before(leaves_ns, chain)
    for one, other in _in_cycles(lifted):
        del lifted[one, other]
        tree.find(FindingKind.DEPENDENCY_CYCLE, other, None, one)
    for (_, successor), edge in lifted.items():
        if edge.at_ns <= successor.start_ns + tree.epsilon_ns(successor):
            successor.before = [*(successor.before or ()), edge]
    for node in tree.order:
        if node.before is not None:
            node.before.sort(key=lambda edge: (-edge.at_ns, edge.target.span.span_id))


def _siblings_above(before: Node, after: Node) -> tuple[tuple[Node, ...], Node] | None:
    """The chain from a sibling down to `before`, and the sibling above `after`.

    A predecessor in another clock domain is entered at its call in this one.
    """
    up_before = [before, *before.ancestors()]
    up_after = [after, *after.ancestors()]
    while up_before and up_after and up_before[-1] is up_after[-1]:
        up_before.pop()
        up_after.pop()
    if not up_before or not up_after:
        return None  # one is the other's ancestor, or they share no root
    if up_before[-1].parent is None or up_after[-1].parent is not up_before[-1].parent:
        return None
    if up_before[-1].foreign or up_after[-1].foreign:
        return None
    chain = [up_before.pop()]
    while up_before and not (up_before[-1].foreign or up_before[-1].remote):
        chain.append(up_before.pop())
    return tuple(chain), up_after[-1]


def _in_cycles(edges: dict[tuple[Node, Node], Before]) -> list[tuple[Node, Node]]:
    """Edges left after peeling off, again and again, nodes without one way in or out."""
    remaining = set(edges)
    while True:
        starts = {one for one, _ in remaining}
        ends = {other for _, other in remaining}
        looping = {edge for edge in remaining if edge[0] in ends and edge[1] in starts}
        if looping == remaining:
            return sorted(remaining, key=lambda edge: [node.span.span_id for node in edge])
        remaining = looping
