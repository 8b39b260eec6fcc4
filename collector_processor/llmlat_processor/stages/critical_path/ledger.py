"""Work, its overlap and its waste: kept apart from the path and never added to it."""

from __future__ import annotations

from collections.abc import Iterable

from llmlat_processor.model import Ledger, Path, Span
from llmlat_processor.stages.critical_path.sink import subtree
from llmlat_processor.stages.critical_path.tree import Node


def ledger(root: Node, below: Iterable[Node], path: Path) -> Ledger:
    """Close the books of one root: its work, and what of its path went into failed attempts."""
    work, busy = _leaves_ns(root)
    return Ledger(work, busy, _retry_waste(below, path))


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
