"""Requests whose spans came under two trace ids, since somebody in between lost the context.

    trace A   chat ────────────────        gen_ai.response.id    chatcmpl-7f3a
    trace B     llm_request ───────        its own id of it      chatcmpl-7f3a     a root

The ids are what client and server call the request, so that nothing has to be guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from llmlat_processor.model import CLIENT, ExplainedTrace, Finding, Span
from llmlat_processor.producers import reading_of
from llmlat_processor.stages.annotate import with_findings
from llmlat_semconv import attributes as names
from llmlat_semconv.values import FindingKind

MOST: Final = 10_000
"""Requests that are remembered; of more, the first ones are forgotten first."""


class _Seen(NamedTuple):
    """Where a request was seen before."""

    trace_id: bytes
    has_asked: bool


class Breaks:
    """What is remembered of the requests of earlier traces; used by one thread at a time."""

    def __init__(self, most: int = MOST) -> None:
        """Nothing was seen yet; remember at most so many requests."""
        self._most = most
        self._seen: dict[str, _Seen] = {}

    def told(self, explained: ExplainedTrace) -> ExplainedTrace:
        """The trace with a finding for each span whose request another trace has too.

        Of the two traces the later one is told: the other has gone.
        """
        found = [*self._found(explained)]
        return with_findings(explained, found) if found else explained

    def _found(self, explained: ExplainedTrace) -> Iterator[Finding]:
        trace_id = explained.trace.trace_id
        for span, request, has_asked in _requests(explained):
            other = self._seen.get(request)
            if other is None:
                self._seen[request] = _Seen(trace_id, has_asked)
                if len(self._seen) > self._most:
                    del self._seen[next(iter(self._seen))]
            elif other.trace_id != trace_id and other.has_asked is not has_asked:
                note = f"its request is in trace {other.trace_id.hex()} too"
                of = span.span_id
                yield Finding(FindingKind.TRACE_BREAK, of, None, (of,), None, note)


def _requests(explained: ExplainedTrace) -> Iterator[tuple[Span, str, bool]]:
    """Calls whose response had an id, and roots that answer a request: those hang nowhere."""
    trace = explained.trace
    for span in trace.operations:
        if span.attributes and span.kind == CLIENT:
            asked = span.attributes.get(names.GEN_AI_RESPONSE_ID)
            if asked and isinstance(asked, str):
                yield span, asked, True
    for position in trace.roots:
        root = trace.operations[position]
        answered = _answered(root) if root.attributes and root.kind != CLIENT else None
        if answered and isinstance(answered, str):
            yield root, answered, False


def _answered(span: Span) -> object:
    reading = reading_of(span)
    own = span.attributes.get(names.LLMLAT_REQUEST_ID)
    if own or reading is None:
        return own
    return next(filter(None, map(span.attributes.get, reading.request_ids)), None)
