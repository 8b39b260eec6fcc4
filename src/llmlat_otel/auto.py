"""The one import: `import llmlat_otel.auto`, and every supported library is timed.

It works before and after the libraries are imported. Spans go to the tracer provider that the
application has set, whenever it sets it. Where it sets none, the `OTEL_*` variables say where they
go: `OTEL_TRACES_EXPORTER` (otlp, console, none), `OTEL_EXPORTER_OTLP_ENDPOINT`,
`OTEL_EXPORTER_OTLP_PROTOCOL` (grpc, http/protobuf), `OTEL_SERVICE_NAME`, `OTEL_SDK_DISABLED` ...
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from llmlat_otel import instrument
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.runtime import provide_when_none
from llmlat_semconv import attributes as names

_logger = logging.getLogger("llmlat_otel")

EXPORT_TIMEOUT_S: Final = 3
"""Bounds how long a dead collector can delay the program's exit, unless the environment does."""

_PROTOCOLS: Final = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}

_DESTINATIONS: Final = ("OTEL_EXPORTER_OTLP_", "OTEL_TRACES_EXPORTER")

_TIMEOUTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")


def make_provider(domain_id: str) -> TracerProvider | None:
    """Make a tracer provider from the `OTEL_*` variables; None if they want none.

    Args:
        domain_id: The clock domain, named by the resource.
    """
    environment = os.environ
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    exporters = [_exporter(name) for name in exporter_names(environment)]
    if not any(exporters):
        return None
    provider = TracerProvider(resource=_resource(domain_id))
    for exporter in filter(None, exporters):
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def exporter_names(environment: Mapping[str, str]) -> list[str]:
    """The exporters that the environment asks for, as named by their entry points."""
    listed = environment.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    protocol = (
        environment.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "").strip()
        or environment.get("OTEL_EXPORTER_OTLP_PROTOCOL", "").strip()
        or "grpc"
    )
    wanted = [each.strip() for each in listed.split(",")]
    return [
        _PROTOCOLS.get(protocol, protocol) if each == "otlp" else each
        for each in wanted
        if each not in {"", "none"}
    ]


def _exporter(name: str) -> SpanExporter | None:
    make = _exporter_class(name)
    if make is None:
        _logger.warning("there is no trace exporter %r; nothing is exported to it", name)
        return None
    timeout_is_set = any(variable in os.environ for variable in _TIMEOUTS)
    takes_timeout = name in _PROTOCOLS.values() and not timeout_is_set
    return make(timeout=EXPORT_TIMEOUT_S) if takes_timeout else make()


@cache
def _exporter_class(name: str) -> Callable[..., SpanExporter] | None:
    found = list(entry_points(group="opentelemetry_traces_exporter", name=name))
    return found[0].load() if found else None


def import_exporters(environment: Mapping[str, str]) -> None:
    """Import now what the first span would import: 0.2 s that belong in no event loop.

    Only where the environment says where spans go; else the application may yet say it.
    """
    if any(variable.startswith(_DESTINATIONS) for variable in environment):
        for name in exporter_names(environment):
            _exporter_class(name)


def _resource(domain_id: str) -> Resource:
    """What this process is; what the environment says of it comes first."""
    ours: dict[str, Any] = {
        names.LLMLAT_CLOCK_DOMAIN_ID: domain_id,
        names.SERVICE_INSTANCE_ID: str(uuid.uuid4()),
        names.PROCESS_PID: os.getpid(),
    }
    host_id = _host_id()
    if host_id is not None:
        ours[names.HOST_ID] = host_id
    return Resource(ours).merge(Resource.create())


def _host_id() -> str | None:
    """The machine's id (machine-id(5)); None where there is none."""
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip() or None
    except OSError:
        return None


provide_when_none(make_provider)
guarded("exporters", import_exporters, os.environ)
instrument()
