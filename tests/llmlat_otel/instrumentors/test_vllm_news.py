"""Requests to vLLM that are given up before their first output: those of others tell of them."""

from __future__ import annotations

import pytest

from llmlat_otel.instrumentors.vllm import notes, scheduler
from llmlat_otel.testing import MS
from llmlat_semconv import attributes as names
from tests.llmlat_otel.instrumentors.fake_vllm_core import SHAPES
from tests.llmlat_otel.instrumentors.vllm_timed import cut, engine_of, phases, requests

pytestmark = pytest.mark.usefixtures("nothing_has_failed")

each_version = pytest.mark.parametrize("version", SHAPES)


@pytest.fixture
def busy(version, clock, record):
    """An engine that has answered "a" in part."""
    engine = engine_of(version, clock)
    engine.add("a")
    engine.step({"a": 4})
    return engine


def given_up(engine, record):
    engine.clock.advance(3 * MS)
    engine.abort("b")
    (span,) = requests(record)
    assert span.attributes[names.LLMLAT_STREAM_END] == "cancelled"
    return span


@each_version
def test_en_01_given_up_in_the_queue(busy, record):
    busy.add("b")
    busy.step({"a": 1})
    span = given_up(busy, record)
    assert phases(record, span) == [("queue", 0, 13)]
    assert cut(record) == {"queue"}
    assert span.attributes[names.LLMLAT_ENGINE_REQUESTS_RUNNING] == 1
    assert span.attributes[names.LLMLAT_PREEMPTION_COUNT] == 0
    assert names.LLMLAT_DECODE_TOKENS not in span.attributes


@each_version
def test_given_up_in_its_prefill(busy, record):
    busy.add("b")
    busy.step({"a": 1})
    busy.step({"a": 1, "b": 2}, {"a": 1})
    span = given_up(busy, record)
    assert phases(record, span) == [("queue", 0, 10), ("prefill", 10, 23)]
    assert cut(record) == {"prefill"}


@each_version
def test_its_own_outputs_tell_as_much(busy, record):
    busy.add("b")
    busy.step({"a": 1})
    busy.step({"a": 1, "b": 4}, b="stop")
    (span,) = requests(record)
    assert phases(record, span) == [("queue", 0, 10), ("prefill", 10, 20)]
    assert span.attributes[names.LLMLAT_STREAM_END] == "complete"


@each_version
def test_it_is_told_once_and_kept_no_longer(busy, record):
    busy.add("b")
    assert set(scheduler._news[busy.scheduler]) == {"b"}
    busy.step({"a": 1}, {})
    assert set(scheduler._news[busy.scheduler]) == {"b"}, "there was nobody to tell of it"
    busy.step({"a": 1})
    assert not scheduler._news[busy.scheduler]


def test_what_is_told_of_others_is_told_as_text():
    told = {"b": {notes.ARRIVAL: "d;0;1", notes.MARKS: "q5"}}
    text = notes.news({"b": {**told["b"], "traceparent": "theirs"}})
    assert notes.read_news({notes.NEWS: text}) == told
    assert notes.read_news({}) == notes.read_news(None) == {}


@each_version
def test_one_that_goes_while_it_is_evicted_is_told_of_by_others(busy, version, record):
    busy.add("b")
    busy.step({"a": 1, "b": 4})
    busy.step({"a": 1}, evicted=["b"])
    span = given_up(busy, record)
    evicted = [("preempted", 10, 23)] if SHAPES[version].tells_evictions else []
    assert phases(record, span) == [("prefill", 0, 10), ("decode", 10, 23), *evicted]


# ── With each output ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def sent(busy, monkeypatch):
    """What each output of "a" has carried, from its second on."""
    carried: list[object] = []
    process = busy.process

    def look(told):
        carried.extend(each.trace_headers for each in told.outputs if each.request_id == "a")
        process(told)

    monkeypatch.setattr(busy, "process", look)
    return carried


@each_version
def test_an_output_that_has_nothing_to_tell_carries_nothing(busy, sent, record):
    busy.step({"a": 1})
    busy.step({"a": 1})
    busy.step({"a": 1}, a="stop")
    *between, last = sent
    assert between == [None, None]
    assert {notes.ARRIVAL, notes.MARKS} <= last.keys(), "vLLM's own span is made of this one"
    assert not scheduler._told[busy.scheduler]
    (span,) = requests(record)
    assert phases(record, span) == [("prefill", 0, 10), ("decode", 10, 40)]


@each_version
def test_what_is_new_is_told_with_the_next_one(busy, sent, record):
    busy.step({}, evicted=["a"])
    busy.step({"a": 1})
    busy.step({"a": 1})
    again, after = sent
    assert again is not None
    assert after is None


@each_version
def test_of_one_that_is_given_up_nothing_is_kept(busy):
    assert set(scheduler._told[busy.scheduler]) == {"a"}
    busy.abort("a")
    busy.step({})
    assert not scheduler._told[busy.scheduler]
