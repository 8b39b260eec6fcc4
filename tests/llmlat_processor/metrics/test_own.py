"""What the processor tells of itself: each number of the status once, under a name of its own."""

from __future__ import annotations

from dataclasses import replace

from llmlat_processor.metrics import own
from llmlat_processor.metrics.own import Delays, Usage, own_families
from llmlat_processor.model.families import Distribution, Exemplar, Number
from llmlat_processor.model.status import Books, Status
from llmlat_semconv.metrics import Metric
from tests.llmlat_processor.metrics.samples import (
    BOOKS,
    NOW_NS,
    SPAN_ID,
    START_NS,
    STATUS,
    TRACE_ID,
    every_family,
)


def values(status: Status, usage: Usage | None = None) -> dict[str, dict[str, float]]:
    """Value by metric and by the only label, or the empty text."""
    told: dict[str, dict[str, float]] = {}
    for family in own_families(status, START_NS, usage):
        rows = told.setdefault(family.metric.name, {})
        for point in family.points:
            assert isinstance(point, Number)
            rows[" ".join(str(value) for _, value in point.labels)] = point.value
    return told


def test_the_books_are_told_number_by_number() -> None:
    told = values(STATUS)

    assert told["llmlat_receiver_accepted_spans"] == {"": 1_180}  # 20 came from the journal
    assert told["llmlat_journal_replayed_spans"] == {"": 20}
    assert told["llmlat_receiver_refused_spans"] == {"": 5}
    assert told["llmlat_receiver_other_requests"] == {"metrics": 6}
    assert told["llmlat_processor_incoming_items"] == {"": 1_200}
    assert told["llmlat_processor_outgoing_items"] == {"": 1_309}
    assert told["llmlat_processor_dropped_spans"] == {"rejected by the destination": 2}
    assert told["llmlat_processor_unexplained_spans"] == {"late": 4}
    assert told["llmlat_processor_traces_explained"] == {"": 12}
    assert told["llmlat_exporter_sent_spans"] == {"tempo:4317": 1_300, "jaeger:4317": 0}
    assert told["llmlat_exporter_queue_bytes"] == {"tempo:4317": 4_096, "jaeger:4317": 0}
    assert told["llmlat_exporter_send_failed_spans"] == {"tempo:4317": 2, "jaeger:4317": 0}
    assert told["llmlat_process_uptime"] == {"": 11_520}


def test_the_books_balance_in_the_metrics_as_they_do_on_paper() -> None:
    told = {name: sum(rows.values()) for name, rows in values(STATUS).items()}
    came = told["llmlat_processor_incoming_items"] + told["llmlat_processor_added_spans"]
    stays = told["llmlat_processor_held_spans"] + told["llmlat_processor_repeated_spans"]

    gone = told["llmlat_processor_outgoing_items"] + told["llmlat_processor_consumed_spans"]
    assert came == gone + stays
    assert told["llmlat_processor_books_balanced"] == 1


def test_what_is_wrong_is_told_as_such() -> None:
    assert STATUS.journal is not None
    status = replace(
        STATUS,
        books=replace(BOOKS, held=9),
        not_ready="the queue is full",
        journal=replace(STATUS.journal, is_healthy=False),
    )
    told = values(status)

    assert told["llmlat_processor_books_balanced"] == {"": 0}
    assert told["llmlat_processor_ready"] == {"": 0}
    assert told["llmlat_journal_healthy"] == {"": 0}


def test_what_is_not_there_is_not_told() -> None:
    told = values(Status(Books()))

    assert not {name for name in told if name.startswith("llmlat_journal_")} - {
        "llmlat_journal_replayed_spans"
    }
    assert "llmlat_process_cpu_seconds" not in told
    assert values(Status(Books()), Usage(1.5, 7))["llmlat_process_memory_rss"] == {"": 7}


def test_delays_are_one_histogram() -> None:
    delays = Delays()
    seen = Exemplar(2.5, NOW_NS, TRACE_ID, SPAN_ID)
    for delay_s in (2.0, 2.5, 61):
        delays.observe(delay_s, seen if delay_s == 2.5 else None)

    (point,) = delays.family(START_NS).points
    assert isinstance(point, Distribution)
    assert (point.labels, point.count, point.total) == ((), 3, 65.5)
    assert seen in point.exemplars


def test_every_metric_of_ours_is_told_once() -> None:
    defined = {one.name for one in vars(own).values() if isinstance(one, Metric)}
    told = [family.metric.name for family in every_family()]

    assert defined <= set(told)
    assert len(told) == len(set(told))
