"""Jaeger's clock skew adjuster, as its query service computes it: an oracle for tests.

Restated from jaegertracing/jaeger 8498073ff809 (jaegerquery/internal/adjuster/clockskew.go), with
a loop for its recursion. A span of another host than its parent's that does not lie inside it is
moved there, into the middle, and all of that host that hangs under it by as much. It differs from
ours on purpose: stamps are rewritten, by a guess, whoever waited for whom.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

DUPLICATE = "duplicate span IDs; skipping clock skew adjustment"


def missing_parent(parent: str) -> str:
    """Said of a span whose parent is not in the trace; it is taken for a root."""
    return f"parent span ID={parent} is not in the trace; skipping clock skew adjustment"


def exceeded(most: int, delta: int) -> str:
    """Said where a span would have to be moved further than is allowed."""
    return (
        f"max clock skew adjustment delta of {most} exceeded; "
        f"not applying calculated delta of {delta}"
    )


def disabled(delta: int) -> str:
    """Said where nothing may be moved, which is the default."""
    return f"clock skew adjustment disabled; not applying calculated delta of {delta}"


def moved_by(delta: int) -> str:
    """Said of a span that was moved."""
    return f"This span's timestamps were adjusted by {delta}"


@dataclass(frozen=True, slots=True)
class SkewSpan:
    """What the adjuster looks at; stamps in any unit, but the same for all.

    Attributes:
        host: id, address or name of the host; spans without one are of no common host.
        events: their stamps.
    """

    id: str
    parent: str | None
    start: int
    end: int
    host: str = ""
    events: Sequence[int] = ()


@dataclass(slots=True)
class Adjusted:
    """A span as it is shown.

    Attributes:
        delta: by how much the adjuster would move it; it has only where that was allowed.
        warnings: what it is shown with.
    """

    span: SkewSpan
    start: int
    end: int
    events: list[int]
    delta: int = 0
    warnings: list[str] = field(default_factory=list)

    def move(self, delta: int, most: int) -> None:
        """Move by a delta, unless that is more than is allowed."""
        self.delta = delta
        if delta == 0:
            return
        if abs(delta) > most:
            self.warnings.append(exceeded(most, delta) if most else disabled(delta))
            return
        self.start += delta
        self.end += delta
        self.events = [event + delta for event in self.events]
        self.warnings.append(moved_by(delta))


def adjusted(spans: Iterable[SkewSpan], max_adjust: int) -> list[Adjusted]:
    """The spans as Jaeger shows them, in their order; of two with one id the first counts.

    Args:
        spans: of one trace.
        max_adjust: a span that would have to be moved further stays; 0, Jaeger's default, moves
            none.
    """
    shown = [Adjusted(span, span.start, span.end, list(span.events)) for span in spans]
    by_id: dict[str, Adjusted] = {}
    for each in shown:
        if by_id.setdefault(each.span.id, each) is not each:
            each.warnings.append(DUPLICATE)
    children: dict[str, list[Adjusted]] = {}
    pending: list[tuple[Adjusted, Adjusted | None, str, int]] = []
    for each in by_id.values():
        parent = each.span.parent
        if parent is not None and parent in by_id:
            children.setdefault(parent, []).append(each)
            continue
        if parent is not None:
            each.warnings.append(missing_parent(parent))
        pending.append((each, None, each.span.host, 0))
    while pending:
        node, above, host, delta = pending.pop()
        if above is not None and (node.span.host != host or not node.span.host):
            host, delta = node.span.host, _skew(node, above)
        node.move(delta, max_adjust)
        pending += [(child, node, host, delta) for child in children.get(node.span.id, ())]
    return shown


def _skew(child: Adjusted, parent: Adjusted) -> int:
    """By how much a child has to be moved to lie in its parent, which has been moved already."""
    longer = (child.end - child.start) - (parent.end - parent.start)
    if longer > 0:  # a message, or the parent gave up: only its start must not come first
        return max(0, parent.start - child.start)
    if parent.start <= child.start and child.end <= parent.end:
        return 0
    latency = -longer // 2  # taken to be the same both ways
    return parent.start + latency - child.start
