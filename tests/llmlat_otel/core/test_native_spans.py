"""The next span of a name is told of as it begins, once, and in its own context."""

from __future__ import annotations

from contextvars import copy_context

import pytest
from opentelemetry.trace import NoOpTracerProvider

from llmlat_otel.core.guard import faults
from llmlat_otel.core.native_spans import TARGET, await_next, restore


@pytest.fixture
def tracer(record):
    return record.tracer_provider.get_tracer("library")


@pytest.fixture
def seen():
    return []


def names(spans):
    return [each.name for each in spans]


def test_the_span_can_be_written_to(record, tracer):
    before = await_next(record.tracer_provider, "work", lambda span: span.set_attribute("k", 1))
    tracer.start_span("work").end()
    restore(before)
    assert record.spans[0].attributes["k"] == 1


def test_only_the_first_of_that_name(record, tracer, seen):
    before = await_next(record.tracer_provider, "work", seen.append)
    for name in ("other", "work", "work"):
        tracer.start_span(name).end()
    restore(before)
    assert names(seen) == ["work"]


def test_what_is_made_of_it_meanwhile_is_not_told_of(record, tracer, seen):
    def work(span):
        seen.append(span)
        tracer.start_span("work").end()

    before = await_next(record.tracer_provider, "work", work)
    tracer.start_span("work").end()
    restore(before)
    assert len(seen) == 1
    assert len(record.spans) == 2


def test_what_does_not_come_is_awaited_no_longer(record, tracer, seen):
    restore(await_next(record.tracer_provider, "work", seen.append))
    tracer.start_span("work").end()
    assert seen == []


def test_one_within_another(record, tracer, seen):
    outer = await_next(record.tracer_provider, "outer", seen.append)
    inner = await_next(record.tracer_provider, "inner", seen.append)
    tracer.start_span("outer").end()
    tracer.start_span("inner").end()
    restore(inner)
    tracer.start_span("outer").end()
    restore(outer)
    assert names(seen) == ["inner", "outer"]


def test_another_context_knows_nothing_of_it(record, tracer, seen):
    elsewhere = copy_context()
    before = await_next(record.tracer_provider, "work", seen.append)
    elsewhere.run(lambda: tracer.start_span("work").end())
    restore(before)
    assert seen == []


def test_a_fault_is_counted_and_the_span_goes_on(record, tracer):
    def fail(span):
        raise KeyError(span)

    count = faults().get(TARGET, 0)
    before = await_next(record.tracer_provider, "work", fail)
    tracer.start_span("work").end()
    restore(before)
    assert names(record.spans) == ["work"]
    assert faults()[TARGET] == count + 1


def test_a_provider_is_watched_once(record, tracer, seen):
    for _ in range(3):
        restore(await_next(record.tracer_provider, "work", seen.append))
    before = await_next(record.tracer_provider, "work", seen.append)
    tracer.start_span("work").end()
    restore(before)
    assert len(seen) == 1
    watchers = record.tracer_provider._active_span_processor._span_processors
    assert len(watchers) == 2, "the exporter's and ours"


@pytest.mark.parametrize("provider", [None, NoOpTracerProvider()])
def test_a_provider_that_tells_of_none(provider, seen):
    restore(await_next(provider, "work", seen.append))
    assert seen == []


def test_it_ends_with_its_provider(record):
    restore(await_next(record.tracer_provider, "work", lambda span: None))
    assert record.tracer_provider.force_flush()
    record.tracer_provider.shutdown()
