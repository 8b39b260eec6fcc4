"""Requests that come to their end in vLLM, in the shape of each version."""

from __future__ import annotations

import pytest

from llmlat_otel.instrumentors.vllm.notes import NEWS
from llmlat_otel.settings import Settings
from llmlat_otel.testing import MS, recorded
from llmlat_semconv import attributes as names
from tests.llmlat_otel.instrumentors.fake_vllm_core import SHAPES, RequestStatus
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


@pytest.fixture
def stepped(clock):
    """What is recorded where each step of the scheduler is looked at."""
    with recorded(clock=clock, settings=Settings(phase_min_ns=0, engine_steps=True)) as what:
        yield what


def taking(clock, duration_ms):
    return lambda: clock.advance(duration_ms * MS)


@each_version
def test_a_request_from_its_words_to_its_last_one(version, clock, record):
    engine = engine_of(version, clock)
    engine.api.tokenize = taking(clock, 2)
    engine.add("a")
    clock.advance(5 * MS)
    engine.step({"a": 4})
    engine.step({"a": 1})
    engine.step({"a": 1}, a=0)
    span = the_request(record)
    assert span.name == "engine text_completion"
    assert phases(record, span) == [
        ("tokenize", 0, 2),
        ("queue", 2, 7),
        ("prefill", 7, 17),
        ("decode", 17, 37),
    ]
    assert span.attributes[names.GEN_AI_PROVIDER_NAME] == "vllm"
    assert span.attributes[names.GEN_AI_REQUEST_MODEL] == "tiny"
    assert span.attributes[names.LLMLAT_REQUEST_ID] == "a"
    assert span.attributes[names.LLMLAT_ENGINE_TIME_TO_FIRST_TOKEN] == 0.017
    assert span.attributes[names.LLMLAT_STREAM_END] == "complete"
    assert names.LLMLAT_PREFILL_CHUNK_SIZES not in span.attributes
    assert names.LLMLAT_BATCH_SIZE_MAX not in span.attributes


@each_version
def test_a_prompt_in_pieces_beside_others(version, clock, stepped):
    engine = engine_of(version, clock)
    engine.cached = 7
    engine.add("a", range(142))
    engine.cached = 0
    clock.advance(1)
    engine.add("b")
    engine.step({"a": 64, "b": 4}, {"b": 1})
    engine.step({"a": 64, "b": 1}, {"b": 1}, b=0)
    engine.step({"a": 7})
    engine.step({"a": 1}, a=1)
    span = requests(stepped)[0]
    assert span.attributes[names.LLMLAT_PREFILL_CHUNK_SIZES] == (64, 64, 7)
    assert span.attributes[names.LLMLAT_PREFILL_CHUNK_COUNT] == 3
    assert span.attributes[names.LLMLAT_PREFILL_CACHED_TOKENS] == 7
    assert span.attributes[names.LLMLAT_PREFILL_COMPUTED_TOKENS] == 135
    assert span.attributes[names.LLMLAT_BATCH_SIZE_MAX] == 2


@each_version
def test_a_prompt_that_is_read_again_is_as_long_as_it_was(version, clock, stepped):
    engine = engine_of(version, clock)
    engine.add("a", range(7))
    engine.step({"a": 7})
    engine.step({"a": 1})
    engine.step({}, evicted=["a"])
    engine.step({"a": 9}, a=0)
    assert the_request(stepped).attributes[names.LLMLAT_PREFILL_CHUNK_SIZES] == (7, 7)


def test_more_pieces_than_are_kept_are_counted(clock, stepped):
    engine = engine_of(LAST, clock)
    engine.add("a", range(70))
    for _ in range(69):
        engine.step({"a": 1}, {})
    engine.step({"a": 1}, a=0)
    span = the_request(stepped)
    assert span.attributes[names.LLMLAT_PREFILL_CHUNK_COUNT] == 70
    assert span.attributes[names.LLMLAT_PREFILL_CHUNK_SIZES] == (1,) * 64


