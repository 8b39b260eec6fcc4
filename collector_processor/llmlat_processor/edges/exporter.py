"""Sends requests on to one destination, and keeps the books of what became of every span.

    put ──> queue ──> one thread ──> sender ──> destination
                        │   ^  not now: after a pause, longer each time, or as long as it asks for
                        │   └──┘
                        └─> not ever, or not in time: dropped, counted by reason, said now and then

The queue never refuses what is put in. It says when it is full, and whoever accepts spans from
outside then accepts no more: so what is bounded is what is in the house, and a worker that puts
something in never waits.
"""

from __future__ import annotations

import logging
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from threading import Condition
from typing import Final

from llmlat_processor.edges.grpc_sender import GrpcSender
from llmlat_processor.edges.http_sender import HttpSender
from llmlat_processor.edges.retrying import GIVEN_UP, REFUSED, REJECTED, TOO_LARGE, Round, Step
from llmlat_processor.edges.sending import NotNow, Outcome, Sender, Signal
from llmlat_processor.settings import Destination, Protocol
from llmlat_processor.wire import Request

SHUTDOWN: Final = "shutdown"
NO_ROOM: Final = "no room in its queue"

SAID_EVERY_S: Final = 600.0
"""How often each kind of trouble is said at most: it must not fill a log, and an outage of today is
not told by a line of last month."""

_SENTENCES: Final = {
    REJECTED: "{spans} of {all} spans rejected by {destination}: {words}",
    REFUSED: "refused by {destination}: {words}",
    TOO_LARGE: "a span alone is too large for {destination}: {words}",
    GIVEN_UP: "{spans} spans not taken by {destination} in time: {words}",
}

_logger = logging.getLogger("llmlat_processor")


@dataclass(frozen=True, slots=True)
class Counts:
    """Every span that was put in: accepted = sent + queued + dropped.

    Attributes:
        accepted: spans that were put in.
        sent: spans that the destination has taken over.
        queued: spans that are still to be sent.
        dropped: spans that were not, by reason.
        queue_bytes: how large those are that are queued.
        last_error: what the destination or the network said the last time that something was not
            taken; empty where that never was. Words differ where outcomes do not.
    """

    accepted: int
    sent: int
    queued: int
    dropped: Mapping[str, int]
    queue_bytes: int = field(default=0, compare=False)
    last_error: str = field(default="", compare=False)


def _nobody_asks(_settled: Sequence[Request]) -> None:
    """What is done about requests that are settled, where nobody has kept them."""


