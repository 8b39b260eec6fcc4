"""OTLP protobuf to spans: what is read, what is set aside, and who is said to have sent it."""

from __future__ import annotations

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from llmlat_processor import model
from llmlat_processor.model import PARENT_IS_REMOTE, AttributeValue
from llmlat_processor.wire import UndecodableError, WireSpan, decode
from llmlat_semconv import attributes as names
from llmlat_semconv import events
from tests.llmlat_processor.otlp import (
    CHAT,
    SPAN_ID,
    START_NS,
    TRACE_ID,
    pairs,
    raw_request,
    request,
    span,
)


def only(message: Span, resource: dict[str, AttributeValue] | None = None) -> WireSpan:
    decoded = decode(request([message], resource or {}).SerializeToString())
    assert not decoded.damaged
    (read,) = decoded.spans
    return read


def test_every_field_of_a_span_is_read() -> None:
    message = span(7, parent=SPAN_ID, flags=0x301)
    message.status.code = Status.STATUS_CODE_ERROR

    read = only(message)

    assert (read.trace_id, read.span_id, read.parent_id) == (TRACE_ID, bytes(7) + b"\7", SPAN_ID)
    assert (read.name, read.kind, read.scope) == (
        "chat gemma",
        Span.SPAN_KIND_CLIENT,
        "adviser.app",
    )
    assert (read.start_ns, read.end_ns) == (START_NS, START_NS + 1_000_000_000)
    assert read.flags & PARENT_IS_REMOTE
    assert read.is_error
    assert read.attributes == CHAT
    assert read.attribute_count == len(CHAT)
    assert read.raw == message.SerializeToString()


def test_no_field_of_the_model_is_left_unset() -> None:
    read = only(span())

    assert all(hasattr(read, field) for field in (*model.Span.__slots__, *WireSpan.__slots__))


def test_ot_08_flags_are_no_reason_to_drop_a_span() -> None:
    """OT-08: bits above the low eight say more than `sampled`."""
    flags = [0, 0x100, 0x300, 0x301]

    decoded = decode(request(span(flags=each) for each in flags).SerializeToString())

    assert [read.flags for read in decoded.spans] == flags


@pytest.mark.parametrize("code", [Status.STATUS_CODE_UNSET, Status.STATUS_CODE_OK, 99])
def test_only_the_error_status_is_an_error(code: int) -> None:
    message = span()
    message.status.code = code  # type: ignore[assignment]  # 99 is of a later version

    assert not only(message).is_error


