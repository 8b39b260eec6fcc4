"""Jaeger's JSON to spans: what comes back of what was sent, and what damage costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from llmlat_processor.model import (
    CLIENT,
    INTERNAL,
    Assumptions,
    Event,
    ExplainedTrace,
    Link,
    Resource,
    Span,
)
from llmlat_processor.model import Path as CriticalPath
from llmlat_processor.pipeline import process
from llmlat_processor.views.lane import lane
from llmlat_processor.wire import Decoded, UndecodableError, decode_document
from llmlat_processor.wire.jaeger_fields import ARRAYS
from llmlat_semconv import attributes as names
from llmlat_semconv import events
from tests.cases.case_format import Case
from tests.cases.case_spans import spans_of
from tests.llmlat_processor.adviser import APP, MS, START_NS, TRACE_ID, adviser_spans, span
from tests.llmlat_processor.jaeger_answers import jaeger_answer, tag
from tests.properties.canonical import sections
from tests.properties.traces import call_traces

MODEL = Path(__file__).parents[2] / "semconv" / "model"
OF_JAEGER = Assumptions(resolution_ns=1_000)


def read(answer: str) -> list[Span]:
    decoded = decode_document(answer.encode())
    assert not decoded.damaged
    return list(decoded.spans)


def one(**changes: Any) -> Any:
    """A trace of one span, as a tree, with some of the span's fields changed."""
    tree = json.loads(jaeger_answer([span(1, 0, "root", 0, 10)]))
    tree["data"][0]["spans"][0].update(changes)
    return tree


def read_one(**changes: Any) -> Span:
    (found,) = read(json.dumps(one(**changes)))
    return found


def read_tree(tree: Any) -> Decoded:
    return decode_document(json.dumps(tree).encode())


def both_paths(explained: ExplainedTrace) -> list[CriticalPath]:
    paths = [path for root in explained.paths.roots for path in (root.e2e, root.ttft)]
    return [path for path in paths if path is not None]


# ── What comes back ──────────────────────────────────────────────────────────────────────────────


def test_every_field_comes_back() -> None:
    sent = Span(
        TRACE_ID,
        b"\0\0\0\0\0\0\0\x07",
        b"\0\0\0\0\0\0\0\x01",
        "chat gemma",
        CLIENT,
        START_NS,
        START_NS + 5 * MS,
        APP,
        is_error=True,
        scope="test",
        attributes={
            names.GEN_AI_OPERATION_NAME: "chat",
            names.GEN_AI_REQUEST_STREAM: True,
            names.GEN_AI_USAGE_INPUT_TOKENS: 12,
            names.LLMLAT_CLOCK_MONOTONIC_START: 2**60 + 1,
            names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT: 0.25,
            names.LLMLAT_STREAM_GAP_BUCKET_COUNTS: (1, 2),
            "of an app's": b"\0\xff",
        },
        attribute_count=7,
        events=[Event(events.LLMLAT_JOIN, START_NS + MS, {names.LLMLAT_JOIN_SPAN_IDS: ("0a",)})],
        links=[Link(TRACE_ID, b"\0\0\0\0\0\0\0\x09")],
    )

    (got,) = read(jaeger_answer([sent]))

    for field in ("trace_id", "span_id", "parent_id", "name", "kind", "start_ns", "end_ns"):
        assert getattr(got, field) == getattr(sent, field), field
    assert (got.is_error, got.scope, got.attribute_count) == (True, "test", 7)
    assert got.attributes == sent.attributes
    assert [(e.name, e.at_ns, e.attributes) for e in got.events] == [
        (events.LLMLAT_JOIN, START_NS + MS, {names.LLMLAT_JOIN_SPAN_IDS: ("0a",)})
    ]
    assert [(link.trace_id, link.span_id) for link in got.links] == [
        (TRACE_ID, b"\0\0\0\0\0\0\0\x09")
    ]
    assert got.resource.service == "adviser"
    assert got.resource.domain == f"{names.HOST_ID}=laptop"


