"""What a processor tells of itself: pages to be fetched, and metrics that are sent."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from http import HTTPStatus
from typing import Final, Protocol

import orjson

from llmlat_processor.edges.exporter import Exporter
from llmlat_processor.edges.http_health import HEALTH, READINESS
from llmlat_processor.edges.sending import Signal
from llmlat_processor.edges.telemetry_server import Page, TelemetryServer
from llmlat_processor.metrics.own import Usage, own_families
from llmlat_processor.model.families import Family
from llmlat_processor.model.status import Status
from llmlat_processor.service.errands import Errand
from llmlat_processor.settings import Deployment
from llmlat_processor.views.prometheus import exposition
from llmlat_processor.wire.metrics import encode_metrics
from llmlat_semconv import attributes as names

METRICS: Final = "/metrics"
STATUS: Final = "/status"

SERVICE: Final = "llmlat-processor"

LAST_REPORT_S: Final = 2.0
"""How long the end waits for whoever collects metrics: no span depends on it."""

_TEXT: Final = "text/plain; charset=utf-8"
_JSON: Final = "application/json"
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class Told(Protocol):
    """Whoever tells of itself."""

    def status(self) -> Status:
        """What it is at."""

    def why_not_ready(self) -> str:
        """Why nobody should send spans now; empty where they may. Never waits."""

    def families(self) -> Sequence[Family]:
        """Metrics of the traces that were explained."""

    @property
    def started_ns(self) -> int:
        """When it began to count: wall time."""

    @property
    def usage(self) -> Usage:
        """What it has used of the machine."""


class Telemetry:
    """The pages of a processor where it has an address for them, and its reports."""

    def __init__(self, deployment: Deployment, told: Told) -> None:
        """Serve, and report nothing yet.

        Raises:
            OSError: the address cannot be had; the message says what to do.
            ValueError: it is not a host and a port.
        """
        metering = deployment.metering
        self.errands: list[Errand] = []
        with ExitStack() as stack:
            self._server = None
            if deployment.telemetry is not None:
                self._server = TelemetryServer(deployment.telemetry, pages(told))
                stack.callback(self._server.stop)
            if metering.destination is not None:
                exporter = Exporter(metering.destination, signal=Signal.METRICS)
                stack.callback(exporter.stop, LAST_REPORT_S)
                reports = Reports(exporter, told, metering.destination.delivery.request_bytes)
                stack.callback(reports.send)
                self.errands.append(Errand(metering.interval_s, reports.send))
            self._end = stack.pop_all()

    @property
    def address(self) -> str:
        """Where it tells of itself; empty for nowhere."""
        return "" if self._server is None else self._server.address

    def stop(self) -> None:
        """Send a last report, and tell no more."""
        self._end.close()


def pages(told: Told) -> Mapping[str, Page]:
    """Each path, and what is told there."""

    def health(_accept: str) -> tuple[int, str, bytes]:
        return HTTPStatus.OK, _TEXT, b"ok"

    def readiness(_accept: str) -> tuple[int, str, bytes]:
        why = told.why_not_ready()
        status = HTTPStatus.SERVICE_UNAVAILABLE if why else HTTPStatus.OK
        return status, _TEXT, (why or "ok").encode()

    def metrics(accept: str) -> tuple[int, str, bytes]:
        shown = exposition(all_families(told), accept)
        return HTTPStatus.OK, shown.content_type, shown.content

    def status(_accept: str) -> tuple[int, str, bytes]:
        return HTTPStatus.OK, _JSON, orjson.dumps(told.status().document())

    return {HEALTH: health, READINESS: readiness, METRICS: metrics, STATUS: status}


def all_families(told: Told) -> list[Family]:
    """Metrics of the traces and of the processor itself."""
    own = own_families(told.status(), told.started_ns, told.usage)
    return [*told.families(), *own]


def usage_now() -> Usage:
    """What this process has used of the machine."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - no path, a view of the kernel
        pages_held = int(file.read().split()[1])
    return Usage(used.ru_utime + used.ru_stime, pages_held * _PAGE_BYTES)


class Reports:
    """Sends the metrics to where they go, now and then."""

    def __init__(self, exporter: Exporter, told: Told, limit_bytes: int) -> None:
        """Send nothing yet.

        Args:
            exporter: of metrics; whoever made it stops it.
            told: whose metrics.
            limit_bytes: largest request.
        """
        self._exporter = exporter
        self._told = told
        self._limit_bytes = limit_bytes
        self._resource = _resource()

    def send(self) -> None:
        """One report; left out while an earlier one still waits."""
        if self._exporter.counts.queued:
            return
        families = all_families(self._told)
        now_ns = time.time_ns()
        for request in encode_metrics(
            families, self._resource, now_ns, limit_bytes=self._limit_bytes
        ):
            self._exporter.put(request)


def _resource() -> Mapping[str, str]:
    instance = f"{socket.gethostname()}:{os.getpid()}"
    return {names.SERVICE_NAME: SERVICE, names.SERVICE_INSTANCE_ID: instance}