VALUES: list[AttributeValue] = [
    "text",
    "",
    "überlang" * 40,
    True,
    False,
    0,
    1,
    127,
    128,
    2**53 + 1,
    2**63 - 1,
    -1,
    -(2**63),
    0.0,
    -0.0,
    1.5,
    float("inf"),
    b"\x00\xff",
    (),
    ("a", 1, 2.5, None),
    ((1,), ("b", (b"c",))),
    None,
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_read_with_their_type(value: AttributeValue) -> None:
    message = span(attributes={**CHAT, names.GEN_AI_RESPONSE_ID: value, "x" * 200: value})

    for _ in range(2):  # what was seen once is read from memory
        read = only(message).attributes
        for key in (names.GEN_AI_RESPONSE_ID, "x" * 200):
            assert read[key] == value
            assert type(read[key]) is type(value)


KEY = names.GEN_AI_RESPONSE_ID
LIKE_OTHERS: list[tuple[AttributeValue, bytes, AttributeValue]] = [
    (16_384, b"\x18\x85\x80\x00", 5),  # written longer than it need be
    (16_384, b"\x18\x05\x18\x06", 6),  # of several values the last one counts
    (16_384, b"\x18\x05\x10\x01", True),
    (2**63 - 1, b"\x18\xff\xff\xff\x01\x22\x03abc", 2**22 - 1),  # and a field of another version
    ("ab", b"\x0a\x00\x18\x05", 5),
    ("ab", b"\x18\x05\x0a\x00", ""),
    (0.5, b"\x21" + bytes(8), 0.0),
    (0.5, b"\x22" + b"\x07abcdefg", None),
]


@pytest.mark.parametrize(("usual", "content", "value"), LIKE_OTHERS, ids=repr)
def test_a_value_that_only_begins_like_the_usual_ones_is_read_by_its_own_rules(
    usual: AttributeValue, content: bytes, value: AttributeValue
) -> None:
    only(span(attributes={KEY: usual}))
    pair = b"\x0a%c%b\x12%c%b" % (len(KEY), KEY.encode(), len(content), content)
    raw = span(attributes={}).SerializeToString() + b"\x4a%c%b" % (len(pair), pair)

    (read,) = decode(raw_request([raw])).spans

    assert read.attributes == {KEY: value}
    assert type(read.attributes[KEY]) is type(value)


def test_nothing_of_a_span_is_left_in_the_next_one() -> None:
    full = span(1, parent=SPAN_ID, flags=0x301)
    full.status.code = Status.STATUS_CODE_ERROR
    full.events.add(name=events.LLMLAT_TOOL_CALL)
    full.links.add(trace_id=TRACE_ID, span_id=SPAN_ID)
    bare = Span(trace_id=TRACE_ID, span_id=SPAN_ID, attributes=pairs({KEY: "r"}))

    _, read = decode(request([full, bare]).SerializeToString()).spans

    assert (read.parent_id, read.name, read.kind, read.flags) == (b"", "", 0, 0)
    assert (read.start_ns, read.end_ns, read.is_error) == (0, 0, False)
    assert (read.events, read.links, read.attributes) == ((), (), {KEY: "r"})


def test_many_different_texts_do_not_confuse_the_memory() -> None:
    for number in range(5_000):
        message = span(attributes={names.GEN_AI_RESPONSE_ID: f"id {number}", f"k{number}": "same"})
        expected = {names.GEN_AI_RESPONSE_ID: f"id {number}", f"k{number}": "same"}
        assert only(message).attributes == expected


def test_of_equal_keys_the_last_one_counts() -> None:
    message = span()
    message.attributes.extend(pairs({names.GEN_AI_OPERATION_NAME: "embeddings"}))

    assert only(message).attributes[names.GEN_AI_OPERATION_NAME] == "embeddings"


def test_a_span_without_our_names_is_counted_but_not_decoded() -> None:
    message = span(attributes={"http.request.header.x": "1", "peer": "p"})
    message.events.add(name="retry")

    read = only(message)

    assert (read.attributes, read.events, read.attribute_count) == ({}, (), 2)
    assert read.raw == message.SerializeToString()


def test_an_event_of_ours_is_read_on_whatever_span_it_is() -> None:
    """An app's first useful content is on its own span, which need not say anything of ours."""
    message = span(attributes={})
    message.events.add(name=events.LLMLAT_FIRST_CONTENT, time_unix_nano=START_NS + 5)

    (read,) = decode(request([message]).SerializeToString()).spans

    assert [(event.name, event.at_ns) for event in read.events] == [
        (events.LLMLAT_FIRST_CONTENT, START_NS + 5)
    ]


def test_events_and_links_of_our_spans_are_read() -> None:
    message = span()
    message.events.add(
        name=events.LLMLAT_TOOL_CALL,
        time_unix_nano=START_NS + 5,
        attributes=pairs({names.GEN_AI_TOOL_CALL_ID: "call_1"}),
    )
    relationship = pairs({names.LLMLAT_LINK_RELATIONSHIP: "follows"})
    message.links.add(trace_id=TRACE_ID, span_id=SPAN_ID, attributes=relationship)

    read = only(message)

    (event,), (link,) = read.events, read.links
    assert (event.name, event.at_ns) == (events.LLMLAT_TOOL_CALL, START_NS + 5)
    assert event.attributes == {names.GEN_AI_TOOL_CALL_ID: "call_1"}
    assert (link.trace_id, link.span_id) == (TRACE_ID, SPAN_ID)
    assert link.attributes == {names.LLMLAT_LINK_RELATIONSHIP: "follows"}


def test_a_link_without_usable_ids_costs_only_the_link() -> None:
    message = span()
    message.links.add(trace_id=b"short", span_id=SPAN_ID)

    decoded = decode(request([message]).SerializeToString())

    (read,), (damaged,) = decoded.spans, decoded.damaged
    assert not read.links
    assert decoded.refused == damaged.spans == 0


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"trace_id": b""}, "trace_id has 0 bytes instead of 16"),
        ({"trace_id": b"x" * 24}, "trace_id has 24 bytes instead of 16"),
        ({"trace_id": bytes(16)}, "trace_id is all zeros"),
        ({"span_id": b"1"}, "span_id has 1 bytes instead of 8"),
        ({"span_id": bytes(8)}, "span_id is all zeros"),
        ({"parent_span_id": b"12345"}, "parent_span_id has 5 bytes instead of 8 or none"),
    ],
)
def test_a_span_with_broken_ids_is_set_aside_alone(fields: dict[str, bytes], reason: str) -> None:
    broken = span(2)
    for field, value in fields.items():
        setattr(broken, field, value)

    decoded = decode(request([span(1), broken, span(3)]).SerializeToString())

    assert [read.span_id[-1] for read in decoded.spans] == [1, 3]
    (damaged,) = decoded.damaged
    assert str(damaged) == f"resource_spans[0].scope_spans[0].spans[1]: {reason}"
    assert decoded.refused == 1


def test_a_parent_of_zeros_is_no_parent() -> None:
    assert only(span(parent=bytes(8))).parent_id == b""


