"""An explained trace as plain values, in full, so that two of them can be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llmlat_processor.model import Event, ExplainedTrace, Path, RootPaths, Span

Plain = Any


def canonical(explained: ExplainedTrace) -> Plain:
    """Everything that is said of a trace, in the order in which it is said."""
    trace = explained.trace
    return {
        "trace": trace.trace_id,
        "operations": [_identity(span) for span in trace.operations],
        "spans": [_identity(span) for span in trace.spans],
        "complete": trace.complete,
        "roots": [_root(root) for root in explained.paths.roots],
        "findings": list(explained.findings),
        "annotations": sorted(
            (_identity(span), dict(added.attributes), [_event(event) for event in added.events])
            for span, added in explained.annotations.items()
        ),
    }


def sections(path: Path | None) -> Plain:
    """The sections of a path without any stamp."""
    return path and [
        (
            section.span.span_id,
            section.span.kind,
            section.label,
            section.duration_ns,
            section.evidence,
        )
        for section in path.sections
    ]


def _root(root: RootPaths) -> Plain:
    return {
        "root": _identity(root.root),
        "e2e": _path(root.e2e),
        "ttft": _path(root.ttft),
        "ttft_absence": root.ttft_absence,
        "ledger": (root.ledger.work_ns, root.ledger.busy_ns, root.ledger.retry_waste_ns),
        "hidden": _per_span(root.ledger.hidden_ns),
        "trailing": _per_span(root.ledger.trailing_ns),
        "self_times": _per_span(root.self_times_ns),
        "ttft_self_times": _per_span(root.ttft_self_times_ns),
        "slacks": _per_span(root.slacks_ns),
    }


def _path(path: Path | None) -> Plain:
    return path and (sections(path), [section.start_ns for section in path.sections], path.edges)


def _per_span(times_ns: Mapping[Span, int]) -> Plain:
    return sorted((_identity(span), time_ns) for span, time_ns in times_ns.items())


def _identity(span: Span) -> Plain:
    return span.span_id, span.kind, span.start_ns, span.end_ns, span.raw


def _event(event: Event) -> Plain:
    return event.name, event.at_ns, dict(event.attributes)
