"""Turns the spans of a case into the processor's own spans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from llmlat_processor.model import (
    CLIENT,
    CONSUMER,
    INTERNAL,
    PRODUCER,
    SERVER,
    AttributeValue,
    Event,
    Link,
    Resource,
    Span,
)
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import (
    Phase,
    duration_attribute,
    reported_duration_attribute,
    reported_evidence_attribute,
)
from llmlat_semconv.spans import phase_span_name
from llmlat_semconv.values import AttemptOutcome, ContentKind, Evidence, StreamEnd
from llmlat_semconv.version import CONTRACT_VERSION
from tests.cases.case_format import Case, Json, refuse_unknown

KINDS: Final[Mapping[str, int]] = {
    "internal": INTERNAL,
    "server": SERVER,
    "client": CLIENT,
    "producer": PRODUCER,
    "consumer": CONSUMER,
}

# Where a case doesn't say where a span ran, all such spans ran in one place.
_ONE_PLACE: Final = "one"

_PLACE_KEYS: Final = ("service", "host", "process", "domain", "resolution")

_KNOWN_KEYS: Final = {
    *("id", "parent", "start", "end", *_PLACE_KEYS),
    *("kind", "op", "boundary", "rpc", "async", "error", "attempt", "cancelled", "lost"),
    *("phase", "phases", "reported", "bounded", "consumer", "milestones"),
    *("stream", "first_chunk", "first_useful_content", "first_is_tool_call"),
    *("call_id", "events"),
}


def spans_of(case: Case) -> list[Span]:
    """The spans of a case, in the order of the file."""
    return list(_Conversion(case).spans())


def id_bytes(name: str | None) -> bytes:
    """Span id for a name used in a case; empty for no parent."""
    return b"" if name is None else name.encode()


def name_of(span_id: bytes) -> str:
    """The name that a case uses for a span id."""
    return span_id.decode()


class _Conversion:
    """One pass over a case: what several of its spans share is made once."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._trace_id = case.name.encode()
        self._by_id = {raw["id"]: raw for raw in reversed(case.spans)}
        self._resources: dict[tuple[str | int, ...], Resource] = {}

    def spans(self) -> Iterator[Span]:
        for raw in self._case.spans:
            refuse_unknown(f"span {raw['id']}", raw, _KNOWN_KEYS)
            yield self._span(raw)

    def _span(self, raw: Json) -> Span:
        attributes = dict(self._attributes(raw))
        return Span(
            self._trace_id,
            id_bytes(raw["id"]),
            id_bytes(raw["parent"]),
            phase_span_name(raw["phase"]) if "phase" in raw else raw["id"],
            CONSUMER if raw.get("async") else KINDS[raw.get("kind", "internal")],
            self._case.instant_ns(raw["start"]),
            self._case.instant_ns(raw["end"]),
            self._resource(raw),
            is_error=raw.get("error", False),
            attributes=attributes,
            attribute_count=len(attributes),
            events=[self._event(event) for event in raw.get("events", ())],
            links=[self._link(link) for link in self._case.links if link["from_span"] == raw["id"]],
            raw=_serialized(raw),
        )

    def _resource(self, raw: Json) -> Resource:
        place = self._place(raw)
        host = place.get("host", _ONE_PLACE)
        process = place.get("process", host)
        service = place.get("service", "svc")
        domain = place.get("domain", host)
        resolution_ns = self._case.duration_ns(place.get("resolution", 0))
        key = (service, host, process, domain, resolution_ns)
        if key not in self._resources:
            attributes: dict[str, AttributeValue] = {
                names.SERVICE_NAME: service,
                names.SERVICE_INSTANCE_ID: process,
                names.HOST_ID: host,
            }
            if "domain" in place:
                attributes[names.LLMLAT_CLOCK_DOMAIN_ID] = domain
            if resolution_ns:
                attributes[names.LLMLAT_CLOCK_DOMAIN_RESOLUTION] = resolution_ns
            self._resources[key] = Resource(
                attributes, service=service, process=process, domain=domain, weak=False
            )
        return self._resources[key]

    def _place(self, raw: Json) -> Json:
        """Where a span ran; a phase span ran where its operation did."""
        visited: set[str] = set()
        while "phase" in raw and raw["parent"] in self._by_id and raw["id"] not in visited:
            visited.add(raw["id"])
            raw = self._by_id[raw["parent"]]
        return {key: raw[key] for key in _PLACE_KEYS if key in raw}

    def _attributes(self, raw: Json) -> Iterator[tuple[str, AttributeValue]]:
        for key, name in _COPIED.items():
            if key in raw:
                yield name, raw[key]
        if "boundary" in raw:
            yield names.LLMLAT_CONTRACT_VERSION, CONTRACT_VERSION
        if raw.get("rpc"):
            yield names.RPC_SYSTEM, "grpc"
        yield from self._durations(raw)
        yield from self._first_content(raw)
        yield from _outcome(raw)

    def _durations(self, raw: Json) -> Iterator[tuple[str, AttributeValue]]:
        for phase, amount in raw.get("phases", {}).items():
            yield duration_attribute(Phase(phase)), self._seconds(amount)
        for phase, amount in raw.get("reported", {}).items():
            yield reported_duration_attribute(Phase(phase)), self._seconds(amount)
        for phase in raw.get("bounded", ()):
            yield reported_evidence_attribute(Phase(phase)), Evidence.BOUNDED.value
        if "consumer" in raw:
            yield names.LLMLAT_CONSUMER_DURATION, self._seconds(raw["consumer"])

    def _first_content(self, raw: Json) -> Iterator[tuple[str, AttributeValue]]:
        if "first_chunk" in raw:
            after = self._seconds(raw["first_chunk"] - raw["start"])
            yield names.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK, after
        if "first_useful_content" not in raw:
            return
        after = self._seconds(raw["first_useful_content"] - raw["start"])
        yield names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT, after
        kind = ContentKind.TOOL_CALL if raw.get("first_is_tool_call") else ContentKind.TEXT
        yield names.LLMLAT_RESPONSE_FIRST_CONTENT_KIND, kind.value

    def _seconds(self, amount: float) -> float:
        return self._case.duration_ns(amount) / 1e9

    def _event(self, raw: Json) -> Event:
        attributes: dict[str, AttributeValue] = {}
        if "call_id" in raw:
            attributes[names.GEN_AI_TOOL_CALL_ID] = raw["call_id"]
        if "span_ids" in raw:
            attributes[names.LLMLAT_JOIN_SPAN_IDS] = [id_bytes(i).hex() for i in raw["span_ids"]]
        return Event(raw["name"], self._case.instant_ns(raw["at"]), attributes)

    def _link(self, raw: Json) -> Link:
        trace_id = id_bytes(raw.get("to_trace", self._case.name))
        relationship = {names.LLMLAT_LINK_RELATIONSHIP: raw["type"]}
        return Link(trace_id, id_bytes(raw["to_span"]), relationship)


