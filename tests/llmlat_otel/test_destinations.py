"""The account of a destination adds up, whatever its exporter does."""

import logging
import threading
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

from llmlat_otel.destinations import CountedExporter, CountedProcessor, Destination, endpoint_of
from llmlat_otel.testing import MS, ManualClock, recorded

_logger = logging.getLogger(__name__)


class Exporter(SpanExporter):
    """Answers as it is told, when it is told; says what it is told to say."""

    def __init__(self):
        self.answer = SpanExportResult.SUCCESS
        self.says: tuple[str, ...] = ()
        self.may_go_on = threading.Event()
        self.has_begun = threading.Event()
        self.may_go_on.set()
        self.has_shut = False

    def export(self, spans):
        self.has_begun.set()
        assert self.may_go_on.wait(30)
        for said in self.says:
            _logger.error("%s", said)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def shutdown(self):
        self.has_shut = True


@pytest.fixture
def exporter():
    return Exporter()


@pytest.fixture
def destination():
    return Destination("fake", None)


@pytest.fixture
def provider(exporter, destination):
    """A provider with a queue of 4, which exports when it is flushed."""
    counted: Any = CountedExporter(exporter, destination)
    inner = BatchSpanProcessor(
        counted,
        max_queue_size=4,
        max_export_batch_size=4,
        schedule_delay_millis=1e6,
    )
    made = TracerProvider(sampler=ALWAYS_ON, shutdown_on_exit=False)
    processor: Any = CountedProcessor(inner, destination)
    made.add_span_processor(processor)
    yield made
    exporter.may_go_on.set()
    made.shutdown()


def end_spans(provider, count=1):
    for _ in range(count):
        provider.get_tracer("test").start_span("span").end()


def account(destination):
    names = ("ended", "queued", "sent", "failed", "dropped")
    return {name: value for name in names if (value := getattr(destination, name))}


def test_spans_are_queued_and_then_sent(provider, destination):
    end_spans(provider, 3)
    assert account(destination) == {"ended": 3, "queued": 3}
    provider.force_flush()
    assert account(destination) == {"ended": 3, "sent": 3}
    assert destination.last_error is None


@pytest.mark.parametrize("answer", [SpanExportResult.FAILURE, ValueError("broken")], ids=str)
def test_an_exporter_that_fails_or_raises_has_failed(answer, provider, exporter, destination):
    exporter.answer = answer
    end_spans(provider, 2)
    with recorded(clock=ManualClock(wall_ns=7 * MS)):
        provider.force_flush()
    assert account(destination) == {"ended": 2, "failed": 2}
    why = "the exporter does not say why" if isinstance(answer, SpanExportResult) else "broken"
    assert why in destination.last_error[0]
    assert destination.last_error[1] == 7 * MS


def test_what_an_exporter_logs_says_why_and_is_logged_all_the_same(
    provider, exporter, destination, caplog
):
    exporter.answer, exporter.says = SpanExportResult.FAILURE, ("refused by the peer", "gave up")
    _logger.error("said by somebody else")
    end_spans(provider)
    provider.force_flush()
    assert destination.last_error[0] == "refused by the peer"
    assert caplog.messages == ["said by somebody else", "refused by the peer", "gave up"]


def test_a_full_queue_drops_and_it_is_counted(provider, exporter, destination):
    exporter.may_go_on.clear()
    end_spans(provider, 4)
    assert exporter.has_begun.wait(30), "a full batch is exported at once"
    end_spans(provider, 7)
    assert account(destination) == {"ended": 11, "queued": 8, "dropped": 3}
    exporter.may_go_on.set()
    provider.force_flush()
    assert account(destination) == {"ended": 11, "sent": 8, "dropped": 3}


def test_what_is_given_up_is_counted_and_not_sent(provider, exporter, destination):
    clock = ManualClock()
    with recorded(clock=clock):
        destination.give_up_ns = clock.now_ns()
        clock.advance(1)
        end_spans(provider, 2)
        provider.force_flush()
    assert account(destination) == {"ended": 2, "failed": 2}
    assert not exporter.has_begun.is_set()


def test_spans_that_come_after_the_end_are_dropped_and_nothing_is_logged(
    provider, exporter, destination, caplog
):
    end_spans(provider)
    provider.shutdown()
    destination.is_shut = True
    end_spans(provider, 2)
    assert exporter.has_shut
    assert account(destination) == {"ended": 3, "sent": 1, "dropped": 2}
    assert caplog.messages == []


def test_spans_that_are_not_sampled_are_none(destination, exporter):
    made = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    counted: Any = CountedExporter(exporter, destination)
    processor: Any = CountedProcessor(BatchSpanProcessor(counted), destination)
    made.add_span_processor(processor)
    end_spans(made)
    made.shutdown()
    assert account(destination) == {}


def test_what_cannot_be_seen_or_heard_is_absent(destination):
    class Processor:
        """Keeps its queue to itself."""

        def on_end(self, span):
            pass

        def shutdown(self):
            pass

    CountedProcessor(Processor(), destination)
    CountedExporter(Exporter(), destination)
    assert (destination.queued, destination.dropped, destination.rejected) == (None, None, None)


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [
        ("localhost:4317", "localhost:4317"),
        ("http://user:secret@host:4318/v1/traces?a=b", "http://host:4318/v1/traces?a=b"),
        (None, None),
        (7, None),
    ],
)
def test_an_endpoint_is_shown_without_its_password(endpoint, shown):
    class Sender:
        _endpoint = endpoint

    assert endpoint_of(Sender()) == shown


def test_everything_else_is_asked_of_what_is_wrapped(exporter, destination):
    exporter.own = "value"
    assert CountedExporter(exporter, destination).own == "value"
    with pytest.raises(AttributeError):
        CountedExporter(exporter, destination).none  # noqa: B018