@pytest.mark.parametrize("damage", [b"\x2a\x02\xc3\x28", b"\x4a\x03\x0a\x05k", b"\x4a\x01\xff"])
def test_a_span_that_would_poison_a_batch_is_set_aside_alone(damage: bytes) -> None:
    """A name that is not UTF-8, and attributes that are cut off or not a message."""
    good, other = span(1).SerializeToString(), span(3).SerializeToString()

    decoded = decode(raw_request([good, span(2).SerializeToString() + damage, other]))

    assert [read.span_id[-1] for read in decoded.spans] == [1, 3]
    assert [read.raw for read in decoded.spans] == [good, other]
    assert decoded.refused == 1


def test_a_damaged_resource_costs_only_its_own_spans() -> None:
    broken_resource = b"\x0a\x04\x0a\x02\xff\xff"
    lost = raw_request([span(2).SerializeToString(), span(3).SerializeToString()], broken_resource)

    decoded = decode(lost + request([span(1)]).SerializeToString())

    assert [read.span_id[-1] for read in decoded.spans] == [1]
    (damaged,) = decoded.damaged
    assert damaged.spans == 2
    assert damaged.where == "resource_spans[0].scope_spans[0]"


@pytest.mark.parametrize("content", [b"not protobuf", b'{"resourceSpans": []}', b"\x0a\x7f"])
def test_what_is_no_export_is_refused_whole(content: bytes) -> None:
    with pytest.raises(UndecodableError, match="not an export of spans in protobuf"):
        decode(content)


def test_one_resource_is_shared_by_its_spans_and_by_later_requests() -> None:
    first = decode(request([span(1), span(2)]).SerializeToString()).spans
    later = decode(request([span(3)]).SerializeToString()).spans

    assert len({id(read.resource) for read in (*first, *later)}) == 1


@pytest.mark.parametrize(
    ("resource", "process", "domain"),
    [
        (
            {names.SERVICE_INSTANCE_ID: "i", names.PROCESS_PID: 7},
            "service.name=s service.instance.id=i",
            "service.name=s service.instance.id=i",
        ),
        (
            {names.SERVICE_INSTANCE_ID: 0, names.SERVICE_NAMESPACE: "n"},
            "service.namespace=n service.name=s service.instance.id=0",
            "service.namespace=n service.name=s service.instance.id=0",
        ),
        (
            {names.HOST_ID: "h", names.HOST_NAME: "n", names.PROCESS_PID: 7},
            "host.id=h process.pid=7",
            "host.id=h",
        ),
        ({names.HOST_NAME: "n", names.PROCESS_PID: "7"}, "host.name=n process.pid=7", None),
        ({names.K8S_POD_UID: "p", names.CONTAINER_ID: "c"}, None, "k8s.pod.uid=p"),
        ({names.CONTAINER_ID: "c"}, None, "container.id=c"),
        ({names.LLMLAT_CLOCK_DOMAIN_ID: "boot", names.HOST_ID: "h"}, None, "boot"),
        ({}, None, None),
    ],
    ids=str,
)
def test_process_and_clock_domain_follow_from_the_resource(
    resource: dict[str, AttributeValue], process: str | None, domain: str | None
) -> None:
    read = only(span(), {**resource, names.SERVICE_NAME: "s"}).resource

    assert read.service == "s"
    assert read.weak == (domain is None)
    assert read.domain == (domain or _fingerprint(resource))
    assert read.process == (process or _fingerprint(resource))


def _fingerprint(resource: dict[str, AttributeValue]) -> str:
    """What stands where nothing is known: the same for the same resource, else different."""
    unknown = {names.SERVICE_NAME: "s"}
    twin = only(span(2), {**resource, **unknown}).resource
    other = only(span(), {**resource, **unknown, "x": 1}).resource
    candidates = [(twin.domain, other.domain), (twin.process, other.process)]
    (fingerprint,) = {mine for mine, others in candidates if mine != others}
    return fingerprint


@pytest.mark.parametrize(
    "other",
    [{names.SERVICE_NAME: "engine"}, {names.SERVICE_NAME: "web", names.SERVICE_NAMESPACE: "n"}],
    ids=str,
)
def test_an_instance_id_is_one_of_its_service_alone(other: dict[str, AttributeValue]) -> None:
    """Numbered replicas: resource conventions promise no more than (namespace, name, id)."""
    zero: dict[str, AttributeValue] = {names.SERVICE_INSTANCE_ID: "0"}
    one = only(span(), {names.SERVICE_NAME: "web", **zero}).resource
    two = only(span(), {**other, **zero}).resource

    assert one.process != two.process
    assert one.domain != two.domain


def test_the_same_number_as_text_and_as_integer_is_the_same_process() -> None:
    as_text = only(span(), {names.HOST_ID: "h", names.PROCESS_PID: "7"}).resource
    as_number = only(span(), {names.HOST_ID: "h", names.PROCESS_PID: 7}).resource

    assert as_text.process == as_number.process
