"""Headers in and out."""

from opentelemetry import trace

from llmlat_otel.core.propagation import extract, inject

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_the_parent_is_named():
    headers: dict[str, str] = {}
    inject(headers, PARENT, "vendor=1")
    assert headers == {"traceparent": PARENT, "tracestate": "vendor=1"}


def test_a_parent_that_is_named_already_stays():
    headers = {"traceparent": "theirs"}
    inject(headers, PARENT, "vendor=1")
    assert headers == {"traceparent": "theirs"}


def test_a_state_that_is_there_already_stays():
    headers = {"tracestate": "theirs=1"}
    inject(headers, PARENT, "vendor=1")
    assert headers == {"traceparent": PARENT, "tracestate": "theirs=1"}


def test_without_a_trace_nothing_is_added():
    headers: dict[str, str] = {}
    inject(headers, None, "")
    assert headers == {}


def test_a_callers_headers_are_read_whatever_their_case():
    span = trace.get_current_span(extract({"Traceparent": PARENT}))
    assert span.get_span_context().span_id == 0xB7AD6B7169203331
    assert span.get_span_context().is_remote


def test_headers_without_a_parent_leave_the_context_alone():
    assert extract({"baggage": "a=b"}) == {}


def test_the_name_that_a_gateway_has_passed_on_is_replaced_and_its_state_goes_with_it():
    headers = {"traceparent": "callers", "tracestate": "callers=1"}
    inject(headers, PARENT, "", replaces="callers")
    assert headers == {"traceparent": PARENT}
    headers = {"traceparent": "callers", "tracestate": "callers=1"}
    inject(headers, PARENT, "vendor=1", replaces="callers")
    assert headers == {"traceparent": PARENT, "tracestate": "vendor=1"}


def test_another_name_than_the_callers_stays_in_a_gateway_too():
    headers = {"traceparent": "theirs", "tracestate": "theirs=1"}
    inject(headers, PARENT, "vendor=1", replaces="callers")
    inject(headers, None, "", replaces="theirs")
    assert headers == {"traceparent": "theirs", "tracestate": "theirs=1"}
