"""How much longer an operation off the path could have been without moving the end.

    S   ├──────────────────────────┤
    t1    ├──────────────┤                on the path
    t2    ├─────────┤╌╌╌╌                 slack: up to where t1 held the next one back
    L2                    ├────────┤      waits for whatever had ended

A lower bound: where the data leaves open who waited, nobody may be pushed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Set as AbstractSet
from operator import attrgetter

from llmlat_processor.stages.critical_path.tree import Node, Tree

_BY_START = attrgetter("start_ns", "until_ns", "span.span_id")
_BY_END = attrgetter("until_ns")


def slacks_ns(tree: Tree, below: list[Node], on_path: AbstractSet[Node]) -> dict[Node, int]:
    """Slack of every joined operation off the path, in nanoseconds; a lower bound, never < 0.

    A sibling that started after an operation had ended is held to have waited for it; what it
    can wait for without moving anything is where its explicit predecessors, else all that had
    ended, held it back, and its own slack.
    """
    slack: dict[Node, int] = {}
    for parent in below:
        if parent.leaf:
            continue
        callee = parent.call.callee if parent.call is not None else None
        if callee is not None and callee not in on_path:
            slack[callee] = slack.get(parent, 0)
        if not all(map(on_path.__contains__, parent.joined)):
            _among_siblings(tree, parent, on_path, slack)
    return slack


def _among_siblings(
    tree: Tree, parent: Node, on_path: AbstractSet[Node], slack: dict[Node, int]
) -> None:
    """From the last started to the first: nobody may push a later one past its own room.

    `limits[i]` is the latest instant that every sibling from the i-th on can still wait for.
    """
    epsilon = tree.epsilon_ns(parent)
    siblings = sorted(parent.joined, key=_BY_START)
    bindings = _binding_ends(siblings, epsilon)
    least = max(node.until_ns for node in siblings) + slack.get(parent, 0)
    starts = [node.start_ns for node in siblings]
    limits: list[int] = [least] * (len(siblings) + 1)
    stated = list(limits)  # of those with explicit predecessors, who wait for few
    earliest = min((_last_edge(node) for node in siblings if node.before), default=least)
    spare: dict[Node, int] = {}
    for position in range(len(siblings) - 1, -1, -1):
        node = siblings[position]
        room = 0
        if node not in on_path:
            after = bisect_left(starts, node.until_ns - epsilon, lo=position + 1)
            limit = min(limits[after], stated[after] if node.start_ns >= earliest else least)
            room = min(limit - node.until_ns, spare.get(node, least))
            slack[node] = room = max(0, room)
        latest = bindings[node] + room
        own, other = (stated, limits) if node.before else (limits, stated)
        own[position] = min(own[position + 1], latest)
        other[position] = other[position + 1]
        for edge in node.before or ():  # the edge may leave before the predecessor's end
            waited = edge.chain[0]
            spare[waited] = min(spare.get(waited, least), latest - edge.at_ns)


def _last_edge(node: Node) -> int:
    return max(edge.at_ns for edge in node.before or ())


def _binding_ends(siblings: list[Node], epsilon: int) -> dict[Node, int]:
    """Per sibling, in start order: the latest instant that it is known to have waited for.

    An explicit edge says it; else it is the latest end among those before it that had ended.
    """
    bindings: dict[Node, int] = {}
    ended = sorted(siblings, key=_BY_END)
    position = 0
    latest: int | None = None
    for node in siblings:
        while position < len(ended) and ended[position].until_ns <= node.start_ns + epsilon:
            if ended[position] in bindings:
                latest = ended[position].until_ns
            position += 1
        waited = _last_edge(node) if node.before else latest
        bindings[node] = node.start_ns if waited is None else waited
    return bindings