class Exporter:
    """Sends requests to one destination, from a thread of its own, from the moment it is made."""

    def __init__(
        self,
        destination: Destination,
        *,
        signal: Signal = Signal.TRACES,
        settled: Callable[[Sequence[Request]], None] = _nobody_asks,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Nothing is connected yet.

        Args:
            destination: where, how, and within which limits.
            signal: of what the requests are.
            settled: told from the exporter's thread of requests that have a last outcome: taken
                over, or dropped for good; of each once, and never of what the end leaves over.
            jitter: from 0 to 1; pauses last between half of and the whole of what they may.

        Raises:
            ValueError: the destination cannot be one; the message says what to do.
        """
        self._sender = _sender_to(destination, signal)
        self._delivery = destination.delivery
        self._has_spans = signal is Signal.TRACES
        self._settled = settled
        self._jitter = jitter
        self._changed = Condition()
        self._queue: deque[Request] = deque()
        self._bytes = self._accepted = self._sent = 0
        self._dropped: Counter[str] = Counter()
        self._last_error = ""
        self._said_s: dict[str, float] = {}  # each kind of trouble, and when it was said last
        self._is_away = False  # whether it was said that the destination takes nothing
        self._ends_s: float | None = None  # when to stop trying, once the end has been asked for
        self._has_ended = False
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="llmlat-exporter")
        self.work: Future[None] = self._threads.submit(self._run)

    @property
    def destination(self) -> str:
        """Where it sends to: `host:port`, over HTTP the URL."""
        return self._sender.destination

    def is_reachable(self, timeout_s: float) -> bool:
        """Whether somebody answers there; waits at most so long for it."""
        return self._sender.is_reachable(timeout_s)

    def put(self, request: Request, *, may_drop: bool = False) -> None:
        """Have it sent; never waits, never refuses. After the end nothing is sent any more.

        Args:
            request: spans, or metrics.
            may_drop: whether it is dropped, and counted, where the queue is full.
        """
        with self._changed:
            self._accepted += request.spans
            if self._has_ended:
                self._dropped[SHUTDOWN] += request.spans
                return
            if may_drop and self._bytes >= self._delivery.queue_bytes:
                self._dropped[NO_ROOM] += request.spans
                return
            self._queue.append(request)
            self._bytes += len(request.content)
            self._changed.notify_all()

    @property
    def has_room(self) -> bool:
        """Whether more should be accepted from outside."""
        with self._changed:
            is_over = self._has_ended or self._ends_s is not None
            return self._bytes < self._delivery.queue_bytes and not is_over

    @property
    def has_ended(self) -> bool:
        """Whether nothing is sent any more."""
        with self._changed:
            return self._has_ended

    @property
    def counts(self) -> Counts:
        """What became of every span so far."""
        with self._changed:
            dropped = dict(self._dropped)
            return Counts(
                self._accepted, self._sent, self._left, dropped, self._bytes, self._last_error
            )

    def stop(self, grace_s: float | None = None) -> None:
        """Send what there is, as long as that may take, and end; what is left is dropped.

        Args:
            grace_s: how long it may take, in seconds; None is what was set.
        """
        grace_s = self._delivery.drain_s if grace_s is None else grace_s
        with self._changed:
            self._ends_s = time.monotonic() + grace_s
            self._changed.notify_all()
        try:
            self.work.result(timeout=grace_s)
        except FutureTimeoutError:
            pass
        finally:  # also on a second Ctrl-C: the thread would keep the process
            with self._changed:
                self._ends_s = time.monotonic()
                self._changed.notify_all()
            self._sender.cancel()
            self._threads.shutdown()
            self._sender.close()
            self._close_the_books()
        self.work.result()

    # ── The thread ───────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        try:
            while requests := self._take():
                self._deliver(requests)
                with self._changed:
                    self._bytes -= sum(len(request.content) for request in requests)
        finally:
            with self._changed:
                self._has_ended = True

    def _take(self) -> Sequence[Request]:
        """The next requests, as many as fit into one; none at the end."""
        with self._changed:
            while not self._queue and self._ends_s is None:
                self._changed.wait()
            taken: list[Request] = []
            room = self._delivery.request_bytes
            while self._queue and (not taken or len(self._queue[0].content) <= room):
                taken.append(self._queue.popleft())
                room -= len(taken[-1].content)
            self._has_ended = not taken
            return taken

    def _deliver(self, requests: Sequence[Request]) -> None:
        """Send several requests as one, until they are taken or it is of no use."""
        course = Round(
            requests,
            self._delivery,
            now_s=time.monotonic(),
            jitter=self._jitter,
            has_spans=self._has_spans,
        )
        while piece := course.piece:
            outcome: Outcome = NotNow("")
            if not self._is_over():
                outcome = self._sender.send(piece.content, self._timeout_s())
            if isinstance(outcome, NotNow) and self._is_over():
                with self._changed:
                    self._dropped[SHUTDOWN] += course.spans
                return
            step = course.answered(outcome, time.monotonic())
            self._enter(step)
            if step.settled:
                self._settled(step.settled)
            if step.pause_s:
                self._pause(step.pause_s)

    def _timeout_s(self) -> float:
        with self._changed:
            timeout_s = self._delivery.deadline_s
            if self._ends_s is not None:
                timeout_s = max(0.0, min(timeout_s, self._ends_s - time.monotonic()))
            return timeout_s

    def _is_over(self) -> bool:
        with self._changed:
            return self._ends_s is not None and time.monotonic() >= self._ends_s

    def _pause(self, wait_s: float) -> None:
        """Wait, unless the end is asked for: then there is no time to lose."""
        with self._changed:
            if self._ends_s is None:
                self._changed.wait_for(lambda: self._ends_s is not None, wait_s)
            else:
                left_s = max(0.0, self._ends_s - time.monotonic())
                self._changed.wait(min(wait_s, left_s, self._delivery.first_retry_s))

    # ── The books ────────────────────────────────────────────────────────────────────────────────

    def _enter(self, step: Step) -> None:
        """Put down what came of an attempt, and warn, the first time."""
        with self._changed:
            self._sent += step.sent
            if step.dropped:
                self._dropped[step.reason] += step.dropped
            if step.words and (step.dropped or not step.sent):
                self._last_error = step.words
        if step.dropped:
            sentence = _SENTENCES[step.reason]
            words = sentence.format(
                spans=step.dropped,
                all=step.dropped + step.sent,
                destination=self.destination,
                words=step.words,
            )
            self._say(step.reason, words)
        elif step.pause_s:
            said = self._say(
                "again", f"not taken by {self.destination}, trying again: {step.words}"
            )
            self._is_away = self._is_away or said
        elif step.sent and step.words:
            self._say("message", f"{self.destination} has taken the spans and says: {step.words}")
        if step.sent and self._is_away:
            self._is_away = False
            _logger.warning("%s takes what is sent again", self.destination)

    def _say(self, kind: str, words: str) -> bool:
        """Warn, unless such a thing was said a short while ago; whether it was said now."""
        now_s = time.monotonic()
        if now_s - self._said_s.get(kind, -SAID_EVERY_S) < SAID_EVERY_S:
            return False
        self._said_s[kind] = now_s
        minutes = f"{SAID_EVERY_S / 60:g}"
        _logger.warning("%s (said once in %s minutes; the books count it)", words, minutes)
        return True

    @property
    def _left(self) -> int:
        return self._accepted - self._sent - sum(self._dropped.values())

    def _close_the_books(self) -> None:
        """Nothing is left, unless a fault of ours has ended the thread before its time."""
        with self._changed:
            if self._left:
                self._dropped[SHUTDOWN] += self._left
            self._queue.clear()
            self._bytes = 0
            left = self._dropped[SHUTDOWN]
        if left and SHUTDOWN not in self._said_s:
            self._said_s[SHUTDOWN] = time.monotonic()
            what = "spans" if self._has_spans else "points of metrics"
            _logger.warning(
                "%d %s could not be sent to %s before the end", left, what, self.destination
            )


def _sender_to(destination: Destination, signal: Signal) -> Sender:
    if destination.protocol is Protocol.HTTP:
        return HttpSender(destination, signal)
    return GrpcSender(destination, signal)
