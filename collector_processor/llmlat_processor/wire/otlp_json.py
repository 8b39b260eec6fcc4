"""OTLP JSON to spans: each span becomes the protobuf bytes that its sender could have sent.

OTLP's JSON is not protobuf's own: ids are hexadecimal, enums are numbers. 64-bit integers come as
text or as numbers, and instants are above 2^53, so nothing may pass through a double.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import orjson
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from llmlat_processor.wire.decoded import Decoded, Origin, UndecodableError
from llmlat_processor.wire.json_fields import (
    LINK,
    RESOURCE_SPANS,
    SCOPE_SPANS,
    SPAN,
    FieldError,
    Fields,
    Json,
    array,
    fill,
)
from llmlat_processor.wire.protobuf import SpanReader

_M = TypeVar("_M", bound=Message)

_INSTEAD: Final = {
    "resource_spans": "OTLP JSON writes it resourceSpans",
    "resourceLogs": "these are logs; traces stand under resourceSpans",
    "resourceMetrics": "these are metrics; traces stand under resourceSpans",
}
"""What is found where resourceSpans should be, and what to say of it."""


def decode_json(document: bytes) -> Decoded:
    """The spans of a JSON document: an export request, TracesData, or an array of these.

    Raises:
        UndecodableError: it is not JSON, or holds something other than spans.
    """
    return decode_tree(parse(document))


def parse(document: bytes) -> Json:
    """What a JSON document says.

    Raises:
        UndecodableError: it is not JSON.
    """
    try:
        return orjson.loads(document)
    except orjson.JSONDecodeError as error:
        place = f"line {error.lineno}, " if error.lineno > 1 else ""
        where = f"{place}column {error.colno}"
        raise UndecodableError(f"not JSON: {error.msg} at {where}") from error


def decode_tree(parsed: Json, where: str = "") -> Decoded:
    """The spans of a document that is parsed already; `where` leads to it.

    Raises:
        UndecodableError: it holds something other than spans.
    """
    reading = _Reading()
    if isinstance(parsed, list):
        for index, request in enumerate(parsed):
            reading.read_request(request, f"{where}[{index}]")
    else:
        reading.read_request(parsed, where)
    return reading.spans.decoded


class _Reading:
    """One document being read; each method goes one level further in."""

    def __init__(self) -> None:
        self.spans = SpanReader(trusted=False)

    def read_request(self, request: Json, where: str) -> None:
        where = f"{where}." if where else ""
        if not isinstance(request, dict) or not isinstance(request.get("resourceSpans"), list):
            raise UndecodableError(f"{where}{_what_instead(request)}")
        for index, resource_spans in enumerate(request["resourceSpans"]):
            self._read_resource_spans(resource_spans, f"{where}resourceSpans[{index}]")

    def _read_resource_spans(self, node: Json, where: str) -> None:
        try:
            resource = _filled(ResourceSpans, RESOURCE_SPANS, _without("scopeSpans", node))
            scopes = _listed("scopeSpans", node)
        except FieldError as fault:
            self._refuse(fault, where, _spans_below(node))
            return
        for index, scope_spans in enumerate(scopes):
            self._read_scope_spans(
                scope_spans, resource.SerializeToString(), f"{where}.scopeSpans[{index}]"
            )

    def _read_scope_spans(self, node: Json, resource: bytes, where: str) -> None:
        try:
            scope = _filled(ScopeSpans, SCOPE_SPANS, _without("spans", node))
            spans = _listed("spans", node)
        except FieldError as fault:
            self._refuse(fault, where, _spans_below({"scopeSpans": [node]}))
            return
        serialized = [
            (index, raw)
            for index, span in enumerate(spans)
            if (raw := self._serialized(span, f"{where}.spans[{index}]")) is not None
        ]
        self.spans.read_spans(serialized, Origin(resource, scope.SerializeToString()), where)

    def _serialized(self, node: Json, where: str) -> bytes | None:
        """One span in protobuf; None where it had to be set aside."""
        try:
            span = _filled(Span, SPAN, _without("links", node))
            self._add_links(span, _listed("links", node), where)
        except FieldError as fault:
            self._refuse(fault, where, 1)
            return None
        return span.SerializeToString()

    def _add_links(self, span: Span, links: list[Json], where: str) -> None:
        """Take over what links can be read; a span is kept without the others."""
        for index, link in enumerate(links):
            try:
                span.links.append(_filled(Span.Link, LINK, link))
            except FieldError as fault:
                self._refuse(fault, f"{where}.links[{index}]", 0)

    def _refuse(self, fault: FieldError, where: str, spans: int) -> None:
        path = fault.path and f".{fault.path}"
        self.spans.decoded.set_aside(f"{where}{path}", str(fault), spans)


def _filled(message: Callable[..., _M], fields: Fields, node: Json) -> _M:
    try:
        return fill(message, fields, node)
    except (RecursionError, DecodeError):  # Python's own limit, and protobuf's
        raise FieldError("something in it is nested too deep") from None


def _what_instead(request: Json) -> str:
    if isinstance(request, dict):
        found = next((key for key in _INSTEAD if key in request), None)
        if found:
            return f"{found}: {_INSTEAD[found]}"
    return "resourceSpans: missing, or not an array; this is not OTLP"


def _without(key: str, node: Json) -> Json:
    """The same object less one of its fields, which is read by itself."""
    return {**node, key: None} if isinstance(node, dict) else node


def _listed(key: str, node: Json) -> list[Json]:
    """The parts of an object under a name; none where there is no such name."""
    try:
        return array(node.get(key) or [])
    except FieldError as fault:
        raise fault.under(key) from None


def _spans_below(resource_spans: Json) -> int:
    """How many spans are lost with a ResourceSpans, as far as that can be counted."""
    lists = [[resource_spans]]
    for key in ("scopeSpans", "spans"):
        nodes = [node for nodes in lists for node in nodes if isinstance(node, dict)]
        lists = [node[key] for node in nodes if isinstance(node.get(key), list)]
    return sum(map(len, lists))
