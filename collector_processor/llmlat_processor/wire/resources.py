"""Who emitted a span: process, clock domain and service, read from the resource's attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from llmlat_processor.model import Attributes, Resource
from llmlat_processor.wire.slim import join_request
from llmlat_processor.wire.values import read_pairs
from llmlat_semconv import attributes as names

_HOSTS: Final = (names.HOST_ID, names.HOST_NAME)
_CLOCKS: Final = (names.HOST_ID, names.K8S_POD_UID, names.CONTAINER_ID)
"""Attributes whose bearers share a clock, the best first."""

_SERVICE: Final = (names.SERVICE_NAMESPACE, names.SERVICE_NAME)
"""What an instance id is unique within; alone it may be the `0` of each of two services."""


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
    instance = _instance(attributes)
    if instance:
        return instance
    host, pid = _first(attributes, _HOSTS), _text(attributes, names.PROCESS_PID)
    return f"{host} {names.PROCESS_PID}={pid}" if host and pid else ""


def _instance(attributes: Attributes) -> str:
    """An instance of a service by its whole name; empty where it has no id of its own."""
    if not _text(attributes, names.SERVICE_INSTANCE_ID):
        return ""
    return " ".join(_said(attributes, (*_SERVICE, names.SERVICE_INSTANCE_ID)))


def _domain(attributes: Attributes) -> str:
    """The declared domain as it is, since spans may name it too; else what shares a clock."""
    declared = _text(attributes, names.LLMLAT_CLOCK_DOMAIN_ID)
    return declared or _first(attributes, _CLOCKS) or _instance(attributes)


def _first(attributes: Attributes, candidates: Iterable[str]) -> str:
    return next(_said(attributes, candidates), "")


def _said(attributes: Attributes, candidates: Iterable[str]) -> Iterator[str]:
    """The attributes that say something, with their names, so that no two kinds are mixed up."""
    values = ((name, _text(attributes, name)) for name in candidates)
    return (f"{name}={value}" for name, value in values if value)


def _text(attributes: Attributes, name: str) -> str:
    """An attribute as text, whatever its type: process ids come as numbers and as text."""
    value = attributes.get(name)
    return "" if value is None else str(value)