def _serialized(raw: Json) -> bytes:
    """Bytes that tell spans apart; as on the wire, where a span ran isn't among them."""
    own = {key: value for key, value in raw.items() if key not in _PLACE_KEYS}
    return json.dumps(own, sort_keys=True).encode()


_COPIED: Final[Mapping[str, str]] = {
    "op": names.GEN_AI_OPERATION_NAME,
    "boundary": names.LLMLAT_BOUNDARY_NAME,
    "phase": names.LLMLAT_PHASE_NAME,
    "stream": names.GEN_AI_REQUEST_STREAM,
    "attempt": names.LLMLAT_ATTEMPT_NUMBER,
    "call_id": names.GEN_AI_TOOL_CALL_ID,
}


def _outcome(raw: Json) -> Iterator[tuple[str, AttributeValue]]:
    """How an operation ended: an attempt has an outcome, anything else only a stream's end."""
    cancelled, lost = raw.get("cancelled", False), raw.get("lost", False)
    if lost:
        yield names.LLMLAT_ATTEMPT_OUTCOME, AttemptOutcome.LOST.value
    elif cancelled and "attempt" in raw:
        yield names.LLMLAT_ATTEMPT_OUTCOME, AttemptOutcome.CANCELLED.value
    if cancelled and (lost or "attempt" not in raw):
        yield names.LLMLAT_STREAM_END, StreamEnd.CANCELLED.value
