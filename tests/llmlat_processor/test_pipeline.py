"""The whole processor in one call: one trace, or several at once."""

from __future__ import annotations

from bench.traces import batches, llm_trace
from llmlat_processor.model import ExplainedTrace, Span
from llmlat_processor.pipeline import process, process_all
from llmlat_processor.wire import decode, encode


def received() -> list[list[Span]]:
    """The spans of several traces."""
    traces: dict[bytes, list[Span]] = {}
    for span in decode(batches(llm_trace, 1, seed=3, size=100)[0].request).spans:
        traces.setdefault(span.trace_id, []).append(span)
    return list(traces.values())


def sent(explained: ExplainedTrace) -> bytes:
    """All that is sent of a trace but its lane."""
    return encode(explained.trace.spans, explained.annotations)


def test_several_traces_are_explained_as_each_by_itself() -> None:
    traces = received()
    together = process_all(traces)

    assert len(together) > 2
    assert [sent(each) for each in together] == [sent(process(spans)) for spans in traces]
    assert [repr(each.paths) for each in together] == [
        repr(process(spans).paths) for spans in traces
    ]


def test_nothing_is_explained_of_nothing() -> None:
    assert process_all(()) == []
