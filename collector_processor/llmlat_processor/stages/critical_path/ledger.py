"""Work, its overlap and its waste: kept apart from the path and never added to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from llmlat_processor.model import Ledger, Path, Span
from llmlat_processor.stages.critical_path.sink import subtree
from llmlat_processor.stages.critical_path.tree import Node


def ledger(root: Node, below: Sequence[Node], path: Path, on_path: Mapping[Node, int]) -> Ledger:
    """Close the books of one root: what was done, beside, after and for nothing."""
    work, busy = _leaves_ns(root)
    return Ledger(
        work,
        busy,
        _retry_waste(below, path),
        _hidden(below, on_path),
        _trailing(root, below),
    )


def _hidden(below: Sequence[Node], on_path: Mapping[Node, int]) -> dict[Span, int]:
    """Duration minus what of an operation, with all that is under it, lies on the path."""
    inclusive = dict(on_path)
    hidden: dict[Span, int] = {}
    for node in reversed(below):  # children first
        size = inclusive.get(node, 0)
        if size and node.parent is not None:
            inclusive[node.parent] = inclusive.get(node.parent, 0) + size
        duration = node.end_ns - node.start_ns
        if duration > size:
            hidden[node.span] = duration - size
    return hidden


def _trailing(root: Node, below: Sequence[Node]) -> dict[Span, int]:
    """What went on after the root's end, or after the last output of an answer to a call."""
    trailing: dict[Span, int] = {}
    for node in below:
        late = node.end_ns - root.end_ns
        if node.output is not None:
            late = node.end_ns - node.start_ns - node.output.total_ns
        if late > 0 and (node.output is not None or node.domain == root.domain):
            trailing[node.span] = late
    return trailing


def _leaves_ns(root: Node) -> tuple[int, int]:
    """Sum and union of the durations of the leaves in the root's process and clock domain."""
    leaves: list[tuple[int, int]] = []
    local = [root]
    for node in local:  # grows while it is read
        children = [] if node.leaf else [child for child in node.children if not child.remote]
        if children:
            local += children
        else:
            leaves.append((node.start_ns, node.end_ns))
    leaves.sort()
    work = busy = 0
    reached = leaves[0][0]
    for start, end in leaves:
        work += end - start
        if end > reached:
            busy += end - max(start, reached)
            reached = end
    return work, busy


def _retry_waste(below: Iterable[Node], path: Path) -> int | None:
    """Time of failed attempts on the path; None where no attempt is visible."""
    attempts = [node for node in below if node.facts is not None and node.facts.attempt is not None]
    if not attempts:
        return None
    failed: set[Span] = set()
    for attempt in attempts:
        if attempt.facts is not None and attempt.facts.failed:
            failed.update(node.span for node in subtree(attempt))
    return sum(section.duration_ns for section in path.sections if section.span in failed)