def test_the_arrays_are_those_of_the_contract() -> None:
    groups = [yaml.safe_load(path.read_text("utf-8")) for path in sorted(MODEL.glob("*.yaml"))]
    arrays = set()
    for group in groups:
        for attribute in group.get("attributes", ()):
            kind = attribute.get("type") or attribute.get("annotations", {}).get("type", "")
            if isinstance(kind, str) and kind.endswith("[]"):
                arrays.add(attribute["key"])
        for used in group.get("attribute_groups", ()):
            for attribute in used.get("attributes", ()):
                kind = attribute.get("annotations", {}).get("type", "")
                if isinstance(kind, str) and kind.endswith("[]"):
                    arrays.add(attribute["ref"])
    assert arrays == ARRAYS


def test_a_text_that_only_looks_like_an_array_stays_one() -> None:
    chat = tag(names.GEN_AI_OPERATION_NAME, "chat")
    for text in ("[", "[[1]]", "{}", "[null]", "[18446744073709551615]"):
        got = read_one(tags=[chat, tag(names.GEN_AI_RESPONSE_FINISH_REASONS, text)])
        assert got.attributes[names.GEN_AI_RESPONSE_FINISH_REASONS] == text


def test_short_ids_are_those_with_leading_zeros() -> None:
    got = read_one(
        traceID="1f",
        spanID="a",
        references=[{"refType": "CHILD_OF", "traceID": "001f", "spanID": "b"}],
    )
    assert got.trace_id == b"\x1f".rjust(16, b"\0")
    assert (got.span_id, got.parent_id) == (b"\n".rjust(8, b"\0"), b"\x0b".rjust(8, b"\0"))


@pytest.mark.parametrize(
    ("kinds", "parent"),
    [(("FOLLOWS_FROM", "CHILD_OF"), 2), (("FOLLOWS_FROM", "FOLLOWS_FROM"), 1), ((), 0)],
)
def test_the_parent_is_the_one_that_jaeger_takes(kinds: tuple[str, ...], parent: int) -> None:
    near = [
        {"refType": kind, "traceID": TRACE_ID.hex(), "spanID": f"{number}"}
        for number, kind in enumerate(kinds, start=1)
    ]
    far = {"refType": "CHILD_OF", "traceID": "77", "spanID": "7"}

    got = read_one(references=[far, *near], tags=[tag(names.GEN_AI_OPERATION_NAME, "chat")])

    assert int.from_bytes(got.parent_id, "big") == parent
    assert len(got.links) == len(kinds) + 1 - bool(parent)


@pytest.mark.parametrize(
    ("tags", "is_error"),
    [
        ([tag("error", True)], True),
        ([tag("error", "true")], True),
        ([tag("otel.status_code", "ERROR")], True),
        ([tag("error", False)], False),
        ([tag("otel.status_code", "OK")], False),
    ],
)
def test_a_failure_is_told_by_its_tag(tags: list[Any], is_error: bool) -> None:
    assert read_one(tags=tags).is_error == is_error


def test_tags_without_a_type_have_that_of_their_value() -> None:
    said = {
        names.GEN_AI_OPERATION_NAME: "chat",
        names.GEN_AI_REQUEST_STREAM: True,
        "n": 3,
        "f": 0.5,
    }
    got = read_one(tags=[{"key": key, "value": value} for key, value in said.items()])
    assert got.attributes == said


def test_what_jaegers_own_clients_say_of_themselves_is_understood() -> None:
    tree = one()
    tree["data"][0]["processes"]["p1"] = {"serviceName": "s", "tags": [tag("hostname", "h")]}
    (got,) = read_tree(tree).spans
    assert got.resource.attributes[names.HOST_NAME] == "h"


def test_a_service_without_a_name_has_none() -> None:
    tree = one()
    tree["data"][0]["processes"]["p1"] = {"serviceName": "OTLPResourceNoServiceName", "tags": []}
    (got,) = read_tree(tree).spans
    assert got.resource.service == ""


def test_a_process_of_its_own_is_what_elasticsearch_stores() -> None:
    got = read_one(process={"serviceName": "own", "tags": []}, processID="")
    assert got.resource.service == "own"


