"""One of several processes that share the work: a processor that is asked and ended by its parent.

    parent ── spans, over a socket of its own ──> processor ──> destinations
      └────── asks, over a pipe ─────────────────────┘

A parent that is gone is the end of it as well: what is held is sent on.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from llmlat_processor.edges.grpc_receiver import UNIX
from llmlat_processor.garbage import relax_collector
from llmlat_processor.metrics.own import Usage
from llmlat_processor.model.counts import FindingCount
from llmlat_processor.model.families import Family
from llmlat_processor.model.status import Status
from llmlat_processor.pipeline import process
from llmlat_processor.service.processor import Processor
from llmlat_processor.settings import Deployment, Destination, Listener, Metering
from llmlat_processor.window import Limits

LOOK_S: Final = 0.25
CONNECT_S: Final = 1.0

_logger = logging.getLogger("llmlat_processor")


class Ask(Enum):
    """What a worker is asked."""

    STATUS = "status"
    REPORT = "report"  # with all its series, which takes a moment
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker answers.

    Attributes:
        status: what it is at.
        families: metrics of its traces.
        found: how often what was found in them.
        usage: what it has used of the machine.
        silent: its destinations where nobody answered as it was started; of the first report.
        is_whole: whether metrics and findings are told.
    """

    status: Status
    families: Sequence[Family]
    found: Sequence[FindingCount]
    usage: Usage
    silent: Sequence[str] = ()
    is_whole: bool = True


def deployment_of(whole: Deployment, number: int, socket: Path) -> Deployment:
    """What one of several workers is to do: its part of the traces, and of the room."""
    count = whole.workers
    settings = replace(
        whole.settings,
        window=_window_of(whole.settings.window, count),
        waiting_bytes=whole.settings.waiting_bytes // count,
    )
    journal = whole.journal
    if journal is not None:
        journal = replace(journal, max_bytes=journal.max_bytes // count)
    return replace(
        whole,
        grpc=Listener(f"{UNIX}{socket}"),
        http=None,
        spans=_part(whole.spans, count),
        derived=_part(whole.derived, count),
        settings=settings,
        journal=journal,
        state=None if whole.state is None else whole.state / f"worker-{number}",
        metering=Metering(max_series=whole.metering.max_series),
        telemetry=None,
        workers=1,
    )


def _window_of(whole: Limits, count: int) -> Limits:
    """As traces are dealt out evenly, so is the room for them."""
    held_bytes = whole.held_bytes // count
    return replace(
        whole,
        held_bytes=held_bytes,
        trace_bytes=min(whole.trace_bytes, held_bytes),
        traces=max(1, whole.traces // count),
        revision_bytes=whole.revision_bytes // count,
        tombstones=max(1, whole.tombstones // count),
        tombstone_spans=max(1, whole.tombstone_spans // count),
        remembered_traces=max(1, whole.remembered_traces // count),
    )


def _part(destination: Destination | None, count: int) -> Destination | None:
    if destination is None:
        return None
    delivery = destination.delivery
    room = max(delivery.request_bytes, delivery.queue_bytes // count)
    headers = dict(destination.headers)  # what goes to another process must be plain
    return replace(destination, headers=headers, delivery=replace(delivery, queue_bytes=room))


def work(deployment: Deployment, link: Connection) -> None:
    """The whole life of a worker; its exit code tells whether a fault of ours has ended it."""
    relax_collector()
    # Who sent one of these has told the parent as well.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    processor = _started(deployment, link)
    socket = Path(processor.address.removeprefix(UNIX))
    try:
        link.send(replace(_report(processor), silent=processor.silent(CONNECT_S)))
        _answer(processor, link)
    finally:
        processor.stop()
    try:
        link.send(_report(processor))
    except OSError:
        _logger.warning("the parent is gone: %s", processor.books())
        with suppress(OSError):  # another one is not at its end yet
            socket.parent.rmdir()


def _started(deployment: Deployment, link: Connection) -> Processor:
    try:
        return Processor(deployment, process)
    except (OSError, ValueError) as error:
        link.send(str(getattr(error, "strerror", None) or error))
        raise SystemExit(1) from error


def _answer(processor: Processor, link: Connection) -> None:
    """Until the end is asked for, or there is nobody who asks, or a fault has ended the work."""
    while not processor.has_ended(0):
        try:
            if not link.poll(LOOK_S):
                continue
            asked = link.recv()
            if asked is Ask.STOP:
                return
            link.send(_report(processor) if asked is Ask.REPORT else _brief(processor))
        except (EOFError, OSError):
            return


def _brief(processor: Processor) -> Report:
    return Report(processor.status(), (), (), processor.usage, is_whole=False)


def _report(processor: Processor) -> Report:
    return Report(processor.status(), processor.families(), processor.found(), processor.usage)
