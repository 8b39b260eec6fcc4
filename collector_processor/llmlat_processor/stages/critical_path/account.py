"""Explained time as a rope: pieces and the accounts of others, cut and joined without copying.

An account of a call holds its callee's account, which holds its callee's, and so on. They are
flattened once, at the end, with an explicit stack: depth costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from llmlat_processor.stages.critical_path.tree import Node
from llmlat_semconv.values import Evidence, SectionLabel

Piece = tuple[Node, SectionLabel | None, Evidence, int]
"""(operation, label or None while unlabelled, evidence, nanoseconds)"""

EdgeRow = tuple[bytes, bytes, str]
"""(id before, id after, evidence)"""


class Account:
    """Consecutive parts of explained time, in time order, and the edges between siblings."""

    __slots__ = ("edges", "parts", "total_ns")

    def __init__(self, parts: Sequence[Part], edges: Sequence[EdgeRow] = ()) -> None:
        self.parts = parts
        self.edges = edges
        total_ns = 0
        for part in parts:
            total_ns += part[3] if isinstance(part, tuple) else part.total_ns
        self.total_ns: int = total_ns


class Slice:
    """A stretch of an account: from `skip_ns` on, `total_ns` long."""

    __slots__ = ("account", "skip_ns", "total_ns")

    def __init__(self, account: Account, skip_ns: int, total_ns: int) -> None:
        self.account = account
        self.skip_ns = skip_ns
        self.total_ns = total_ns


Part: TypeAlias = "Piece | Account | Slice"


def length(part: Part) -> int:
    """Nanoseconds of a part."""
    return part[3] if isinstance(part, tuple) else part.total_ns


def cut(account: Account | Slice, head_ns: int, tail_ns: int) -> Account | Slice:
    """The account without its first `head_ns` and its last `tail_ns`."""
    if head_ns <= 0 and tail_ns <= 0:
        return account
    head = min(max(0, head_ns), account.total_ns)
    size = max(0, account.total_ns - head - max(0, tail_ns))
    if isinstance(account, Slice):
        return Slice(account.account, account.skip_ns + head, size)
    return Slice(account, head, size)


def flatten(account: Account) -> Iterator[Piece]:
    """The pieces of an account in time order; empty ones left out."""
    stack: list[Iterator[Part]] = [iter(account.parts)]
    while stack:
        for part in stack[-1]:
            if isinstance(part, tuple):
                if part[3] > 0:
                    yield part
                continue
            stack.append(_parts(part))
            break
        else:
            stack.pop()


def _parts(part: Account | Slice) -> Iterator[Part]:
    if isinstance(part, Account):
        return iter(part.parts)
    return _within(part.account.parts, part.skip_ns, part.total_ns)


def _within(parts: Sequence[Part], skip_ns: int, take_ns: int) -> Iterator[Part]:
    """The parts of a stretch, its first and last cut where it begins and ends in them."""
    for part in parts:
        size = length(part)
        if skip_ns >= size:
            skip_ns -= size
            continue
        taken = min(size - skip_ns, take_ns)
        if taken <= 0:
            return
        yield part if taken == size else _trimmed(part, skip_ns, taken)
        skip_ns = 0
        take_ns -= taken


def _trimmed(part: Part, skip_ns: int, take_ns: int) -> Part:
    if isinstance(part, tuple):
        node, label, evidence, _ = part
        return node, label, evidence, take_ns
    return cut(part, skip_ns, part.total_ns - skip_ns - take_ns)


def edges(account: Account) -> tuple[list[EdgeRow], bool]:
    """Every edge of an account and of those that it holds, and whether any of these is cut.

    The edges of a cut account are all there, those of the part that was cut off too.
    """
    rows: list[EdgeRow] = []
    is_cut = False
    stack: list[Account] = [account]
    while stack:
        holder = stack.pop()
        rows.extend(holder.edges)
        for part in holder.parts:
            if isinstance(part, Account):
                stack.append(part)
            elif isinstance(part, Slice):
                stack.append(part.account)
                is_cut = True
    return rows, is_cut