def test_microseconds_are_said_to_be_what_they_are() -> None:
    explained = process(read(jaeger_answer(adviser_spans())))
    assert set(explained.aligned.resolutions_ns.values()) == {1_000}


# ── What is made of it ───────────────────────────────────────────────────────────────────────────


def test_a_trace_from_jaeger_has_the_same_account() -> None:
    direct, from_jaeger = process(adviser_spans()), process(read(jaeger_answer(adviser_spans())))

    assert [sections(path) for path in both_paths(from_jaeger)] == [
        sections(path) for path in both_paths(direct)
    ]
    assert [finding.of for finding in from_jaeger.findings] == [
        finding.of for finding in direct.findings
    ]


def test_what_was_added_before_changes_nothing() -> None:
    """Jaeger holds the lane, and our attributes on the spans: neither is evidence."""
    direct = process(adviser_spans())
    stored = [*adviser_spans_of(direct), *lane(direct)]

    again = process(read(jaeger_answer(stored, direct.annotations)))

    assert len(again.trace.spans) == len(stored)
    assert [sections(path) for path in both_paths(again)] == [
        sections(path) for path in both_paths(direct)
    ]
    assert [dict(a.attributes) for a in again.annotations.values()] == [
        {**a.attributes, names.LLMLAT_CRITICAL_PATH_EPSILON: 1e-06}
        if names.LLMLAT_CRITICAL_PATH_EPSILON in a.attributes
        else dict(a.attributes)
        for a in direct.annotations.values()
    ]


def adviser_spans_of(explained: ExplainedTrace) -> list[Span]:
    return list(explained.trace.spans)


def test_below_a_microsecond_only_slivers_are_lost() -> None:
    """Stamps of odd nanoseconds: Jaeger floors each start and each duration."""
    odd = adviser_spans()
    for number, each in enumerate(odd):
        each.start_ns += 137 * number % 1_000
        each.end_ns += 61 * number % 1_000

    direct, from_jaeger = process(odd), process(read(jaeger_answer(odd)))

    for sharp, blurred in zip(both_paths(direct), both_paths(from_jaeger), strict=True):
        for label, size in sharp.totals_ns.items():
            if size > 10_000:
                assert abs(blurred.totals_ns[label] - size) < 10_000, label
        assert abs(blurred.duration_ns - sharp.duration_ns) < 1_000


@given(call_traces())
def test_any_trace_from_jaeger_has_the_same_account(case: Case) -> None:
    """Its stamps are whole milliseconds; links are left out, since Jaeger loses what they say."""
    spans = [_storable(each) for each in spans_of(case)]

    direct = process(spans, OF_JAEGER)
    from_jaeger = process(read(jaeger_answer(spans)), OF_JAEGER)

    assert [sections(path) for path in both_paths(from_jaeger)] == [
        sections(path) for path in both_paths(direct)
    ]
    kinds = [finding.kind for finding in direct.findings]
    assert [finding.kind for finding in from_jaeger.findings] == kinds


def _storable(each: Span) -> Span:
    """With ids of a full length, and without what is not on the wire."""
    each.trace_id, each.links, each.raw = TRACE_ID, (), b""
    each.span_id = each.span_id[-8:].rjust(8, b"\0")
    each.parent_id = each.parent_id and each.parent_id[-8:].rjust(8, b"\0")
    return each


