"""An exporter that sends a batch again, since it has not heard that the first one arrived."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.integration.jaeger.lanes import check_lane, check_only_appended_to
from tests.integration.jaeger.loop import Loop
from tests.integration.jaeger.sending import Sent, sent_as
from tests.integration.jaeger.storage import Stored, unpack

pytestmark = pytest.mark.peers


@pytest.fixture
def sent() -> Sent:
    return sent_as("call_worked_adviser")


def once_all_has_passed(loop: Loop, sent: Sent) -> list[Stored]:
    """A trace's spans once another trace, sent after it, has come through the whole loop."""
    follower = sent_as("call_worked_adviser")
    loop.send(follower.request)
    loop.stored(follower.trace_id)
    return loop.jaeger.stored(sent.trace_id)


def test_while_the_trace_is_held_nothing_is_there_twice(loop: Loop, sent: Sent) -> None:
    loop.send(sent.request)
    loop.send(sent.request)
    loop.stored(sent.trace_id)
    stored = once_all_has_passed(loop, sent)
    assert _copies(stored) == {1}
    check_lane(stored)


def test_after_the_trace_was_sent_on_nothing_is_there_twice(loop: Loop, sent: Sent) -> None:
    loop.send(sent.request)
    before = Counter(map(_bytes, loop.stored(sent.trace_id)))
    loop.send(sent.request)
    assert Counter(map(_bytes, once_all_has_passed(loop, sent))) == before
    check_lane(loop.jaeger.stored(sent.trace_id))


def test_a_span_that_comes_late_is_passed_on_as_it_is(loop: Loop, sent: Sent) -> None:
    whole = {each.span.span_id: each for each in unpack(sent.request)}
    late = sent.span_ids["r2"]
    loop.send(_of_these(sent, whole.keys() - {late}))
    loop.stored(sent.trace_id)
    loop.send(_of_these(sent, {late}))
    stored = once_all_has_passed(loop, sent)
    assert _copies(stored) == {1}
    (arrived,) = [each for each in stored if each.span.span_id == late]
    check_only_appended_to(arrived, whole[late])
    assert len(arrived.span.attributes) == len(whole[late].span.attributes)


def _of_these(sent: Sent, span_ids: Set[bytes]) -> ExportTraceServiceRequest:
    """The request with some of its spans only."""
    request = ExportTraceServiceRequest.FromString(sent.request.SerializeToString())
    for of_resource in request.resource_spans:
        for of_scope in of_resource.scope_spans:
            wanted = [span for span in of_scope.spans if span.span_id in span_ids]
            del of_scope.spans[:]
            of_scope.spans.extend(wanted)
    return request


def _bytes(stored: Stored) -> bytes:
    return stored.span.SerializeToString(deterministic=True)


def _copies(spans: list[Stored]) -> set[int]:
    """How often a span id is there."""
    return set(Counter(each.span.span_id for each in spans).values())
