"""Providing: a tracer provider of our own, for as long as the application has none.

The `OTEL_*` variables say what it is made of: `OTEL_TRACES_EXPORTER` (otlp, console, none),
`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_PROTOCOL` (grpc, http/protobuf),
`OTEL_SERVICE_NAME`, `OTEL_SDK_DISABLED` ...
"""

# ruff: noqa: PLC0415 - what may be missing or broken is imported under the guard
from __future__ import annotations

import contextvars
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from llmlat_otel.core.guard import guarded

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

EXPORT_TIMEOUT_S: Final = 3
"""Bounds how long a dead collector can delay the program's exit, unless the environment does."""

_PROTOCOLS: Final = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}

_IMPORTED_LATE: Final = {"otlp_proto_grpc": ("grpc._channel",)}

_DESTINATIONS: Final = ("OTEL_EXPORTER_OTLP_", "OTEL_TRACES_EXPORTER")

_TIMEOUTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")


def make_provider(domain_id: str) -> TracerProvider | None:
    """Make a tracer provider from the `OTEL_*` variables; None if they want none.

    Args:
        domain_id: The clock domain, named by the resource.
    """
    # Apart from what is current here: its threads live on, and would carry that along.
    return guarded("provider", contextvars.Context().run, _make_provider, domain_id)


def _make_provider(domain_id: str) -> TracerProvider | None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from llmlat_otel.destinations import CountedExporter, CountedProcessor, Destination, endpoint_of
    from llmlat_otel.exporting import is_open, opened
    from llmlat_otel.settings import is_sdk_disabled

    if is_sdk_disabled(os.environ) or not is_open():
        return None
    exporters = dict(_exporters(exporter_names(os.environ)))
    if not exporters:
        return None
    provider = TracerProvider(resource=_resource(domain_id), shutdown_on_exit=False)
    destinations = []
    for name, exporter in exporters.items():
        destination = Destination(name, endpoint_of(exporter))
        counted: Any = CountedExporter(exporter, destination)
        processor: Any = CountedProcessor(BatchSpanProcessor(counted), destination)
        provider.add_span_processor(processor)
        destinations.append(destination)
    opened(provider, destinations)
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


def _exporters(names: list[str]) -> Iterator[tuple[str, SpanExporter]]:
    """Those that can be made; one that cannot costs the others nothing."""
    from llmlat_otel.exporting import refuse

    for name in names:
        exporter = guarded(f"exporter {name}", _exporter, name)
        if exporter is None:
            refuse(f"no trace exporter {name!r} can be had; nothing is exported to it")
        else:
            yield name, exporter


def _exporter(name: str) -> SpanExporter | None:
    make = _exporter_class(name)
    if make is None:
        return None
    timeout_is_set = any(variable in os.environ for variable in _TIMEOUTS)
    takes_timeout = name in _PROTOCOLS.values() and not timeout_is_set
    return make(timeout=EXPORT_TIMEOUT_S) if takes_timeout else make()


@cache
def _exporter_class(name: str) -> Callable[..., SpanExporter] | None:
    from importlib.metadata import entry_points

    found = list(entry_points(group="opentelemetry_traces_exporter", name=name))
    return found[0].load() if found else None


def import_exporters(environment: Mapping[str, str]) -> None:
    """Import now what the first span would import: 0.2 s that belong in no event loop.

    Only where the environment says where spans go; else the application may yet say it.
    """
    if any(variable.startswith(_DESTINATIONS) for variable in environment):
        for name in exporter_names(environment):
            guarded(f"exporter {name}", _exporter_class, name)
            guarded(f"exporter {name}", _import_what_it_needs, name)


def _import_what_it_needs(exporter: str) -> None:
    """What an exporter imports only as it is made."""
    for module in ("llmlat_otel.destinations", *_IMPORTED_LATE.get(exporter, ())):
        with suppress(ImportError):  # It is another version's.
            import_module(module)


def _resource(domain_id: str) -> Resource:
    """What this process is; what the environment says of it comes first."""
    import uuid

    from opentelemetry.sdk.resources import Resource

    from llmlat_semconv import attributes as names

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


def provide() -> None:
    """Have a provider made at first need, and import now what it will be made of."""
    from llmlat_otel.core.runtime import provide_when_none
    from llmlat_otel.settings import is_sdk_disabled

    if is_sdk_disabled(os.environ):
        return
    import opentelemetry.sdk.trace.export  # noqa: F401

    provide_when_none(make_provider)
    import_exporters(os.environ)