# ── Damage ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"spanID": "xyz"}, "spanID: 'xyz' is not up to 16 hexadecimal digits"),
        ({"spanID": "0"}, "span_id is all zeros"),
        ({"traceID": None}, "traceID: is missing"),
        ({"startTime": 1.5}, "startTime: 1.5 is not an exact integer"),
        ({"startTime": -1}, "startTime: -1 is no number of microseconds"),
        ({"duration": 2**63}, "duration: 9223372036854775808 has more than 64 bits"),
        ({"duration": 2**54}, "duration: ends later than OTLP can say"),
        ({"processID": "p9"}, "processID: there is no process 'p9'"),
        ({"tags": "none"}, "tags: is text, not an array"),
        ({"tags": [{"value": 1}]}, "tags[0].key: is missing"),
        (
            {"tags": [{"key": "k", "type": "int64", "value": "x"}]},
            "tags[0].value: 'x' is not an integer",
        ),
        (
            {"tags": [{"key": "k", "type": "float64", "value": True}]},
            "tags[0].value: True is not a number",
        ),
        (
            {"tags": [{"key": "k", "type": "binary", "value": "?"}]},
            "tags[0].value: is not base64",
        ),
        ({"tags": [{"key": "k", "type": [], "value": {}}]}, "tags[0].value: {} is not text"),
        (
            {"references": [{"refType": "CHILD_OF", "traceID": "1", "spanID": "-"}]},
            "references[0].spanID: '-' is not up to 16",
        ),
        ({"logs": [{"timestamp": "soon"}]}, "logs[0].timestamp: 'soon' is not an integer"),
    ],
)
def test_a_damaged_span_costs_only_itself(changes: dict[str, Any], told: str) -> None:
    tree = one(**changes)
    sound = one(spanID="5")["data"][0]["spans"][0]
    tree["data"][0]["spans"].append(sound)

    decoded = read_tree(tree)

    assert [got.span_id[-1] for got in decoded.spans] == [5]
    (damaged,) = decoded.damaged
    assert str(damaged).startswith("data[0].spans[0]")
    assert told in str(damaged)
    assert damaged.spans == 1


def test_a_damaged_process_costs_its_own_spans() -> None:
    other = Resource({names.SERVICE_NAME: "o"}, service="o", process="o", domain="o", weak=False)
    spans = [span(1, 0, "root", 0, 9), span(2, 1, "a", 1, 2, other), span(3, 1, "b", 3, 4, other)]
    tree = json.loads(jaeger_answer(spans))
    tree["data"][0]["processes"]["p2"]["tags"] = [{}]

    decoded = read_tree(tree)

    assert [got.span_id[-1] for got in decoded.spans] == [1]
    assert [(str(d), d.spans) for d in decoded.damaged] == [
        ("data[0].processes.p2.tags[0].key: is missing", 2)
    ]


@pytest.mark.parametrize("trace", [None, [], {"spans": 3}, {"spans": [], "processes": [1]}])
def test_a_damaged_trace_costs_only_itself(trace: Any) -> None:
    tree = one()
    tree["data"].append(trace)

    decoded = read_tree(tree)

    assert len(decoded.spans) == 1
    assert str(decoded.damaged[0]).startswith("data[1]")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"data": None, "errors": [{"code": 404, "msg": "trace not found"}]}, "trace not found"),
        ({"data": [], "errors": None}, "nothing was found"),
        ({"data": [], "errors": 5}, "nothing was found"),
        (
            {"data": [], "errors": [{"msg": "\x1b[2J" + "long " * 99}]},
            r"trace:  \[2Jlong .*\.\.\.$",
        ),
        ({"error": {"message": "\r\x1b[31mgone"}}, r"trace:   \[31mgone$"),
        ({"error": {"httpCode": 404, "message": "No traces found"}}, "No traces found"),
        ({"result": {}}, "result.resourceSpans: missing"),
        ({"data": []}, "resourceSpans: missing"),
    ],
)
def test_an_answer_without_a_trace_says_why(answer: Any, told: str) -> None:
    with pytest.raises(UndecodableError, match=told):
        read_tree(answer)


def test_an_answer_of_the_api_v3_is_otlp() -> None:
    spans = [{"traceId": "0a" * 16, "spanId": "0b" * 8}, {"traceId": "xyz"}]
    decoded = read_tree({"result": {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}})
    assert [got.span_id for got in decoded.spans] == [b"\x0b" * 8]
    assert decoded.damaged[0].where.startswith("result.resourceSpans[0].scopeSpans[0].spans[1]")


def test_internal_is_a_kind_and_none_is_none() -> None:
    assert read_one().kind == INTERNAL
    assert read_one(tags=[]).kind == 0
