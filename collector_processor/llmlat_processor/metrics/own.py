"""What the processor tells of itself in numbers; named as OpenTelemetry's collector names its own.

llmlat_receiver_...  ──> llmlat_processor_...  ──> llmlat_exporter_...      llmlat_journal_...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from llmlat_processor.metrics.series import Histograms, labelled
from llmlat_processor.model.families import Exemplar, Family, Labels, Number
from llmlat_processor.model.status import Books, Journaled, Sending, Status
from llmlat_semconv.metrics import Metric

_SPANS: Final = "{span}"
_BYTES: Final = "By"
_YES_OR_NO: Final = ""  # a unit of 1 would be called a ratio


def _counter(name: str, unit: str, meaning: str) -> Metric:
    return Metric(name, unit, meaning, (), "counter")


def _gauge(name: str, unit: str, meaning: str) -> Metric:
    return Metric(name, unit, meaning, (), "gauge")


ACCEPTED: Final = _counter(
    "llmlat_receiver_accepted_spans", _SPANS, "Spans that were accepted from senders."
)
REFUSED: Final = _counter(
    "llmlat_receiver_refused_spans", _SPANS, "Spans that were damaged; their sender was told."
)
OTHER: Final = _counter(
    "llmlat_receiver_other_requests", "{request}", "Requests that held no spans to look at."
)
WAITING_BYTES: Final = _gauge(
    "llmlat_receiver_waiting_bytes", _BYTES, "What was accepted and nobody has looked at yet."
)
INCOMING: Final = _counter(
    "llmlat_processor_incoming_items", "{item}", "Spans that came in, replayed ones included."
)
OUTGOING: Final = _counter(
    "llmlat_processor_outgoing_items",
    "{item}",
    "Spans that were handed on to be sent, dropped ones included.",
)
ADDED: Final = _counter("llmlat_processor_added_spans", _SPANS, "Spans that were made here.")
REPEATED: Final = _counter(
    "llmlat_processor_repeated_spans", _SPANS, "Spans whose like had come already."
)
CONSUMED: Final = _counter(
    "llmlat_processor_consumed_spans", _SPANS, "Copies of spans that were looked at, not sent."
)
HELD: Final = _gauge(
    "llmlat_processor_held_spans", _SPANS, "Spans of traces that are not complete yet."
)
HELD_TRACES: Final = _gauge(
    "llmlat_processor_held_traces", "{trace}", "Traces that are not complete yet."
)
HELD_BYTES: Final = _gauge("llmlat_processor_held_bytes", _BYTES, "Size of the held spans.")
SKELETON_BYTES: Final = _gauge(
    "llmlat_processor_skeleton_bytes", _BYTES, "What is remembered of spans that have gone on."
)
FORGOTTEN: Final = _counter(
    "llmlat_processor_forgotten_skeletons",
    _SPANS,
    "Spans that had gone on, and were forgotten before their trace could be explained.",
)
DROPPED: Final = _counter(
    "llmlat_processor_dropped_spans", _SPANS, "Spans that were lost, by reason."
)
UNEXPLAINED: Final = _counter(
    "llmlat_processor_unexplained_spans", _SPANS, "Spans that went on as they came, by reason."
)
LATE: Final = _counter(
    "llmlat_processor_late_spans", _SPANS, "Spans that came after their trace had gone on."
)
REVISIONS: Final = _counter(
    "llmlat_processor_revisions", "{trace}", "Traces that were explained again with late spans."
)
EXPLAINED: Final = _counter(
    "llmlat_processor_traces_explained", "{trace}", "Traces that were explained."
)
BALANCED: Final = _gauge(
    "llmlat_processor_books_balanced", _YES_OR_NO, "1 where every span is accounted for, else 0."
)
READY: Final = _gauge("llmlat_processor_ready", _YES_OR_NO, "1 where spans are accepted, else 0.")
SENT: Final = _counter(
    "llmlat_exporter_sent_spans", _SPANS, "Spans that the destination has taken over."
)
SEND_FAILED: Final = _counter(
    "llmlat_exporter_send_failed_spans", _SPANS, "Spans that could not be sent there for good."
)
QUEUE_SPANS: Final = _gauge(
    "llmlat_exporter_queue_spans", _SPANS, "Spans that are still to be sent there."
)
QUEUE_BYTES: Final = _gauge(
    "llmlat_exporter_queue_bytes", _BYTES, "Size of what is still to be sent there."
)
JOURNAL_BYTES: Final = _gauge("llmlat_journal_bytes", _BYTES, "What is kept on disk.")
JOURNAL_BATCHES: Final = _gauge(
    "llmlat_journal_batches", "{batch}", "Batches that are kept on disk."
)
JOURNAL_HEALTHY: Final = _gauge(
    "llmlat_journal_healthy", _YES_OR_NO, "1 where the journal can be written, else 0."
)
REPLAYED: Final = _counter(
    "llmlat_journal_replayed_spans", _SPANS, "Spans that an earlier run had accepted and not sent."
)
UPTIME: Final = _gauge("llmlat_process_uptime", "s", "For how long the processor has run.")
CPU: Final = _counter("llmlat_process_cpu_seconds", "s", "Time on a CPU, user and system.")
MEMORY: Final = _gauge("llmlat_process_memory_rss", _BYTES, "Memory that is resident.")

DELAY: Final = Metric(
    "llmlat_processor_trace_delay",
    "s",
    "From the arrival of a trace's last span until it is handed on.",
    (0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 120, 300, 600),
    "histogram",
)


class Usage(NamedTuple):
    """What this process has needed.

    Attributes:
        cpu_s: time on a CPU, user and system, in seconds.
        memory_bytes: what is resident.
    """

    cpu_s: float
    memory_bytes: int


class Delays:
    """How long traces waited after their last span; observed by one thread, read by any."""

    def __init__(self) -> None:
        """Nothing has waited yet."""
        self._histogram = Histograms(DELAY, (), most=2)

    def observe(self, delay_s: float, exemplar: Exemplar | None = None) -> None:
        """A trace was handed on so many seconds after its last span had come."""
        self._histogram.observe((), delay_s, exemplar)

    def family(self, start_ns: int) -> Family:
        """All delays by now."""
        return self._histogram.family(start_ns)


def own_families(status: Status, start_ns: int, usage: Usage | None = None) -> list[Family]:
    """What a status says, as metrics.

    Args:
        status: of the processor, all workers together.
        start_ns: since when it runs: wall time.
        usage: what it has needed; None where nobody knows.
    """
    rows = [*_of_books(status.books), *_of_window(status), *_of_destinations(status.destinations)]
    if status.journal is not None:
        rows += _of_journal(status.journal)
    rows.append((REPLAYED, _one(status.books.replayed)))
    rows.append((UPTIME, _one(status.uptime_s)))
    if usage is not None:
        rows += (CPU, _one(usage.cpu_s)), (MEMORY, _one(usage.memory_bytes))
    return [Family(metric, start_ns, tuple(points)) for metric, points in rows]


_Row = tuple[Metric, Iterable[Number]]


def _of_books(books: Books) -> Iterator[_Row]:
    yield ACCEPTED, _one(books.received - books.replayed)
    yield REFUSED, _one(books.refused)
    yield OTHER, _by("kind", books.other)
    yield INCOMING, _one(books.received)
    yield OUTGOING, _one(books.sent + books.queued + sum(books.dropped.values()))
    yield ADDED, _one(books.added)
    yield REPEATED, _one(books.repeated)
    yield CONSUMED, _one(books.consumed)
    yield HELD, _one(books.held)
    yield DROPPED, _by("reason", books.dropped)
    yield UNEXPLAINED, _by("reason", books.as_they_came)
    yield LATE, _one(books.late)
    yield REVISIONS, _one(books.revisions)
    yield EXPLAINED, _one(books.traces)
    yield BALANCED, _one(int(books.balances))


def _of_window(status: Status) -> Iterator[_Row]:
    yield HELD_TRACES, _one(status.held_traces)
    yield HELD_BYTES, _one(status.held_bytes)
    yield SKELETON_BYTES, _one(status.skeleton_bytes)
    yield FORGOTTEN, _one(status.forgotten_skeletons)
    yield WAITING_BYTES, _one(status.waiting_bytes)
    yield READY, _one(int(not status.not_ready))


def _of_destinations(sendings: Mapping[str, Sending]) -> Iterator[_Row]:
    where = "destination"
    yield SENT, _by(where, {to: one.sent for to, one in sendings.items()})
    yield SEND_FAILED, _by(where, {to: one.dropped for to, one in sendings.items()})
    yield QUEUE_SPANS, _by(where, {to: one.queued for to, one in sendings.items()})
    yield QUEUE_BYTES, _by(where, {to: one.queue_bytes for to, one in sendings.items()})


def _of_journal(journal: Journaled) -> Iterator[_Row]:
    yield JOURNAL_BYTES, _one(journal.kept_bytes)
    yield JOURNAL_BATCHES, _one(journal.batches)
    yield JOURNAL_HEALTHY, _one(int(journal.is_healthy))


def _one(value: float) -> tuple[Number]:
    return (Number((), value),)


def _by(label: str, counts: Mapping[str, int]) -> list[Number]:
    sums: dict[Labels, int] = {}
    for value, count in counts.items():
        labels = labelled([(label, value)])
        sums[labels] = sums.get(labels, 0) + count
    return [Number(labels, count) for labels, count in sums.items()]
