"""A finished trace as one JSON document: exact integer nanoseconds, ids in hex, a fixed shape.

    document       trace_id, complete, assumptions, findings, operations, roots, clocks,
                   first_contents
    assumptions    tail_ns, resolution_ns, drift_ppm
    finding        kind, of, amount_ns, epsilon_ns, witnesses, note, interval_ns, proof
    proof          sender, receiver, left_ns, arrived_ns, epsilon_ns, tail_ns, drift_ns, left,
                   arrived
    operation      span_id, parent_id, name, service, clock_domain, duration_ns, is_error
    root           span_id, name, service, duration_ns, e2e, ttft, ttft_absence, ledger, operations
    path           root_span_id, duration_ns, dominant, totals_ns, sections, alternatives
    section        span_id, service, label, start_ns, duration_ns, evidence
    alternative    entered, other
    clocks         reference, left_out, domains
    domain         domain, services, offset_ns, wall_offset_ns, messages
    interval       low, high: both ends included, null where nothing bounds it
    first content  call, callee, server_ns, client_ns, transit_ns

An `offset_ns` is what the clock of a domain shows less what the reference's shows, at the start of
the first root. The limits of a proof's messages (`arrived_ns` - `left_ns` and what was granted:
`epsilon_ns`, `tail_ns`, `drift_ns`) sum to less than 0; of one call (`negative_transit`) they do so
without `drift_ns`. A section's `start_ns` counts from the start of its path's root. Of the
operations of a root, those off a path have no self time on it, and only those off the path to the
end have a slack.
Keys may be added from version to version; none is removed or given another meaning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from llmlat_processor.model import (
    AlignedTrace,
    Assumptions,
    ExplainedTrace,
    Finding,
    FirstContent,
    Interval,
    Ledger,
    Message,
    Offset,
    Path,
    RootPaths,
)

Document: TypeAlias = dict[str, object]


def document(explained: ExplainedTrace) -> Document:
    """Give a trace as JSON types: dicts, lists, strings, integers, booleans and None."""
    trace = explained.trace
    return {
        "trace_id": trace.trace_id.hex(),
        "complete": trace.complete,
        "assumptions": _assumptions(trace.assumptions),
        "findings": [_finding(finding) for finding in explained.findings],
        "operations": _operations(explained),
        "roots": [_root(paths) for paths in explained.paths.roots],
        "clocks": _clocks(explained.aligned),
        "first_contents": [_first_content(one) for one in explained.paths.first_contents],
    }


def _assumptions(used: Assumptions) -> Document:
    return {
        "tail_ns": used.tail_ns,
        "resolution_ns": used.resolution_ns,
        "drift_ppm": used.drift_ppm,
    }


def _finding(finding: Finding) -> Document:
    return {
        "kind": finding.kind.value,
        "of": finding.of.hex(),
        "amount_ns": finding.amount_ns,
        "epsilon_ns": finding.epsilon_ns,
        "witnesses": [witness.hex() for witness in finding.witnesses],
        "note": finding.note,
        "interval_ns": None if finding.interval is None else _interval(finding.interval),
        "proof": [_message(message) for message in finding.proof],
    }


def _interval(interval: Interval) -> Document:
    return {"low": interval.low_ns, "high": interval.high_ns}


def _message(message: Message) -> Document:
    return {
        "sender": message.sender,
        "receiver": message.receiver,
        "left_ns": message.left_ns,
        "arrived_ns": message.arrived_ns,
        "epsilon_ns": message.epsilon_ns,
        "tail_ns": message.tail_ns,
        "drift_ns": message.drift_ns,
        "left": message.left.hex(),
        "arrived": message.arrived.hex(),
    }


def _clocks(aligned: AlignedTrace) -> Document:
    clocks = aligned.clocks
    services: dict[str, dict[str, None]] = {}
    for span, domain in zip(aligned.trace.operations, aligned.domains, strict=True):
        services.setdefault(domain, {})[span.resource.service] = None
    return {
        "reference": clocks.reference,
        "left_out": clocks.left_out,
        "domains": [
            _domain(offset, services.get(offset.domain, {})) for offset in clocks.offsets.values()
        ],
    }


def _domain(offset: Offset, services: Iterable[str]) -> Document:
    return {
        "domain": offset.domain,
        "services": list(services),
        "offset_ns": _interval(offset.interval),
        "wall_offset_ns": _interval(offset.wall),
        "messages": offset.messages,
    }


def _first_content(seen: FirstContent) -> Document:
    return {
        "call": seen.call.span_id.hex(),
        "callee": seen.callee.span_id.hex(),
        "server_ns": seen.server_ns,
        "client_ns": seen.client_ns,
        "transit_ns": seen.transit_ns,
    }


def _operations(explained: ExplainedTrace) -> list[Document]:
    trace = explained.trace
    return [
        {
            "span_id": span.span_id.hex(),
            "parent_id": None if parent < 0 else trace.operations[parent].span_id.hex(),
            "name": span.name,
            "service": span.resource.service,
            "clock_domain": domain,
            "duration_ns": span.duration_ns,
            "is_error": span.is_error,
        }
        for span, parent, domain in zip(
            trace.operations, trace.parents, explained.aligned.domains, strict=True
        )
    ]


def _root(paths: RootPaths) -> Document:
    return {
        "span_id": paths.root.span_id.hex(),
        "name": paths.root.name,
        "service": paths.root.resource.service,
        "duration_ns": paths.root.duration_ns,
        "e2e": _path(paths.e2e),
        "ttft": None if paths.ttft is None else _path(paths.ttft),
        "ttft_absence": None if paths.ttft_absence is None else paths.ttft_absence.value,
        "ledger": _ledger(paths.ledger),
        "operations": _accounts(paths),
    }


def _path(path: Path) -> Document:
    origin_ns = path.sections[0].start_ns if path.sections else 0
    return {
        "root_span_id": path.root.span_id.hex(),
        "duration_ns": path.duration_ns,
        "dominant": None if path.dominant is None else path.dominant.value,
        "totals_ns": {label.value: total for label, total in path.totals_ns.items()},
        "sections": [
            {
                "span_id": section.span.span_id.hex(),
                "service": section.span.resource.service,
                "label": section.label.value,
                "start_ns": section.start_ns - origin_ns,
                "duration_ns": section.duration_ns,
                "evidence": section.evidence.value,
            }
            for section in path.sections
        ],
        "alternatives": [
            {"entered": one.entered.hex(), "other": one.other.hex()} for one in path.alternatives
        ],
    }


def _ledger(ledger: Ledger) -> Document:
    return {
        "work_ns": ledger.work_ns,
        "busy_ns": ledger.busy_ns,
        "overlapped_ns": ledger.overlapped_ns,
        "retry_waste_ns": ledger.retry_waste_ns,
    }


def _accounts(paths: RootPaths) -> dict[str, dict[str, int]]:
    """Per span id, what it answers for on each path, its slack, what is hidden or trails."""
    accounts: dict[str, dict[str, int]] = {}
    for key, amounts in (
        ("e2e_self_ns", paths.self_times_ns),
        ("ttft_self_ns", paths.ttft_self_times_ns),
        ("slack_ns", paths.slacks_ns),
        ("hidden_ns", paths.ledger.hidden_ns),
        ("trailing_ns", paths.ledger.trailing_ns),
    ):
        for span, amount in amounts.items():
            accounts.setdefault(span.span_id.hex(), {})[key] = amount
    return dict(sorted(accounts.items()))
