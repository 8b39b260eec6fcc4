"""The envelopes of spans: equal ones are one object, and what a new one takes is told.

Exporters repeat theirs in every request; without that, each held span could keep one of its own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from llmlat_processor.model import Resource
from llmlat_processor.wire.decoded import Origin
from llmlat_processor.wire.resources import resource_of
from llmlat_processor.wire.slim import join_envelope, join_request

MOST_REMEMBERED: Final = 256
MOST_SHARED_BYTES: Final = 64 << 10
"""Larger envelopes are not remembered, or they would stay when their spans have long gone."""

SMALL_BYTES: Final = 512
"""What an envelope may have without being counted: that much is in every span's account."""

DECODED: Final = 3
"""An envelope and what is decoded of it take so many times its bytes."""


class Envelope(NamedTuple):
    """What spans came in, and what it says."""

    origin: Origin
    resource: Resource
    scope: str

    def bytes_for(self, origin: Origin) -> int:
        """How much more is held because spans came in this one, which may be an equal of ours."""
        size = _size(origin)
        return DECODED * size if size > SMALL_BYTES and origin is self.origin else 0


def envelope_of(origin: Origin) -> Envelope:
    """Read an envelope; of those that were seen before the first equal one.

    Raises:
        DecodeError: the full schema does not accept it.
    """
    if _size(origin) <= MOST_SHARED_BYTES:
        return _remembered(origin)
    return Envelope(origin, resource_of(origin.resource), _scope_name(origin.scope))


@lru_cache(maxsize=MOST_REMEMBERED)
def _remembered(origin: Origin) -> Envelope:
    return Envelope(origin, _resource_remembered(origin.resource), _scope_name(origin.scope))


@lru_cache(maxsize=MOST_REMEMBERED)
def _resource_remembered(emptied: bytes) -> Resource:
    return resource_of(emptied)


def _size(origin: Origin) -> int:
    return len(origin.resource) + len(origin.scope)


def _scope_name(emptied: bytes) -> str:
    """The name in a serialized ScopeSpans."""
    request = join_request([join_envelope(b"", [emptied])])
    parsed = ExportTraceServiceRequest.FromString(request)
    return parsed.resource_spans[0].scope_spans[0].scope.name
