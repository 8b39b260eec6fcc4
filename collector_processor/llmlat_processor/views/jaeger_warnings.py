"""A finished trace's findings as warnings of its spans, in the form that Jaeger shows as such."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from llmlat_processor.model import ExplainedTrace, Finding, Span
from llmlat_processor.views.wording import meaning, size

WARNINGS: Final = "@jaeger@warnings"
"""The attribute that Jaeger takes them from: always a list, a plain text breaks its queries."""


def jaeger_warnings(explained: ExplainedTrace) -> Mapping[Span, tuple[str, ...]]:
    """The warnings of each span that a finding is about."""
    about: dict[bytes, list[str]] = {}
    for finding in explained.findings:
        for witness in finding.witnesses or (finding.of,):
            about.setdefault(witness, []).append(_words(finding))
    return {
        span: tuple(dict.fromkeys(about[span.span_id]))
        for span in explained.trace.spans
        if span.span_id in about
    }


def _words(finding: Finding) -> str:
    """`negative_transit 12 ms: the callee took longer than its caller waited; ...`."""
    kind = f"{finding.kind.value} {size(finding)}".rstrip()
    return f"{kind}: {meaning(finding)}"
