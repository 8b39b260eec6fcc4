"""Requests to vLLM that do not come to their end, and what is left of any once it is over."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import pytest

from llmlat_otel.instrumentors.vllm import frontend, scheduler
from llmlat_otel.settings import Settings
from llmlat_otel.testing import MS, recorded
from llmlat_semconv import attributes as names
from tests.llmlat_otel.instrumentors.fake_vllm import request_of
from tests.llmlat_otel.instrumentors.fake_vllm_core import SHAPES, FinishReason
from tests.llmlat_otel.instrumentors.vllm_timed import (
    LAST,
    cut,
    engine_of,
    phases,
    requests,
    the_request,
)

pytestmark = pytest.mark.usefixtures("nothing_has_failed")

each_version = pytest.mark.parametrize("version", SHAPES)
with_streaming_inputs = pytest.mark.parametrize(
    "version", [version for version, shape in SHAPES.items() if shape.inputs_stream]
)


def ends(record):
    """How each request has ended, and what it failed with, by its name."""
    return {
        each.attributes[names.LLMLAT_REQUEST_ID]: (
            each.attributes[names.LLMLAT_STREAM_END],
            each.attributes.get(names.ERROR_TYPE),
        )
        for each in requests(record)
    }


CANCELLED = ("cancelled", None)


# Given up by the caller


@each_version
def test_its_caller_goes_before_anything_has_come_back(version, clock, record):
    engine = engine_of(version, clock)
    engine.api.tokenize = lambda: clock.advance(2 * MS)
    engine.add("a")
    clock.advance(5 * MS)
    assert engine.abort("a") == ["a"]
    span = the_request(record)
    assert ends(record) == {"a": CANCELLED}
    # The stamps come with outputs: of what nobody has told nothing is said.
    assert phases(record, span) == [("tokenize", 0, 2)]
    assert (span.end_time - span.start_time) == 7 * MS
    assert names.LLMLAT_PREEMPTION_COUNT not in span.attributes
    assert names.LLMLAT_ENGINE_TIME_TO_FIRST_TOKEN not in span.attributes


@each_version
@pytest.mark.parametrize("is_other_heard", [True, False])
@pytest.mark.parametrize(
    ("steps", "right", "is_cut"),
    [
        ([{}], [("queue", 0, 12)], {"queue"}),
        ([{}, {"a": 4}], [("queue", 0, 10), ("prefill", 10, 22)], {"prefill"}),
        ([{"a": 4}, {"a": 2}], [("prefill", 0, 22)], {"prefill"}),
    ],
    ids=["in the queue", "queued and being read", "being read"],
)
def test_what_has_no_output_yet_is_told_of_with_those_of_others(
    version, is_other_heard, steps, right, is_cut, clock, record
):
    engine = engine_of(version, clock)
    unsampled = {"traceparent": f"00-{1:032x}-{2:016x}-00"}
    engine.add("other", headers=None if is_other_heard else unsampled)
    clock.advance(1 * MS)
    engine.add("a", range(8))
    for sizes in steps:
        engine.step({"other": 4, **sizes}, {"other": 1})
    clock.advance(2 * MS)
    engine.abort("a")
    engine.step({"other": 1}, other=0)
    (span,) = [each for each in requests(record) if each.attributes[names.LLMLAT_REQUEST_ID] == "a"]
    assert phases(record, span) == right
    assert cut(record) == is_cut
    assert ("other" in ends(record)) is is_other_heard
    assert span.attributes[names.LLMLAT_ENGINE_REQUESTS_WAITING] == 1
    assert scheduler._news[engine.scheduler] == {}


@each_version
def test_its_caller_goes_as_it_is_read(version, clock, record):
    engine = engine_of(version, clock)
    engine.add("a", range(8))
    clock.advance(3 * MS)
    engine.step({"a": 4}, {"a": 0})
    clock.advance(2 * MS)
    engine.abort("a")
    assert phases(record, the_request(record)) == [("queue", 0, 3), ("prefill", 3, 15)]
    assert cut(record) == {"prefill"}
    assert ends(record) == {"a": CANCELLED}


@each_version
def test_its_caller_goes_as_it_answers(version, clock, record):
    engine = engine_of(version, clock)
    engine.add("a")
    engine.step({"a": 4})
    engine.step({"a": 1})
    clock.advance(4 * MS)
    engine.abort("a")
    span = the_request(record)
    assert phases(record, span) == [("prefill", 0, 10), ("decode", 10, 24)]
    assert cut(record) == {"decode"}
    assert span.attributes[names.LLMLAT_DECODE_TOKENS] == 1
    assert span.status.is_unset


@each_version
def test_its_caller_goes_while_it_is_evicted(version, clock, record):
    engine = engine_of(version, clock)
    engine.add("a")
    engine.step({"a": 4})
    clock.advance(1 * MS)
    engine.step({}, evicted=["a"])
    clock.advance(2 * MS)
    # What has been evicted comes back with nothing: the last that is known is the first token.
    engine.abort("a")
    assert phases(record, the_request(record)) == [("prefill", 0, 10), ("decode", 10, 23)]
    assert cut(record) == {"decode"}


@each_version
def test_what_comes_after_it_was_given_up_is_nobodys(version, clock, record):
    engine = engine_of(version, clock)
    engine.add("a")
    engine.outputs.abort_requests(["a"], *([True] if engine.shape.aborts_take_internal else []))
    engine.step({"a": 4}, a=0)
    assert ends(record) == {"a": CANCELLED}


def test_one_that_nobody_knows_is_given_up(clock, record):
    engine = engine_of(LAST, clock)
    assert engine.abort("a") == []
    engine.add("b")
    assert engine.abort("a") == []
    assert ends(record) == {}


# Given up by the engine


@each_version
def test_the_core_gives_it_up(version, clock, record):
    engine = engine_of(version, clock)
    engine.add("a")
    engine.add("b")
    engine.step({"a": 4, "b": 4})
    engine.step({"a": 1, "b": 1}, a=FinishReason.abort, b=FinishReason.error)
    assert ends(record) == {"a": CANCELLED, "b": ("failed", "error")}
    assert cut(record) == {"decode"}


@each_version
def test_the_core_is_dead(version, clock, record):
    engine = engine_of(version, clock)
    for each in "ab":
        engine.add(each)
    engine.step({"a": 4})
    clock.advance(5 * MS)
    engine.outputs.propagate_error(ConnectionError("dead"))
    failed = ("failed", "ConnectionError")
    assert ends(record) == {"a": failed, "b": failed}
    assert not any(each.status.is_ok or each.status.is_unset for each in requests(record))
    engine.abort("a", "b")
    assert len(requests(record)) == 2


# What is added more than once, or cannot be


@with_streaming_inputs
def test_an_input_that_streams_is_one_request(version, clock, record):
    engine = engine_of(version, clock)
    first = engine.add("a", resumable=True)
    engine.step({"a": 4})
    engine.step({"a": 1}, a=0)
    assert requests(record) == []
    more = request_of(engine.shape, "a", resumable=True)
    engine.outputs.add_request(more, None)
    assert more.trace_headers is None
    engine.outputs.request_states["a"].is_streaming = False
    (told,) = engine.scheduler.update_from_output(None, {}).values()
    told.outputs.append(
        SimpleNamespace(
            request_id="a",
            new_token_ids=[7],
            pooling_output=None,
            finish_reason=FinishReason.stop,
            events=None,
            trace_headers=first.trace_headers,
        )
    )
    clock.advance(10 * MS)
    engine.process(told)
    assert ends(record) == {"a": ("complete", None)}
    assert the_request(record).attributes[names.LLMLAT_DECODE_TOKENS] == 2


@pytest.mark.parametrize("version", ["0.10.2", "0.14.1"])
def test_a_name_that_is_taken_leaves_the_request_that_has_it(version, clock, record):
    engine = engine_of(version, clock)
    engine.add("a")
    with pytest.raises(ValueError, match="already running"):
        engine.add("a")
    engine.step({"a": 4}, a=0)
    assert ends(record) == {"a": ("complete", None)}


@each_version
def test_one_that_vllm_refuses_is_none(version, clock, record):
    engine = engine_of(version, clock)
    bad = request_of(engine.shape, "a", stop=None)
    engine.outputs.request_states = None
    with pytest.raises(TypeError):
        engine.outputs.add_request(bad, None)
    assert frontend._requests[engine.outputs] == {}
    assert requests(record) == []


@each_version
def test_each_answer_of_several_is_a_request(version, clock, record):
    engine = engine_of(version, clock)
    parent = SimpleNamespace(request_id="p", child_requests=["0_p", "1_p"])
    for each in parent.child_requests:
        request = request_of(engine.shape, each)
        engine.outputs.add_request(request, None, parent, 0, None)
        engine.api.core(request)
    engine.step({"0_p": 4, "1_p": 4})
    engine.step({"0_p": 1}, **{"0_p": 0})
    assert sorted(engine.abort("p")) == ["1_p"]
    assert ends(record) == {"0_p": ("complete", None), "1_p": CANCELLED}


def test_two_engines_in_one_process(clock, record):
    one, other = engine_of(LAST, clock), engine_of("0.10.2", clock)
    other.api.model_config.served_model_name = "other"
    one.add("a")
    other.add("a")
    one.step({"a": 4}, a=0)
    other.abort("a")
    found = {
        each.attributes[names.GEN_AI_REQUEST_MODEL]: each.attributes[names.LLMLAT_STREAM_END]
        for each in requests(record)
    }
    assert found == {"tiny": "complete", "other": "cancelled"}


# Nothing is left


@each_version
def test_nothing_is_kept_of_what_is_over(version, clock):
    with recorded(clock=clock, settings=Settings(engine_steps=True)):
        engine = engine_of(version, clock)
        for each in "abcd":
            engine.add(each)
        engine.step({"a": 4, "b": 4, "c": 4})
        engine.step({"a": 1, "b": 1}, a=0)
        engine.abort("b", "d")
        engine.step({"c": 1})
        engine.outputs.propagate_error(ConnectionError())
        for each in "c":
            engine.scheduler.finish(each)
        engine.step({})
        assert frontend._requests[engine.outputs] == {}
        assert scheduler._steps[engine.scheduler] == {}
        assert scheduler._news[engine.scheduler] == {}


def test_an_engine_that_is_gone_is_forgotten(clock, record):
    gc.collect()
    before = len(frontend._requests), len(scheduler._steps)
    engine = engine_of(LAST, clock)
    engine.add("a")
    assert len(frontend._requests) == before[0] + 1
    del engine
    gc.collect()
    assert (len(frontend._requests), len(scheduler._steps)) == before


def test_the_notes_of_a_request_that_is_evicted_over_and_over_stay_short(clock, record):
    engine = engine_of(LAST, clock)
    engine.add("a")
    engine.step({"a": 4})
    for _ in range(200):
        engine.step({}, evicted=["a"])
        engine.step({"a": 5})
    carried = engine.scheduler.requests["a"].trace_headers
    assert sum(map(len, carried.values())) < 2_000
    engine.step({"a": 1}, a=0)
    assert the_request(record).attributes[names.LLMLAT_PREEMPTION_COUNT] == 200
