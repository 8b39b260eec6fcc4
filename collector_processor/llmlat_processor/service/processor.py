"""One processor: spans in, the same spans or what is derived of them out, and nothing lost.

intake ──> a trace ── explain, lane, encode ──┐
      └──> a span that came too late, a trace without a root, ... ── as they came ──> destinations
                                                                                       │
door <──────────────── full: senders are asked to come again ──────────────────────────┘
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from typing import Final

from llmlat_processor.edges.exporter import SHUTDOWN, Counts
from llmlat_processor.edges.journal import Journal
from llmlat_processor.edges.journal_file import JournalError
from llmlat_processor.edges.receiver import REFUSED
from llmlat_processor.metrics.derived import Derived
from llmlat_processor.metrics.own import Delays, Usage
from llmlat_processor.model import ExplainedTrace
from llmlat_processor.model.counts import FindingCount
from llmlat_processor.model.families import Family
from llmlat_processor.model.status import Books, Journaled, Sending, Status
from llmlat_processor.pipeline import process
from llmlat_processor.service.circles import check_circles
from llmlat_processor.service.destinations import DERIVED, SPANS, Destinations
from llmlat_processor.service.doors import Doors
from llmlat_processor.service.errands import Errand, Errands
from llmlat_processor.service.explaining import Explain
from llmlat_processor.service.handing_on import HandingOn
from llmlat_processor.service.held_clocks import HeldClocks
from llmlat_processor.service.intake import Intake
from llmlat_processor.service.outgoing import Preparation
from llmlat_processor.service.settling import Settling
from llmlat_processor.service.telemetry import Telemetry, usage_now
from llmlat_processor.settings import Deployment
from llmlat_processor.window import Why

JOURNAL: Final = "journal.sqlite"
CLOCKS: Final = "clocks"

PROBED_EVERY_S: Final = 1.0
SAVED_EVERY_S: Final = 60.0

_logger = logging.getLogger("llmlat_processor")


class Processor:
    """Receivers, a pipeline and exporters at work, from the moment it is made."""

    def __init__(self, deployment: Deployment, explain: Explain = process) -> None:
        """Receive OTLP in this process, and send on what this says.

        Args:
            deployment: where from and where to, limits, and what is added.
            explain: the pipeline.

        Raises:
            OSError: an address or the journal cannot be had; the message says what to do.
            ValueError: one of them is not a host and a port, or spans would go round in a circle.
        """
        check_circles(deployment)
        self._deployment = deployment
        self._started_s = time.monotonic()
        self.started_ns: Final = time.time_ns()
        self._derived = Derived(deployment.metering.max_series)
        self._delays = Delays()
        with ExitStack() as stack:
            self._journal = _journal_of(deployment)
            if self._journal is not None:
                stack.callback(self._journal.close)
            self._clocks = _clocks_of(deployment)
            settling = Settling(self._journal)
            self._destinations = Destinations(deployment, settling.settled)
            stack.callback(self._destinations.stop, grace_s=0)
            self._handing_on = HandingOn(
                explain,
                deployment.settings.views.explained,
                Preparation(deployment),
                self._destinations,
                self._observe,
                self._delays.observe,
                self._journal,
                settling,
            )
            self._intake = Intake(
                Doors(deployment.grpc, deployment.http),
                deployment.settings,
                self._handing_on,
                self._has_room,
                self._journal,
                self._handing_on.keep,
            )
            stack.callback(self._intake.stop)
            self._telemetry = Telemetry(deployment, self)
            stack.callback(self._telemetry.stop)
            self._errands = Errands(*self._chores(), *self._telemetry.errands)
            stack.pop_all()

    @property
    def addresses(self) -> Sequence[str]:
        """Host and port of each receiver."""
        return self._intake.addresses

    @property
    def address(self) -> str:
        """Host and port of the first receiver."""
        return self._intake.addresses[0]

    @property
    def telemetry_address(self) -> str:
        """Where it tells of itself; empty for nowhere."""
        return self._telemetry.address

    @property
    def destination(self) -> str:
        """Where it sends to."""
        return ", ".join(dict.fromkeys(self._destinations.names().values()))

    def silent(self, timeout_s: float) -> Sequence[str]:
        """The destinations where nobody answers; waits so long for each."""
        return self._destinations.silent(timeout_s)

    def is_connected(self, timeout_s: float) -> bool:
        """Whether every destination answers; waits so long for each."""
        return not self.silent(timeout_s)

    def has_ended(self, timeout_s: float) -> bool:
        """Whether a fault of ours has ended the work; waits so long for it. `stop` raises it."""
        work: list[Future[None]] = [self._intake.work, *self._destinations.work]
        return bool(wait(work, timeout_s, FIRST_COMPLETED).done)

    def stop(self) -> None:
        """Take no more, explain all that is held, send it, and end."""
        with ExitStack() as stack:
            if self._journal is not None:
                stack.callback(self._journal.close)
            stack.callback(self._clocks.save)
            stack.callback(self._telemetry.stop)
            stack.callback(self._errands.stop)
            stack.push(self._send_the_rest)
            stack.callback(self._handing_on.finish)
            try:
                self._intake.stop()
            except KeyboardInterrupt:  # a second Ctrl-C: who asks twice does not want to wait
                self._destinations.stop(grace_s=0)
                self._intake.stop()  # it has nothing more to explain
                raise

    def _send_the_rest(self, fault: type[BaseException] | None, *_: object) -> None:
        self._destinations.stop(0 if fault is KeyboardInterrupt else None)

    # ── What it is at ────────────────────────────────────────────────────────────────────────────

    def books(self) -> Books:
        """What became of every span so far."""
        other = dict(self._intake.counts)
        handed, by_name = self._handing_on.snapshot()
        sending = [*by_name.values()]
        received = self._intake.accepted  # after the others: it is never less than they have seen
        released = self._intake.accounts.released
        dropped: Counter[str] = Counter()
        for counts in sending:
            dropped.update(counts.dropped)
        kept = self._kept(by_name)
        dropped[SHUTDOWN] -= kept
        accepted = sum(counts.accepted for counts in sending)
        gone = handed.repeated + handed.consumed
        return Books(
            received=received,
            added=handed.added,
            sent=sum(counts.sent for counts in sending),
            repeated=handed.repeated,
            consumed=handed.consumed,
            held=received + handed.added - gone - accepted,
            queued=sum(counts.queued for counts in sending) + kept,
            dropped=dict(+dropped),
            traces=handed.traces,
            as_they_came=handed.as_they_came,
            late=released.get(Why.LATE, 0),
            revisions=handed.revisions,
            replayed=self._intake.replayed,
            refused=other.pop(REFUSED, 0),
            other=other,
        )

    def _kept(self, counts: Mapping[str, Counts]) -> int:
        """Spans that the end has left over, and the next run sends: those that a journal has."""
        if self._journal is None:
            return 0
        return counts[SPANS if SPANS in counts else DERIVED].dropped.get(SHUTDOWN, 0)

    def found(self) -> Sequence[FindingCount]:
        """How often what was found in traces, between which services: kind by kind."""
        return self._derived.findings.rows()

    def why_not_ready(self) -> str:
        """Why nobody should send spans now; empty where they may."""
        return self._intake.why_not_ready()

    def status(self) -> Status:
        """What it is at."""
        intake = self._intake
        names = self._destinations.names()
        return Status(
            books=self.books(),
            mode=self._deployment.mode.value,
            uptime_s=round(time.monotonic() - self._started_s, 3),
            not_ready=intake.why_not_ready(),
            held_traces=intake.window.held_traces,
            held_bytes=intake.window.held_bytes,
            skeleton_bytes=intake.window.skeleton_bytes,
            forgotten_skeletons=intake.accounts.forgotten,
            waiting_bytes=intake.waiting_bytes + self._handing_on.large_bytes,
            destinations={
                f"{name} {names[name]}": _sending(counts)
                for name, counts in self._destinations.counts.items()
            },
            journal=None if self._journal is None else _journaled(self._journal),
        )

    def families(self) -> Sequence[Family]:
        """Metrics of the traces that were explained."""
        return [
            *self._derived.families(self.started_ns),
            self._delays.family(self.started_ns),
        ]

    @property
    def usage(self) -> Usage:
        """What it has used of the machine."""
        return usage_now()

    # ── What it does ─────────────────────────────────────────────────────────────────────────────

    def _observe(self, explained: ExplainedTrace) -> None:
        self._derived.observe(explained)
        self._clocks.observe(explained)

    def _has_room(self) -> bool:
        limit = self._deployment.settings.waiting_bytes
        return self._destinations.has_room and self._handing_on.large_bytes < limit

    def _chores(self) -> Sequence[Errand]:
        chores = [Errand(SAVED_EVERY_S, self._clocks.save)]
        if self._journal is not None:
            # What could not be written is tried again, whether or not somebody sends something.
            chores.append(Errand(PROBED_EVERY_S, self._journal.probe))
        return chores


def _journal_of(deployment: Deployment) -> Journal | None:
    if deployment.journal is None or deployment.state is None:
        return None
    try:
        return Journal(deployment.state / JOURNAL, deployment.journal)
    except JournalError as error:
        raise OSError(str(error)) from error


def _clocks_of(deployment: Deployment) -> HeldClocks:
    """They are good to have; no span depends on whether they can be kept."""
    path = None if deployment.state is None else deployment.state / CLOCKS
    try:
        if path is not None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        _logger.warning("%s; what is learned of clocks is not kept", error)
        path = None
    return HeldClocks(path, time.monotonic)


def _sending(counts: Counts) -> Sending:
    return Sending(
        sent=counts.sent,
        queued=counts.queued,
        queue_bytes=counts.queue_bytes,
        dropped=sum(counts.dropped.values()),
        last_error=counts.last_error,
    )


def _journaled(journal: Journal) -> Journaled:
    return Journaled(journal.batches, journal.held_bytes, journal.is_healthy)
