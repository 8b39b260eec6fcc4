"""Spans in, the same spans out: each trace with what was learned of it, and nothing lost.

intake ──> a trace ── explain, lane, encode ──┐
      └──> a span that came too late, a trace without a root, ... ── as they came ──> exporter
                                                                                       │
door <──────────────── full: senders are asked to come again ──────────────────────────┘
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass
from threading import Lock
from typing import Final

from llmlat_processor.edges.addresses import are_one_place, destination_of
from llmlat_processor.edges.exporter import Exporter
from llmlat_processor.edges.receiver import REFUSED
from llmlat_processor.model import Span
from llmlat_processor.model.counts import FindingCount
from llmlat_processor.pipeline import process
from llmlat_processor.service.explaining import UNEXPLAINED, Explain, attempted
from llmlat_processor.service.intake import Intake
from llmlat_processor.service.outgoing import Outgoing, Preparation
from llmlat_processor.settings import INLINE, Settings
from llmlat_processor.window import NEVER_HELD, Released, Why
from llmlat_processor.written import OWN_SCOPE

NO_ROOT: Final = "no root"
EXPLAINED_BEFORE: Final = "explained before"


@dataclass(frozen=True, slots=True)
class Books:
    """Every span accounted for: received + added = sent + repeated + held + queued + dropped.

    Attributes:
        received: spans that were accepted.
        added: spans that were made here, for the lanes.
        sent: spans that the destination has taken over.
        repeated: spans that came again, exactly so, as their trace was held or after: sent once.
        held: spans of traces that are not complete yet, or that nobody has looked at yet.
        queued: spans that are still to be sent.
        dropped: spans that could not be sent, by reason.
        traces: how many traces were explained.
        as_they_came: spans that went on without an explanation, by reason.
        refused: spans that were damaged; their exporter was told.
        other: requests that held no spans to look at, by kind.
    """

    received: int
    added: int
    sent: int
    repeated: int
    held: int
    queued: int
    dropped: Mapping[str, int]
    traces: int
    as_they_came: Mapping[str, int]
    refused: int
    other: Mapping[str, int]

    def __str__(self) -> str:
        counts = {
            "repeated": self.repeated,
            "held": self.held,
            "to be sent": self.queued,
            **{f"dropped ({why})": count for why, count in self.dropped.items()},
            "damaged": self.refused,
            **{f"{kind} requests": count for kind, count in self.other.items()},
        }
        rest = "".join(f", {count} {what}" for what, count in counts.items() if count)
        plain = ", ".join(f"{count} ({why})" for why, count in self.as_they_came.items())
        return (
            f"{self.received} spans received, {self.added} added: {self.sent} sent{rest}; "
            f"{self.traces} traces explained" + (f", spans as they came: {plain}" if plain else "")
        )


def forward(listen: str, destination: str, *, settings: Settings = INLINE) -> Processor:
    """Receive OTLP at one address, and send it on to another with each trace explained.

    Args:
        listen: `host:port`; no host is loopback, port 0 any free one.
        destination: `host:port` of an OTLP receiver; it need not be there yet.
        settings: limits, and what is added.

    Raises:
        OSError: the address cannot be had; the message says what to do.
        ValueError: one of them is not a host and a port, or both are the same.
    """
    return Processor(listen, destination, settings, process)


class Processor:
    """A receiver, a pipeline and an exporter at work; made by `forward`."""

    def __init__(self, listen: str, destination: str, settings: Settings, explain: Explain) -> None:
        destination = destination_of(destination)
        if are_one_place(listen, destination):
            raise ValueError(f"{destination} is where it listens: spans would go round in a circle")
        self._preparation = Preparation(explain, settings.views, settings.delivery.request_bytes)
        self._lock = Lock()  # what is put into the exporter is in both books at the same instant
        self._added = self._repeated = 0
        self._traces = 0
        self._as_they_came: Counter[str] = Counter()
        self._exporter = Exporter(destination, settings.delivery)
        try:
            self._intake = Intake(listen, settings, self._hand_on, lambda: self._exporter.has_room)
        except BaseException:
            self._exporter.stop()
            raise

    @property
    def address(self) -> str:
        """Host and port that it listens on."""
        return self._intake.address

    @property
    def destination(self) -> str:
        """Host and port that it sends to."""
        return self._exporter.destination

    def is_connected(self, timeout_s: float) -> bool:
        """Whether the destination answers; waits so long for it."""
        return self._exporter.is_reachable(timeout_s)

    def has_ended(self, timeout_s: float) -> bool:
        """Whether a fault of ours has ended the work; waits so long for it. `stop` raises it."""
        return bool(wait((self._intake.work, self._exporter.work), timeout_s, FIRST_COMPLETED).done)

    def stop(self) -> None:
        """Take no more, explain all that is held, send it, and end."""
        try:
            self._intake.stop()
        except KeyboardInterrupt:  # a second Ctrl-C: who asks twice does not want to wait
            self._exporter.stop(grace_s=0)
            self._intake.stop()  # it has nothing more to explain
            raise
        finally:
            self._exporter.stop()

    def books(self) -> Books:
        """What became of every span so far."""
        other = dict(self._intake.counts)
        with self._lock:
            exported = self._exporter.counts
            added, repeated = self._added, self._repeated
            traces, as_they_came = self._traces, dict(self._as_they_came)
        received = self._intake.accepted  # after the others: it is never less than they have seen
        return Books(
            received=received,
            added=added,
            sent=exported.sent,
            repeated=repeated,
            held=received + added - repeated - exported.accepted,
            queued=exported.queued,
            dropped=exported.dropped,
            traces=traces,
            as_they_came=as_they_came,
            refused=other.pop(REFUSED, 0),
            other=other,
        )

    def found(self) -> Sequence[FindingCount]:
        """How often what was found in traces, between which services: kind by kind."""
        return self._preparation.findings.rows()

    def _hand_on(self, released: Sequence[Released]) -> None:
        """One round of the worker: traces each by itself, all that needs no look together."""
        plain: list[Span] = []
        for one in released:
            if one.why is Why.REPEATED:
                self._put(Outgoing((), added=0, repeated=len(one.spans)))
                continue
            if self._exporter.has_ended:  # nobody gets it any more
                plain += one.spans
                continue
            why = _why_not(one)
            outgoing = None if why else attempted(self._preparation.explained, one.spans)
            if outgoing is None:
                plain += one.spans
                self._count(why or UNEXPLAINED, one.spans)
            else:
                self._put(outgoing, explained=1)
        if plain:
            self._put(self._preparation.as_they_came(plain))

    def _count(self, why: str, spans: Sequence[Span]) -> None:
        with self._lock:
            self._as_they_came[why] += len(spans)

    def _put(self, outgoing: Outgoing, explained: int = 0) -> None:
        with self._lock:
            self._added += outgoing.added
            self._repeated += outgoing.repeated
            self._traces += explained
            for request in outgoing.requests:
                self._exporter.put(request)


def _why_not(released: Released) -> str:
    """Why a trace goes on as it came; empty where it is explained."""
    if released.why in NEVER_HELD:
        return released.why.value
    if released.missing:
        return Why.TRACE_FULL.value  # a path through a part of a trace is a path of nothing
    if all(span.parent_id for span in released.spans):
        return NO_ROOT
    if any(span.scope == OWN_SCOPE for span in released.spans):
        return EXPLAINED_BEFORE
    return ""
