"""Headers in and out."""

from hypothesis import given
from hypothesis import strategies as some
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

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


def test_a_callers_headers_name_a_span_and_all_else_stays():
    extracted = extract({"traceparent": PARENT}, Context({"theirs": 1}))
    span = trace.get_current_span(extracted)
    assert span.get_span_context().span_id == 0xB7AD6B7169203331
    assert span.get_span_context().is_remote
    assert extracted["theirs"] == 1


def test_headers_without_a_parent_leave_the_context_alone():
    context = Context()
    assert extract({"baggage": "a=b"}, context) is context


HEX = "0123456789abcdef"
NAMED = some.builds(
    "{}-{}-{}-{}{}".format,
    some.sampled_from(["00", "01", "ff", "0"]),
    some.one_of(some.text(HEX, min_size=32, max_size=32), some.just("0" * 32)),
    some.one_of(some.text(HEX, min_size=16, max_size=16), some.just("0" * 16)),
    some.text(HEX, min_size=1, max_size=3),
    some.sampled_from(["", " ", "\n", "-", "-more"]),
)


@given(
    some.one_of(NAMED, NAMED.map(str.upper), some.text()),
    some.one_of(some.none(), some.sampled_from(["", "vendor=1", "a=1,b=2", "?"])),
)
def test_headers_are_read_as_opentelemetrys_own_propagator_reads_them(traceparent, tracestate):
    headers = {"traceparent": traceparent}
    if tracestate is not None:
        headers["tracestate"] = tracestate
    theirs = TraceContextTextMapPropagator().extract(headers, Context({"theirs": 1}))
    ours = extract(headers, Context({"theirs": 1}))
    read = trace.get_current_span(ours).get_span_context()
    expected = trace.get_current_span(theirs).get_span_context()
    assert tuple(read) == tuple(expected)
    assert ours.keys() == theirs.keys()


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
