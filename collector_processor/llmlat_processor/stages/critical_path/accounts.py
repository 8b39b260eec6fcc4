"""Accounts of every call and callee, the innermost first, so that each is explained once."""

from __future__ import annotations

from functools import partial

from llmlat_processor.facts import Facts
from llmlat_processor.stages.critical_path.account import Account, Slice, cut
from llmlat_processor.stages.critical_path.calls import choose_callee
from llmlat_processor.stages.critical_path.exchange import first_extension_ns
from llmlat_processor.stages.critical_path.held import compare_reported
from llmlat_processor.stages.critical_path.tree import Node, Tree
from llmlat_processor.stages.critical_path.walk import (
    Extent,
    Walk,
    frames_down,
    leaf_account,
    walk_whole,
)
from llmlat_semconv.values import SectionLabel


def settle_accounts(tree: Tree) -> None:
    """Compute the accounts of all calls, callees and duration-only operations of a tree."""
    settle = partial(_settle, tree)
    for node in reversed(tree.order):
        if node.call is not None and len(node.call.callees) > 1:
            choose_callee(tree, node, settle)
        if _needs_account(node):
            _settle(tree, node)
            compare_reported(tree, node)


def _needs_account(node: Node) -> bool:
    if node.leaf and node.facts is None and not node.remote:
        return False  # nothing to label and nobody to be exchanged for
    return (
        node.call is not None
        or (node.remote and node.parent is not None and node.parent.call is not None)
        or (node.facts is not None and bool(node.facts.durations))
    )


def _settle(tree: Tree, node: Node) -> None:
    account = walk_whole(tree, node) if node.joined else leaf_account(tree, node)
    node.account = account
    if node.remote:
        node.output = _output(tree, node, account)
        node.first = _first(tree, node, account)


def _output(tree: Tree, callee: Node, account: Account) -> Account | Slice:
    """From the callee's start to its last output; its span's end where no edge is known."""
    holder = _holder(callee, "last_output_ns")
    if holder is None or holder.facts is None or holder.facts.last_output_ns is None:
        return account
    at_ns = holder.facts.last_output_ns
    if holder is callee and not _is_hidden(callee, at_ns):
        return cut(account, 0, callee.end_ns - at_ns)
    return Walk(tree, frames_down(_chain(callee, holder), at_ns, Extent.WHOLE)).run()


def _is_hidden(callee: Node, at_ns: int) -> bool:
    """Whether something that ran on after the last output hides what came before it."""
    return any(
        child.until_ns > at_ns and not _is_only_open(child, at_ns) for child in callee.joined
    )


def _is_only_open(child: Node, at_ns: int) -> bool:
    """Whether a gateway's call had given its last event by then, and was only not closed yet."""
    facts = child.facts
    if child.call is None or facts is None:
        return False
    finalized_ns = child.until_ns - facts.total_ns(SectionLabel.FINALIZE)
    return min(finalized_ns, child.last_content_ns) <= at_ns


def _first(tree: Tree, callee: Node, account: Account) -> Account | Slice | None:
    """From the callee's start to its first output; None where no edge is known."""
    holder = _holder(callee, "first_output_ns")
    if holder is None or holder.facts is None or holder.facts.first_output_ns is None:
        return None
    at_ns = holder.facts.first_output_ns
    if holder is callee and not callee.joined and not _exchanges(callee):
        return cut(account, 0, callee.end_ns - at_ns)
    if not holder.facts.total_ns(SectionLabel.PREFILL):
        at_ns += first_extension_ns(holder)
    return Walk(tree, frames_down(_chain(callee, holder), at_ns, Extent.FIRST)).run()


def _exchanges(node: Node) -> bool:
    """True where an operation's account holds somebody else's in place of its own waiting."""
    facts = node.facts
    return (node.call is not None and node.call.callee is not None) or (
        facts is not None and bool(facts.reported or facts.consumer_ns)
    )


def _holder(callee: Node, edge: str) -> Node | None:
    """Who knows the edge: the callee, else the one among its local descendants that is last."""
    if callee.facts is not None and getattr(callee.facts, edge) is not None:
        return callee
    best: Node | None = None
    for node in callee.local_tree():
        if node.domain != callee.domain:
            continue
        facts: Facts | None = node.facts
        if facts is None or facts.failed or getattr(facts, edge) is None:
            continue
        if best is None or _later(facts, best.facts, edge):
            best = node
    return best


def _later(facts: Facts, other: Facts | None, edge: str) -> bool:
    """Of several last outputs the last counts, of several first outputs the first."""
    one, two = getattr(facts, edge), getattr(other, edge)
    return bool(one > two) if edge == "last_output_ns" else bool(one < two)


def _chain(top: Node, bottom: Node) -> list[Node]:
    chain = [bottom]
    while chain[-1] is not top:
        above = chain[-1].parent
        if above is None:
            break
        chain.append(above)
    return chain[::-1]
