"""The generated traces are what they claim: whole, of three services, without findings."""

from collections import Counter

import pytest

from bench.traces import ADVISER, ENGINE, GATEWAY, batches, llm_trace, plain_trace
from llmlat_processor.model import Span
from llmlat_processor.pipeline import process
from llmlat_processor.wire import decode
from llmlat_semconv import attributes as names
from llmlat_semconv.values import FindingKind, SectionLabel

KINDS = pytest.mark.parametrize("make_trace", [llm_trace, plain_trace])


def explained(batch):
    traces: dict[bytes, list[Span]] = {}
    for span in decode(batch.request).spans:
        traces.setdefault(span.trace_id, []).append(span)
    return [process(spans) for spans in traces.values()]


@KINDS
def test_a_batch_holds_several_whole_traces(make_trace):
    (batch,) = batches(make_trace, 1, seed=1)
    traces = explained(batch)
    assert 500 <= batch.spans < 540
    assert len(traces) == batch.traces
    assert sum(len(each.trace.spans) for each in traces) == batch.spans
    assert all(20 <= len(each.trace.spans) <= 40 for each in traces)
    assert {span.resource.service for each in traces for span in each.trace.spans} == {
        ADVISER,
        GATEWAY,
        ENGINE,
    }


@KINDS
def test_nothing_is_wrong_with_them(make_trace):
    (batch,) = batches(make_trace, 1, seed=2)
    assert not decode(batch.request).damaged
    found = {finding.kind for each in explained(batch) for finding in each.findings}
    assert found <= {FindingKind.APPARENT_NEGATIVE_NETWORK}  # their clocks are some ms apart


@KINDS
def test_the_same_seed_gives_the_same_bytes(make_trace):
    one, other = batches(make_trace, 2, seed=3)
    assert one.request != other.request
    assert batches(make_trace, 2, seed=3) == [one, other]


def test_both_paths_go_down_to_the_engine():
    (batch,) = batches(llm_trace, 1, seed=4)
    for each in explained(batch):
        (root,) = each.paths.roots
        assert {SectionLabel.QUEUE, SectionLabel.PREFILL, SectionLabel.DECODE} <= {
            *root.e2e.totals_ns
        }
        assert root.ttft is not None
        assert SectionLabel.PREFILL in root.ttft.totals_ns


def test_spans_with_a_genai_operation_carry_a_dozen_attributes_and_durations_of_phases():
    (batch,) = batches(llm_trace, 1, seed=5)
    counts = Counter(
        len(
            [
                name
                for name in span.attributes
                if not name.endswith("duration") or name in {names.LLMLAT_PHASE_DURATION}
            ]
        )
        for span in decode(batch.request).spans
        if names.GEN_AI_OPERATION_NAME in span.attributes
    )
    assert set(counts) <= {9, 12, 13}
