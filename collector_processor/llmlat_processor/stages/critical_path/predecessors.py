"""Who is known to have waited for whom: links, tool calls, and where the edge leaves.

    chat  ├──────▼───────┤          ▼ the tool call's arguments are complete
    tool          ├────────┤        the edge leaves the chat there, though it goes on
    chat                    ├───┤   the next chat of the same agent waited for the tool

What nobody said is not an edge of this kind: it is inferred by the walk, from stamps.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter, itemgetter
from typing import NamedTuple

from llmlat_processor.relations import PRECEDES, relationship
from llmlat_processor.stages.critical_path.tree import Before, Node, Tree
from llmlat_semconv import attributes as names
from llmlat_semconv import events
from llmlat_semconv.values import FindingKind, OperationName

_INSTANT = itemgetter(0)
_START = attrgetter("start_ns")
_END = attrgetter("end_ns")
_START_THEN_ID = attrgetter("start_ns", "span.span_id")
_END_THEN_ID = attrgetter("end_ns", "span.span_id")


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
    turns: dict[Node | None, _Turns] = {}
    agents = _agents(tree)
    for node in tree.order:
        if node.facts is not None and node.facts.is_inference:
            turns.setdefault(agents[node], _Turns()).add(node)
    for own_turns in turns.values():
        own_turns.sort()
    for tool in tools:
        own = turns.get(agents[tool])
        if own is not None:
            yield from own.edges_of(tool)


def _is_asked_tool(node: Node) -> bool:
    facts = node.facts
    return (
        facts is not None
        and facts.operation == OperationName.EXECUTE_TOOL
        and bool(facts.tool_call_id)
    )


def _agents(tree: Tree) -> dict[Node, Node | None]:
    """For each operation the nearest agent above it, else its root."""
    agents: dict[Node, Node | None] = {}
    for node in tree.order:  # parents first
        parent = node.parent
        if parent is None:
            agents[node] = None
        elif parent.facts is not None and parent.facts.is_agent:
            agents[node] = parent
        else:
            agents[node] = parent if parent.parent is None else agents[parent]
    return agents


class _Turns:
    """The chats of one agent, by when they end, start and ask for tools."""

    def __init__(self) -> None:
        self._chats: list[Node] = []
        self._asked: dict[str, list[tuple[int, bytes, Node]]] = {}
        self._by_start: list[Node] = []
        self._by_end: list[Node] = []

    def add(self, chat: Node) -> None:
        """One more chat, and the tool calls in it whose arguments were complete."""
        self._chats.append(chat)
        for event in chat.span.events:
            call_id = event.attributes.get(names.GEN_AI_TOOL_CALL_ID)
            if event.name == events.LLMLAT_TOOL_CALL and isinstance(call_id, str):
                asked = self._asked.setdefault(call_id, [])
                asked.append((placed(event.at_ns, chat), chat.span.span_id, chat))

    def sort(self) -> None:
        """Put them in order, once all are there."""
        self._by_start = sorted(self._chats, key=_START_THEN_ID)
        self._by_end = sorted(self._chats, key=_END_THEN_ID)
        for asked in self._asked.values():
            asked.sort(key=itemgetter(0, 1))

    def edges_of(self, tool: Node) -> Iterator[EdgeClaim]:
        """From the chat that asked for a tool, and to the chat that waited for it.

        Small servers name calls alike in every turn, so of several the last one before the tool
        counts. Without an event, the chat that ended last before the tool is held to have asked.
        """
        call_id = tool.facts.tool_call_id if tool.facts is not None else ""
        asked = self._asked.get(call_id)
        if asked is not None:
            before = bisect_right(asked, tool.start_ns, key=_INSTANT)
            if before:
                at_ns, _, chat = asked[before - 1]
                yield EdgeClaim(chat, at_ns, tool)
        else:
            ended = bisect_right(self._by_end, tool.start_ns, key=_END)
            if ended:
                yield EdgeClaim(self._by_end[ended - 1], self._by_end[ended - 1].end_ns, tool)
        following = bisect_left(self._by_start, tool.end_ns, key=_START)
        if following < len(self._by_start):
            yield EdgeClaim(tool, tool.end_ns, self._by_start[following])


def placed(at_ns: int, node: Node) -> int:
    """A wall stamp of a span's event, on the clock that the span is placed on, and inside it."""
    return min(max(node.start_ns + at_ns - node.span.start_ns, node.start_ns), node.end_ns)


def _set_predecessors(tree: Tree, claims: Iterable[EdgeClaim]) -> None:
    """Lift each edge to siblings, drop cycles, keep what the clock allows."""
    lifted: dict[tuple[Node, Node], Before] = {}
    for claim in claims:
        chains = _siblings_above(tree, claim.before, claim.after)
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
            if successor.before is None:
                successor.before = []
            successor.before.append(edge)
    for node in tree.order:
        if node.before is not None:
            node.before.sort(key=_latest_then_longest)


def _latest_then_longest(edge: Before) -> tuple[int, int, bytes]:
    """The order in which the walk takes what ended together: the earlier start, then the id."""
    sibling = edge.chain[0]
    return (-edge.at_ns, sibling.start_ns, sibling.span.span_id)


def _siblings_above(tree: Tree, before: Node, after: Node) -> tuple[tuple[Node, ...], Node] | None:
    """The chain from a sibling down to `before`, and the sibling above `after`.

    A predecessor in another clock domain is entered at its call in this one.
    """
    up_before = [before, *before.ancestors()]
    up_after = [after, *after.ancestors()]
    if not tree.afford(len(up_before) + len(up_after)):
        return None
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


def _in_cycles(edges: Mapping[tuple[Node, Node], Before]) -> list[tuple[Node, Node]]:
    """Edges inside a strongly connected component: they wait for each other.

    Kosaraju's algorithm, with stacks: an order by finishing, then components against the edges.
    """
    if all(one.start_ns < other.start_ns for one, other in edges):
        return []  # nobody comes back to an earlier start
    after: dict[Node, list[Node]] = {}
    before: dict[Node, list[Node]] = {}
    for one, other in edges:
        after.setdefault(one, []).append(other)
        before.setdefault(other, []).append(one)
    component: dict[Node, Node] = {}
    for root in reversed(_by_finishing(after)):
        stack = [root] if root not in component else []
        while stack:
            node = stack.pop()
            if node not in component:
                component[node] = root
                stack.extend(before.get(node, ()))
    looping = [(one, other) for one, other in edges if component[one] is component[other]]
    return sorted(looping, key=lambda edge: [(n.span.span_id, n.span.kind) for n in edge])


def _by_finishing(after: Mapping[Node, list[Node]]) -> list[Node]:
    finished: dict[Node, None] = {}
    seen: set[Node] = set()
    for root in after:
        stack = [(root, iter(after[root]))] if root not in seen else []
        seen.add(root)
        while stack:
            node, rest = stack[-1]
            following = next((other for other in rest if other not in seen), None)
            if following is None:
                finished[node] = None
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(after.get(following, ()))))
    return list(finished)