@each_version
def test_others_that_wait_and_run_as_it_arrives(version, clock, record):
    engine = engine_of(version, clock)
    for each in "abc":
        engine.add(each)
    engine.step({"a": 4})
    engine.add("d")
    engine.step({"a": 1, "b": 4, "c": 4, "d": 4}, a=0, b=0, c=0, d=0)
    found = {
        each.attributes[names.LLMLAT_REQUEST_ID]: (
            each.attributes[names.LLMLAT_ENGINE_REQUESTS_WAITING],
            each.attributes[names.LLMLAT_ENGINE_REQUESTS_RUNNING],
        )
        for each in requests(record)
    }
    assert found == {"a": (0, 0), "b": (1, 0), "c": (2, 0), "d": (2, 1)}


@each_version
def test_an_eviction_as_it_answers(version, clock, record):
    engine = engine_of(version, clock)
    engine.add("a")
    engine.step({"a": 4})
    engine.add("b")
    engine.step({"b": 4}, evicted=["a"])
    engine.step({"a": 5, "b": 1}, b=0)
    engine.step({"a": 1}, a=0)
    span = requests(record)[0]
    assert phases(record, span) == [("prefill", 0, 10), ("decode", 10, 40), ("preempted", 10, 20)]
    assert span.attributes[names.LLMLAT_PREEMPTION_COUNT] == 1
    assert cut(record) == set()


@each_version
def test_an_eviction_before_it_answers(version, clock, record):
    engine = engine_of(version, clock)
    engine.add("a", range(8))
    engine.step({"a": 4}, {})
    clock.advance(2 * MS)
    engine.add("b")
    engine.step({"b": 4}, evicted=["a"], b=0)
    engine.step({"a": 8}, a=0)
    span = requests(record)[0]
    assert phases(record, span) == [("prefill", 0, 12), ("preempted", 12, 22), ("prefill", 22, 32)]


# Versions that tell whom they evict do so without events of vLLM's own.
TELLING = [version for version, shape in SHAPES.items() if shape.tells_evictions]


@pytest.mark.parametrize("version", TELLING)
def test_an_eviction_where_vllm_makes_no_events(version, clock, record):
    engine = engine_of(version, clock, log_stats=False)
    engine.add("a")
    engine.step({"a": 4})
    engine.step({}, evicted=["a"])
    engine.step({"a": 5}, a=0)
    span = the_request(record)
    assert phases(record, span) == [("prefill", 0, 10), ("decode", 10, 30), ("preempted", 10, 20)]


def test_a_version_that_tells_of_no_eviction_and_makes_no_events(clock, record):
    engine = engine_of("0.10.2", clock, log_stats=False)
    engine.add("a")
    clock.advance(3 * MS)
    engine.step({"a": 4})
    engine.step({}, evicted=["a"])
    engine.step({"a": 5}, a=0)
    span = the_request(record)
    assert phases(record, span) == [("queue", 0, 3), ("prefill", 3, 13), ("decode", 13, 33)]
    assert span.attributes[names.LLMLAT_PREEMPTION_COUNT] == 0


@each_version
def test_a_cache_that_comes_from_elsewhere(version, clock, stepped):
    engine = engine_of(version, clock)
    engine.scheduler.connector = object()
    engine.add("a")
    engine.step({})
    engine.scheduler.requests["a"].status = RequestStatus.WAITING_FOR_REMOTE_KVS
    engine.step({})
    engine.step({})
    engine.scheduler.requests["a"].status = RequestStatus.WAITING
    engine.step({})
    engine.step({"a": 4})
    engine.step({}, evicted=["a"])
    engine.step({"a": 5}, a=0)
    assert phases(stepped, the_request(stepped)) == [
        ("queue", 0, 40),
        ("kv_transfer", 10, 30),
        ("prefill", 40, 50),
        ("decode", 50, 70),
        ("preempted", 50, 60),
    ]


@each_version
def test_tf_10_steps_with_several_tokens_each(version, clock, record):
    engine = engine_of(version, clock)
    engine.add("a")
    engine.step({"a": 4}, {"a": 3})
    engine.step({"a": 3}, {"a": 2}, takes_ns=30 * MS)
    engine.step({"a": 4}, {"a": 3}, takes_ns=30 * MS, a=0)
    span = the_request(record)
    (decode,) = [each for each in phases(record, span) if each[0] == "decode"]
    length_ms = decode[2] - decode[1]
    tokens = span.attributes[names.LLMLAT_DECODE_TOKENS]
    steps = span.attributes[names.LLMLAT_DECODE_STEPS]
    assert (length_ms / steps, length_ms / tokens, 1 + tokens) == (30, 60 / 7, 8)


