"""From an aligned trace to both critical paths of each root."""

from __future__ import annotations

from llmlat_processor.model import (
    AlignedTrace,
    CriticalPaths,
    Path,
    RootPaths,
    Section,
)
from llmlat_processor.stages.critical_path.account import Account, edges, flatten
from llmlat_processor.stages.critical_path.accounts import settle_accounts
from llmlat_processor.stages.critical_path.calls import find_calls
from llmlat_processor.stages.critical_path.first_contents import first_contents
from llmlat_processor.stages.critical_path.joins import join_children
from llmlat_processor.stages.critical_path.ledger import ledger
from llmlat_processor.stages.critical_path.placing import alternatives, place_remote_children
from llmlat_processor.stages.critical_path.predecessors import find_predecessors
from llmlat_processor.stages.critical_path.reports import hand_down_reports
from llmlat_processor.stages.critical_path.sink import find_sink, sink_frames, subtree
from llmlat_processor.stages.critical_path.slack import slacks_ns
from llmlat_processor.stages.critical_path.tree import Node, Tree, grow
from llmlat_processor.stages.critical_path.walk import Walk, walk_whole
from llmlat_semconv.values import Evidence, SectionLabel, TtftAbsence


def critical_paths(aligned: AlignedTrace) -> CriticalPaths:
    """Compute both critical paths of every root.

    Returns:
        One entry per root, in the trace's order; the sections of a path sum exactly to its
        sink minus the root's start. Findings are those made here, the trace's not repeated.
    """
    tree = explained_tree(aligned)
    roots = tuple([_root_paths(tree, root) for root in tree.roots])
    findings = tuple(dict.fromkeys(tree.findings))
    found = CriticalPaths(roots, findings, first_contents(tree), tree.unread)
    tree.let_go()
    return found


def explained_tree(aligned: AlignedTrace) -> Tree:
    """The tree with its calls, edges and accounts settled: what paths and what-ifs start from."""
    tree = grow(aligned)
    find_calls(tree)
    hand_down_reports(tree)
    place_remote_children(tree)
    join_children(tree)
    find_predecessors(tree)
    settle_accounts(tree)
    return tree


def _root_paths(tree: Tree, root: Node) -> RootPaths:
    below = subtree(root)
    account = root.account if root.account is not None else walk_whole(tree, root)
    e2e, on_path = _path(tree, root, account)
    ttft, ttft_on_path, absence = _ttft(tree, root, below)
    slack = slacks_ns(tree, below, on_path.keys())
    return RootPaths(
        root=root.span,
        e2e=e2e,
        ttft=ttft,
        ttft_absence=absence,
        ledger=ledger(root, below, e2e, on_path),
        self_times_ns={node.span: size for node, size in on_path.items()},
        ttft_self_times_ns={node.span: size for node, size in ttft_on_path.items()},
        slacks_ns={node.span: size for node, size in slack.items()},
    )


def _ttft(
    tree: Tree, root: Node, below: list[Node]
) -> tuple[Path | None, dict[Node, int], TtftAbsence | None]:
    sink = find_sink(root, below)
    if isinstance(sink, TtftAbsence):
        return None, {}, sink
    frames = sink_frames(root, sink)
    top = frames[0].node
    path, on_path = _path(tree, top, Walk(tree, frames).run())
    return path, on_path, None


def _path(tree: Tree, top: Node, account: Account) -> tuple[Path, dict[Node, int]]:
    """Sections on the top's wall clock; equal neighbours merge, and empty ones are gone."""
    sections: list[Section] = []
    self_times: dict[Node, int] = {}
    at_ns = top.span.start_ns
    last_node: Node | None = None
    last_label: SectionLabel | None = None
    last_evidence: Evidence | None = None
    for node, label, evidence, size in flatten(account):
        self_times[node] = self_times.get(node, 0) + size
        if node is last_node and label is last_label and evidence is last_evidence:
            sections[-1].duration_ns += size
        elif label is not None:
            sections.append(Section(node.span, label, size, evidence, at_ns))
            last_node, last_label, last_evidence = node, label, evidence
        at_ns += size
    _pass_through(self_times)
    self_times.setdefault(top, 0)
    rows, is_cut = edges(account)
    if is_cut:
        passed = {node.span.span_id for node in self_times}
        rows = [row for row in rows if row[1] in passed]
    others = alternatives(tree, self_times)
    return Path(top.span, tuple(sections), tuple(rows), others), self_times


def _pass_through(self_times: dict[Node, int]) -> None:
    """A path that lies in an operation passes through those above it."""
    for node in list(self_times):
        above = node.parent
        while above is not None and above not in self_times:
            self_times[above] = 0
            above = above.parent
