"""Several processes as one processor: spans are handed to the one that has their trace.

    receivers ── split by trace id ──┬──> worker-0: a processor with a journal of its own
                                     ├──> worker-1
         taken where all have taken ─┴──> ...

Whoever sends is answered when every worker has what is for it on disk. Where one has not, all of
it comes again, and those that had taken their part know it for what it is.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from llmlat_processor.edges.addresses import endpoint_of
from llmlat_processor.edges.receiver import REFUSED
from llmlat_processor.metrics.own import Usage
from llmlat_processor.metrics.series import merged
from llmlat_processor.model.counts import FindingCount, in_order
from llmlat_processor.model.families import Family
from llmlat_processor.model.status import Books, Status, together
from llmlat_processor.service.circles import check_circles
from llmlat_processor.service.crew import WorkerError, crew
from llmlat_processor.service.doors import Doors, opened
from llmlat_processor.service.errands import Errand, Errands
from llmlat_processor.service.telemetry import Telemetry, usage_now
from llmlat_processor.service.worker import Ask
from llmlat_processor.settings import Deployment
from llmlat_processor.wire import Decoded, encode
from llmlat_processor.wire.sharding import shards, unread
from llmlat_semconv.values import FindingKind

LOOKED_AFTER_EVERY_S: Final = 1.0
FOLDER_PREFIX: Final = "llmlat-"
LONGEST_FOLDER: Final = 90
"""Bytes: with the name of a socket in it, its path may have about 100."""

_logger = logging.getLogger("llmlat_processor")


class Sharded:
    """Receivers and workers; made by `run`."""

    def __init__(self, deployment: Deployment) -> None:
        check_circles(deployment)
        self._deployment = deployment
        self._started_s = time.monotonic()
        self.started_ns: Final = time.time_ns()
        with ExitStack() as stack:
            folder = _folder()
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            self._crew = crew(deployment, folder)
            stack.push(self._end_crew)
            self._receivers = opened(
                Doors(deployment.grpc, deployment.http),
                self._take,
                self.why_not_ready,
                deployment.settings.max_message_bytes,
                read=unread,
            )
            for receiver in self._receivers:
                stack.callback(receiver.stop)
            self._telemetry = Telemetry(deployment, self)
            stack.callback(self._telemetry.stop)
            self._errands = Errands(
                Errand(LOOKED_AFTER_EVERY_S, self._look_after), *self._telemetry.errands
            )
            stack.callback(self._errands.stop)
            self._end = stack.pop_all()

    @property
    def addresses(self) -> Sequence[str]:
        """Host and port of each receiver."""
        return [receiver.address for receiver in self._receivers]

    @property
    def telemetry_address(self) -> str:
        """Where it tells of itself; empty for nowhere."""
        return self._telemetry.address

    @property
    def destination(self) -> str:
        """Where it sends to."""
        named = (self._deployment.spans, self._deployment.derived)
        places = [endpoint_of(one).address for one in named if one is not None]
        return ", ".join(dict.fromkeys(places))

    def is_connected(self, timeout_s: float) -> bool:  # noqa: ARG002 - it was waited for before
        """Whether every destination answered as the first worker was started."""
        return not self._crew[0].silent

    def has_ended(self, timeout_s: float) -> bool:
        """Waits so long: workers that end are started again."""
        time.sleep(timeout_s)
        return False

    def stop(self) -> None:
        """Take no more, have every worker explain and send what it holds, and end."""
        self._end.close()

    def why_not_ready(self) -> str:
        """Why nobody should send spans now; empty where they may."""
        return next((why for one in self._crew if (why := one.not_ready)), "")

    # ── What it is at ────────────────────────────────────────────────────────────────────────────

    def books(self) -> Books:
        """What became of every span so far, in the workers as they are now."""
        return self.status().books

    def found(self) -> Sequence[FindingCount]:
        """How often what was found in traces, between which services: kind by kind."""
        counts: Counter[tuple[FindingKind, str, str]] = Counter()
        for member in self._crew:
            for row in member.report(Ask.REPORT).found:
                counts[row.kind, row.caller, row.callee] += row.total
        return in_order(FindingCount(*key, total) for key, total in counts.items())

    def status(self) -> Status:
        """What all of them are at, added up."""
        whole = together({member.name: member.report().status for member in self._crew})
        other = self._counts()
        refused = other.pop(REFUSED, 0)  # here they are counted once, however often they come
        return replace(
            whole,
            books=replace(whole.books, refused=refused, other=dict(other)),
            uptime_s=round(time.monotonic() - self._started_s, 3),
        )

    def families(self) -> Sequence[Family]:
        """Metrics of the traces that were explained, added up."""
        reports = [member.report(Ask.REPORT) for member in self._crew]
        return merged([report.families for report in reports], self._deployment.metering.max_series)

    @property
    def usage(self) -> Usage:
        """What all processes together have used of the machine."""
        used = [usage_now(), *(member.report().usage for member in self._crew)]
        return Usage(sum(one.cpu_s for one in used), sum(one.memory_bytes for one in used))

    # ── What it does ─────────────────────────────────────────────────────────────────────────────

    def _take(self, decoded: Decoded) -> str:
        """Hand every worker what is for it; taken where all have taken it."""
        content = decoded.request or encode(decoded.spans)
        parts = shards(content, len(self._crew))
        busy = [(one, part) for one, part in zip(self._crew, parts, strict=True) if part]
        for one, _ in busy:
            if not one.is_up:  # or the others would have theirs again with each new try
                return one.not_ready
        sent = [(one, one.send(part)) for one, part in busy]
        answers = [(one, answer.result()) for one, answer in sent]
        for one, answer in answers:
            if answer.why_not:
                return one.not_ready or answer.why_not
        for _, answer in answers:
            if answer.rejected or answer.message:
                decoded.set_aside("of what one worker has", answer.message, answer.rejected)
        return ""

    def _look_after(self) -> None:
        for member in self._crew:
            try:
                member.look_after()
            except WorkerError as error:  # the others are looked after as well
                _logger.warning("%s; it is tried again", error)
            member.report()

    def _counts(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for receiver in self._receivers:
            counts.update(receiver.counts)
        return counts

    def _end_crew(self, fault: type[BaseException] | None, *_: object) -> None:
        """Who asks twice does not want to wait: journals have what workers are killed with."""
        is_hurried = fault is KeyboardInterrupt
        try:
            for member in () if is_hurried else self._crew:
                member.ask_to_stop()
            for member in () if is_hurried else self._crew:
                member.join(self._drain_s())
        finally:  # those that have ended know nothing of it
            for member in self._crew:
                member.kill()

    def _drain_s(self) -> float:
        named = (self._deployment.spans, self._deployment.derived)
        return 60.0 + sum(one.delivery.drain_s for one in named if one is not None)


def _folder() -> Path:
    """Where the sockets are; with a short path, as these must have, wherever it would be else."""
    wanted = os.path.join(tempfile.gettempdir(), FOLDER_PREFIX)  # noqa: PTH118 - a prefix
    within = "/tmp" if len(os.fsencode(wanted)) > LONGEST_FOLDER else None
    return Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=within))
