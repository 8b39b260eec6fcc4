"""What is sent in a soak: every time other traces, whole in the end, and of this very moment."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from bench import soaking_load
from bench.soaking_load import PARTS, Load, groups
from llmlat_semconv import attributes as names

SIZE = 60
GROUPS = groups(SIZE, seed=3)
USES = 20
NOW_NS = 1_800_000_000 * 10**9
SECOND_NS = 10**9


def spans_of(content: bytes) -> list[Span]:
    return [
        span
        for resource in ExportTraceServiceRequest.FromString(content).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def sent(uses: int = USES) -> list[soaking_load.Sending]:
    """All requests of so many groups; each begins a second after the one before it."""
    load = Load(GROUPS)
    begun = 0

    def clock() -> int:
        nonlocal begun
        begun += 1
        if begun == uses:
            load.end()
        return NOW_NS + begun * SECOND_NS

    return [*load.sendings(clock)]


SENT = sent()
BY_TRACE = defaultdict(list)
for each in SENT:
    for one in spans_of(each.content):
        BY_TRACE[one.trace_id].append(one)


def stamps(span: Span) -> dict[str, int]:
    return {each.key: each.value.int_value for each in span.attributes if "clock" in each.key}


def test_what_is_said_of_a_request_is_so():
    for sending in SENT:
        spans = spans_of(sending.content)
        assert len(spans) == sending.spans
        numbers = {int.from_bytes(span.trace_id[-4:], "big") for span in spans}
        assert numbers == set(sending.traces)


def test_every_trace_is_sent_whole_and_once():
    begun = [spans for sending in SENT for spans in sending.begun]
    assert [sending.first for sending in SENT if sending.begun][:2] == [0, len(GROUPS[0].spans)]
    numbered = {int.from_bytes(trace_id[-4:], "big"): own for trace_id, own in BY_TRACE.items()}
    assert {number: len(own) for number, own in numbered.items()} == dict(enumerate(begun))
    for spans in BY_TRACE.values():
        assert sorted(span.span_id[-1] for span in spans) == [*range(len(spans))]
        ids = {span.span_id for span in spans}
        assert Counter(span.parent_span_id in ids for span in spans)[False] == 1
        assert [span.parent_span_id for span in spans if span.parent_span_id not in ids] == [b""]


def test_traces_come_in_one_two_and_three_requests():
    requests = Counter(number for sending in SENT for number in sending.traces)
    assert set(requests.values()) == {1, 2, 3}


def test_parts_of_other_groups_are_sent_in_between():
    after = [place for place, sending in enumerate(SENT) if set(sending.traces) & {0, 1, 2}]
    assert len(after) == PARTS
    assert all(later - earlier > 1 for earlier, later in pairwise(after))


def test_no_trace_and_no_span_is_ever_sent_again():
    assert len(BY_TRACE) == sum(len(sending.begun) for sending in SENT)
    ids = [span.span_id for spans in BY_TRACE.values() for span in spans]
    assert len(set(ids)) == len(ids)


def test_what_is_sent_has_just_ended_and_is_shifted_as_a_whole():
    made = spans_of(GROUPS[0].parts[0].content)
    shifted = spans_of(SENT[0].content)
    shift_ns = NOW_NS + SECOND_NS - GROUPS[0].last_ns
    for before, after in zip(made, shifted, strict=True):
        assert after.start_time_unix_nano == before.start_time_unix_nano + shift_ns
        assert after.end_time_unix_nano == before.end_time_unix_nano + shift_ns
        read = stamps(before)
        assert stamps(after) == {
            name: value if name == names.LLMLAT_CLOCK_ANCHOR_UNCERTAINTY else value + shift_ns
            for name, value in read.items()
        }
    assert any(stamps(span) for span in made)
    ends_ns = [span.end_time_unix_nano for spans in BY_TRACE.values() for span in spans]
    assert max(ends_ns) <= NOW_NS + USES * SECOND_NS


def test_a_fifth_of_the_traces_is_plain():
    made = groups(150, seed=1)
    plain = sum(b"SELECT items" in part.content for group in made for part in group.parts)
    assert plain
    traces = sum(len(group.spans) for group in made)
    roots = sum(part.content.count(b"POST /orders") for group in made for part in group.parts)
    assert 0.1 < roots / traces < 0.3


def test_a_trace_that_is_too_large_to_be_noted_is_refused(monkeypatch):
    monkeypatch.setattr(soaking_load, "MOST_SPANS", 10)
    with pytest.raises(ValueError, match="10 of one at most"):
        groups(SIZE, seed=1)


def test_the_same_seed_makes_the_same_bytes():
    again = groups(SIZE, seed=3)
    assert [part.content for group in again for part in group.parts] == [
        part.content for group in GROUPS for part in group.parts
    ]
