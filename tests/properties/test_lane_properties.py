"""What holds for the lane of any trace."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

from llmlat_processor.model import Assumptions, ExplainedTrace, Span
from llmlat_processor.pipeline import process
from llmlat_processor.views.lane import LISTED, SHOWN, lane, select
from llmlat_processor.wire import as_sent
from llmlat_semconv import attributes as names
from llmlat_semconv.values import SectionLabel
from tests.cases.case_format import Case
from tests.cases.case_spans import spans_of
from tests.properties.arbitrary import arbitrary_spans
from tests.properties.traces import call_traces, damaged_traces, linked_traces, plain_traces

TRACES = st.one_of(
    (plain_traces() | linked_traces() | call_traces() | damaged_traces()).map(spans_of),
    arbitrary_spans(),
)
LABELS = tuple(label.value for label in SectionLabel)


def of_each_root(explained: ExplainedTrace) -> Iterable[tuple[Span, list[Span]]]:
    """Each lane's root and its sections."""
    drawn = lane(explained)
    received = {span.span_id for span in explained.trace.spans}
    made = {span.span_id for span in drawn}
    assert not received & made
    assert len(made) == len(drawn)
    lanes: dict[bytes, tuple[Span, list[Span]]] = {}
    for span in drawn:
        if span.parent_id in lanes:
            lanes[span.parent_id][1].append(span)
        else:
            lanes[span.span_id] = (span, [])
    assert len(lanes) == len(explained.paths.roots)
    return lanes.values()


@given(TRACES)
def test_what_is_shown_and_what_is_hidden_is_the_whole_path(spans: list[Span]) -> None:
    explained = process(spans)
    for paths, (root, sections) in zip(explained.paths.roots, of_each_root(explained), strict=True):
        shown_ns = sum(section.duration_ns for section in sections)
        hidden_ns = paths.e2e.duration_ns - shown_ns
        assert select(paths.e2e).hidden_ns == hidden_ns >= 0
        said = root.attributes
        assert said[names.LLMLAT_CRITICAL_PATH_HIDDEN_DURATION] == round(hidden_ns / 1e9, 6)
        assert said[names.LLMLAT_CRITICAL_PATH_SHOWN_SECTIONS] == len(sections) <= SHOWN
        assert said[names.LLMLAT_CRITICAL_PATH_TOTAL_SECTIONS] == len(paths.e2e.sections)


@given(TRACES)
def test_sections_lie_in_their_root_one_after_the_other(spans: list[Span]) -> None:
    explained = process(spans)
    for paths, (root, sections) in zip(explained.paths.roots, of_each_root(explained), strict=True):
        assert root.parent_id == paths.root.span_id
        assert (root.start_ns, root.duration_ns) == (paths.root.start_ns, 1)
        assert all(one.duration_ns > 0 for one in sections)
        assert all(one.end_ns <= other.start_ns for one, other in pairwise(sections))
        if sections:
            assert paths.root.start_ns <= sections[0].start_ns
            assert sections[-1].end_ns <= paths.root.start_ns + paths.e2e.duration_ns


@given(TRACES)
def test_it_is_named_linked_and_said_as_viewers_need_it(spans: list[Span]) -> None:
    explained = process(spans)
    received = {span.span_id for span in explained.trace.spans}
    for root, sections in of_each_root(explained):
        assert root.links == ()
        assert all(section.name.startswith(LABELS) for section in sections)
        linked = [link.span_id for section in sections for link in section.links]
        assert set(linked) <= received
        for drawn in (root, *sections):
            assert not [key for key in drawn.attributes if key.startswith(GEN_AI)]
            assert all(len(text.encode()) < 2_000 for text in texts(drawn))
        listed = root.attributes[names.LLMLAT_CRITICAL_PATH_SECTIONS]
        assert isinstance(listed, tuple)
        assert len(listed) <= LISTED


GEN_AI = names.GEN_AI_OPERATION_NAME.partition(".")[0]


def texts(span: Span) -> Iterable[str]:
    attributes = [span.attributes, *(event.attributes for event in span.events)]
    for value in [value for each in attributes for value in each.values()]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from (each for each in value if isinstance(each, str))
    yield span.name


@given(call_traces() | linked_traces(), st.randoms(use_true_random=False))
def test_the_same_bytes_for_any_order_of_the_same_spans(case: Case, random: Random) -> None:
    spans = spans_of(case)
    expected = on_the_wire(process(spans))
    repeated = [*spans, *random.sample(spans, random.randint(0, len(spans)))]
    random.shuffle(repeated)

    assert on_the_wire(process(repeated)) == expected


def on_the_wire(explained: ExplainedTrace) -> list[bytes]:
    return [as_sent(span).raw for span in lane(explained)]


@given(TRACES)
def test_on_the_wire_it_is_what_it_was(spans: list[Span]) -> None:
    for span in lane(process(spans, Assumptions(resolution_ns=0))):
        if not 0 <= span.start_ns < 2**63:
            continue  # no stamp of OTLP
        read = Message.FromString(as_sent(span).raw)
        assert (read.name, read.span_id, read.parent_span_id, read.trace_id) == (
            span.name,
            span.span_id,
            span.parent_id,
            span.trace_id,
        )
        assert (read.start_time_unix_nano, read.end_time_unix_nano) == (span.start_ns, span.end_ns)
        assert [pair.key for pair in read.attributes] == list(span.attributes)
        assert len(read.links) == len(span.links)
        assert len(read.events) == len(span.events)