@each_version
def test_en_10_what_is_between_the_server_and_its_queue_is_in_neither(version, clock, record):
    engine = engine_of(version, clock)
    to_core = engine.api.core

    def on_its_way(request):
        clock.advance(800 * MS)
        to_core(request)

    engine.api.core = on_its_way
    engine.add("a")
    clock.advance(100 * MS)
    engine.step({"a": 4}, a=0)
    span = the_request(record)
    assert phases(record, span) == [("queue", 800, 900), ("prefill", 900, 910)]
    assert span.attributes[names.LLMLAT_ENGINE_TIME_TO_FIRST_TOKEN] == 0.91


@each_version
def test_words_are_made_of_tokens_after_the_last_one(version, clock, record):
    engine = engine_of(version, clock)
    engine.add("a")
    process = engine.process

    def later(told):
        clock.advance(3 * MS)
        process(told)

    engine.process = later
    engine.step({"a": 4}, a=0)
    assert phases(record, the_request(record)) == [("prefill", 0, 10), ("detokenize", 10, 13)]


@each_version
def test_a_stop_string_is_found_where_words_are_made(version, clock, record):
    engine = engine_of(version, clock)
    engine.add("a", stop=7)
    engine.step({"a": 4})
    span = the_request(record)
    assert span.attributes[names.LLMLAT_STREAM_END] == "complete"
    assert phases(record, span) == [("prefill", 0, 10)]
    assert engine.scheduler.requests == {}


@each_version
def test_a_prompt_that_has_no_tokens(version, clock, record):
    engine = engine_of(version, clock)
    engine.add("a", None)
    engine.step({"a": 4}, a=0)
    span = the_request(record)
    assert names.LLMLAT_PREFILL_COMPUTED_TOKENS not in span.attributes
    assert span.attributes[names.LLMLAT_PREFILL_CACHED_TOKENS] == 0


@each_version
def test_what_makes_no_tokens_is_an_embedding(version, clock, record):
    engine = engine_of(version, clock)
    engine.add("a", pooling=True)
    engine.step({"a": 4}, a=0)
    span = the_request(record)
    assert span.name == "engine embeddings"
    assert phases(record, span) == [("prefill", 0, 10)]
    assert names.LLMLAT_DECODE_TOKENS not in span.attributes
    assert span.attributes[names.LLMLAT_PREFILL_COMPUTED_TOKENS] == 4


def test_what_tells_of_itself_is_not_told_of_by_others(clock, record):
    engine = engine_of(LAST, clock)
    process = engine.process
    carried: list[dict[str, str]] = []

    def seen(told):
        carried.extend(each.trace_headers for each in told.outputs)
        process(told)

    engine.process = seen
    for each in "ab":
        engine.add(each)
    engine.step({"a": 4, "b": 4})
    engine.step({"a": 1, "b": 1}, a=0, b=0)
    assert len(carried) == 4
    assert not any(NEWS in headers for headers in carried)


def test_the_name_that_its_caller_has_given_a_request(clock, record):
    engine = engine_of(LAST, clock)
    engine.add("a-8f3c", external_req_id="a")
    engine.step({"a-8f3c": 4}, **{"a-8f3c": 0})
    assert the_request(record).attributes[names.LLMLAT_REQUEST_ID] == "a"


def test_a_model_of_several_names(clock, record):
    engine = engine_of(LAST, clock)
    engine.api.model_config.served_model_name = ["first", "second"]
    engine.add("a")
    engine.step({"a": 4}, a=0)
    assert the_request(record).attributes[names.GEN_AI_REQUEST_MODEL] == "first"


@each_version
def test_what_vllm_hands_over_is_what_it_would_without_us(version, clock, record):
    engine = engine_of(version, clock)
    request = engine.add("a", headers={"x": "y"})
    assert request.trace_headers["x"] == "y"
    engine.step({"a": 4})
    engine.step({"a": 1}, a=1)
    assert [(name, tokens) for name, tokens, _ in engine.told] == [("a", [7]), ("a", [7])]
