"""Who emitted a span: process, clock domain and service, read from the resource's attributes."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from llmlat_processor.model import Attributes, Resource
from llmlat_processor.wire.slim import join_request
from llmlat_processor.wire.values import read_pairs
from llmlat_semconv import attributes as names

_HOSTS: Final = (names.HOST_ID, names.HOST_NAME)
_CLOCKS: Final = (
    names.HOST_ID,
    names.K8S_POD_UID,
    names.CONTAINER_ID,
    names.SERVICE_INSTANCE_ID,
)
"""Attributes whose bearers share a clock, the best first."""


def resource_of(emptied: bytes) -> Resource:
    """The resource of a serialized ResourceSpans.

    Raises:
        DecodeError: the full schema does not accept it.
    """
    request = ExportTraceServiceRequest.FromString(join_request([emptied]))
    message = request.resource_spans[0].resource
    attributes = read_pairs(message.attributes)
    fingerprint = blake2b(message.SerializeToString(deterministic=True), digest_size=8).hexdigest()
    domain = _domain(attributes)
    return Resource(
        attributes,
        service=_text(attributes, names.SERVICE_NAME),
        process=_process(attributes) or fingerprint,
        domain=domain or fingerprint,
        weak=not domain,
    )


def _process(attributes: Attributes) -> str:
    instance = _text(attributes, names.SERVICE_INSTANCE_ID)
    if instance:
        return instance
    host, pid = _first(attributes, _HOSTS), _text(attributes, names.PROCESS_PID)
    return f"{host} {names.PROCESS_PID}={pid}" if host and pid else ""


def _domain(attributes: Attributes) -> str:
    """The declared domain as it is, since spans may name it too; else what shares a clock."""
    return _text(attributes, names.LLMLAT_CLOCK_DOMAIN_ID) or _first(attributes, _CLOCKS)


def _first(attributes: Attributes, candidates: Iterable[str]) -> str:
    """The first attribute that says something, with its name, so that no two kinds are mixed up."""
    values = ((name, _text(attributes, name)) for name in candidates)
    return next((f"{name}={value}" for name, value in values if value), "")


def _text(attributes: Attributes, name: str) -> str:
    """An attribute as text, whatever its type: process ids come as numbers and as text."""
    value = attributes.get(name)
    return "" if value is None else str(value)
