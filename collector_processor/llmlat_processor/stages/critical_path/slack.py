"""How much longer an operation off the path could have been without moving the end.

S  ├──────────────────────────┤
t1   ├──────────────┤                on the path
t2   ├─────────┤╌╌╌╌                 slack: up to where t1 held the next one back
L2                   ├────────┤      waits for whatever had ended
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Set as AbstractSet
from operator import attrgetter

from llmlat_processor.stages.critical_path.tree import Node, Tree


def slacks_ns(tree: Tree, below: list[Node], on_path: AbstractSet[Node]) -> dict[Node, int]:
    """Slack of every joined operation off the path, in nanoseconds; a lower bound, never < 0.

    A sibling that started after an operation had ended is held to have waited for it, unless
    it has explicit predecessors: then only these and what lies wholly in between. What must
    not move is where the path, or a sibling's own slack, says so.
    """
    slack: dict[Node, int] = {}
    for parent in below:
        callee = parent.call.callee if parent.call is not None else None
        if callee is not None and callee not in on_path:
            slack[callee] = slack.get(parent, 0)
        if not all(map(on_path.__contains__, parent.joined)):
            _among_siblings(tree, parent, on_path, slack)
    return slack


def _among_siblings(
    tree: Tree, parent: Node, on_path: AbstractSet[Node], slack: dict[Node, int]
) -> None:
    epsilon = tree.epsilon_ns(parent)
    siblings = sorted(parent.joined, key=attrgetter("start_ns", "until_ns", "span.span_id"))
    bindings = _binding_ends(siblings, epsilon)
    least = max(node.until_ns for node in siblings) + slack.get(parent, 0)
    starts = [node.start_ns for node in siblings]
    limits: list[int] = [least] * (len(siblings) + 1)
    held_by: dict[Node, int] = {}
    for position in range(len(siblings) - 1, -1, -1):
        node = siblings[position]
        first_after = bisect_left(starts, node.until_ns - epsilon, lo=position + 1)
        own = min(limits[first_after], held_by.get(node, least), least) - node.until_ns
        room = 0 if node in on_path else max(0, own)
        if node not in on_path:
            slack[node] = room
        latest = bindings[node] + room
        limits[position] = limits[position + 1]
        if node.before is None:
            limits[position] = min(limits[position], latest)
        else:
            _hold(node, latest, siblings, held_by)


def _binding_ends(siblings: list[Node], epsilon: int) -> dict[Node, int]:
    """Per sibling, in start order: the latest end among those before it that had ended."""
    bindings: dict[Node, int] = {}
    ended = sorted(siblings, key=attrgetter("until_ns"))
    position = 0
    latest: int | None = None
    for node in siblings:
        while position < len(ended) and ended[position].until_ns <= node.start_ns + epsilon:
            if ended[position] in bindings:
                latest = ended[position].until_ns
            position += 1
        bindings[node] = node.start_ns if latest is None else latest
    return bindings


def _hold(node: Node, latest: int, siblings: list[Node], held_by: dict[Node, int]) -> None:
    """An explicit edge holds its predecessor and whatever lies wholly in between."""
    edges = node.before or ()
    earliest = min(edge.at_ns for edge in edges)
    awaited = {edge.chain[0] for edge in edges}
    binding = max((other.until_ns for other in siblings if other in awaited), default=node.start_ns)
    for other in siblings:
        between = other.start_ns >= earliest and other.until_ns <= node.start_ns
        if other in awaited or between:
            limit = max(binding, other.until_ns) if between else binding
            held_by[other] = min(held_by.get(other, limit), max(limit, latest))
