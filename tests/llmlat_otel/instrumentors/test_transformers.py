"""`generate` of Transformers: its phases, its counts, and how it is stopped; nothing changes."""

import copy
import inspect
import pickle
import threading
from types import SimpleNamespace

import pytest
from opentelemetry import context as contexts
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import llmlat_otel
from llmlat_otel.core import generations
from llmlat_otel.core.guard import faults
from llmlat_otel.core.instrumentor import Instrumentor, State
from llmlat_otel.instrumentors import threads, transformers
from llmlat_otel.testing import MS, recorded
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import Boundary, StreamEnd
from tests.llmlat_otel.instrumentors import fake_transformers
from tests.llmlat_otel.instrumentors.fake_transformers import (
    DEVICE,
    PROMPT,
    SETUP,
    STEP,
    GenerationMixin,
    Ids,
    Llama,
    StoppingCriteriaList,
    Streamer,
    stops_after,
)

VERSIONS = pytest.mark.parametrize("is_old", [True, False], ids=["4.x", "5.x"])
ENGINE = "engine text_completion"


@pytest.fixture(autouse=True)
def timed(request):
    instrumentor = Instrumentor(transformers.TARGETS)
    before = dict(faults())
    with fake_transformers.installed():
        instrumentor.instrument()
        assert {each.state for each in instrumentor.states()} == {State.WRAPPED}
        yield instrumentor
        instrumentor.uninstrument()
    assert (faults() == before) is ("broken" not in request.fixturenames)


def engine(record):
    (span,) = (each for each in record.tree() if each["name"] == ENGINE)
    return span


def phases(record):
    """Lengths in ms by phase, and those that were cut short."""
    spans = [each for each in record.tree() if each["name"].startswith("phase ")]
    said = [each["attributes"] for each in spans]
    lengths = {
        each[names.LLMLAT_PHASE_NAME]: each[names.LLMLAT_PHASE_DURATION] * 1_000 for each in said
    }
    cut = {each[names.LLMLAT_PHASE_NAME] for each in said if names.LLMLAT_PHASE_TRUNCATED in each}
    return pytest.approx(lengths), cut


PREFILL, DECODE = Phase.PREFILL.value, Phase.DECODE.value


@VERSIONS
def test_a_generation_is_an_engine_operation_with_two_phases(record, clock, is_old):
    Llama(clock, is_old=is_old).generate(Ids(1, 10))
    span = engine(record)
    said = span["attributes"]
    assert (span["parent"], span["kind"]) == (None, "INTERNAL")
    assert said[names.LLMLAT_BOUNDARY_NAME] == Boundary.ENGINE.value
    assert said[names.GEN_AI_PROVIDER_NAME] == "transformers"
    assert said[names.GEN_AI_REQUEST_MODEL] == "acme/tiny-1b"
    assert said[names.GEN_AI_REQUEST_STREAM] is False
    assert said[names.LLMLAT_STREAM_END] == StreamEnd.COMPLETE.value
    assert said[names.LLMLAT_PREFILL_COMPUTED_TOKENS] == 10
    assert said[names.LLMLAT_PREFILL_CACHED_TOKENS] == 0
    assert said[names.LLMLAT_DECODE_TOKENS] == said[names.LLMLAT_DECODE_STEPS] == 3
    assert said[names.LLMLAT_BATCH_SIZE_MAX] == 1
    first_s = said[names.LLMLAT_ENGINE_TIME_TO_FIRST_TOKEN]
    assert first_s * 1_000 * MS == pytest.approx(SETUP + PROMPT)
    assert phases(record) == ({PREFILL: 30, DECODE: 15}, set())


@VERSIONS
def test_one_token_takes_no_decoding(record, clock, is_old):
    Llama(clock, (1,), is_old=is_old).generate(Ids(1, 10))
    said = engine(record)["attributes"]
    assert said[names.LLMLAT_DECODE_TOKENS] == said[names.LLMLAT_DECODE_STEPS] == 0
    assert phases(record) == ({PREFILL: 30}, set())


@VERSIONS
def test_a_batch_has_the_tokens_of_each_row_until_it_was_done(record, clock, is_old):
    Llama(clock, (1, 7, 3), is_old=is_old).generate(Ids(3, 10))
    said = engine(record)["attributes"]
    assert said[names.LLMLAT_DECODE_TOKENS] == 0 + 6 + 2
    assert said[names.LLMLAT_DECODE_STEPS] == 6
    assert said[names.LLMLAT_BATCH_SIZE_MAX] == 3
    assert said[names.LLMLAT_PREFILL_COMPUTED_TOKENS] == 30


@VERSIONS
def test_a_device_has_a_token_when_it_has_answered(record, clock, is_old):
    Llama(clock, is_old=is_old).generate(Ids(1, 10, "cuda"))
    found, _ = phases(record)
    asked_first = DEVICE  # Before there is anything to wait for.
    prefill, decode = asked_first + PROMPT + DEVICE, 3 * (STEP + DEVICE)
    assert found == {PREFILL: prefill / MS, DECODE: decode / MS}


def test_a_loop_that_goes_on_before_it_knows_has_no_phases(record, clock):
    Llama(clock).generate(Ids(1, 10, "mps"))
    assert names.LLMLAT_DECODE_STEPS not in engine(record)["attributes"]
    assert phases(record) == ({}, set())


def test_what_a_streamer_takes_is_not_in_the_token_that_it_is_handed(record, clock):
    Llama(clock).generate(Ids(1, 10), streamer=Streamer(clock, took=4 * MS))
    assert phases(record) == ({PREFILL: 30, DECODE: 3 * (4 + 5)}, set())
    assert engine(record)["attributes"][names.GEN_AI_REQUEST_STREAM] is True


def test_of_beams_the_steps_are_known_and_not_the_tokens(record, clock):
    Llama(clock, (5,)).generate(Ids(3, 10), loop="_beam_search")
    said = engine(record)["attributes"]
    assert said[names.LLMLAT_DECODE_STEPS] == 4
    assert names.LLMLAT_DECODE_TOKENS not in said
    assert phases(record) == ({PREFILL: 30, DECODE: 20}, set())


def test_tf_10_a_draft_s_tokens_are_counted_apart_from_the_steps(record, clock):
    draft, model = Llama(clock, (2,)), Llama(clock)
    loop = {"loop": "_assisted_decoding", "assistant_model": draft, "drafts": (3, 2, 3)}
    model.generate(Ids(1, 10), **loop)
    said = engine(record)["attributes"]  # One operation: the draft's runs are in its time.
    assert said[names.LLMLAT_DECODE_TOKENS] == 7
    assert said[names.LLMLAT_DECODE_STEPS] == 2
    draft_ms = (SETUP + PROMPT + STEP) / MS
    assert phases(record) == ({PREFILL: 30 + draft_ms, DECODE: 2 * (5 + draft_ms)}, set())


def test_what_is_handed_on_before_its_loop_is_the_same_generation(record, clock):
    Llama(clock).generate(Ids(1, 10), handed_on=True)
    said = engine(record)["attributes"]
    first_s = said[names.LLMLAT_ENGINE_TIME_TO_FIRST_TOKEN]
    assert first_s * 1_000 * MS == pytest.approx(2 * SETUP + PROMPT)


def test_rounds_for_the_sake_of_other_ranks_are_not_counted(record, clock):
    model = Llama(clock)
    model.rounds_for_others = 5
    model.generate(Ids(1, 10), synced_gpus=True)
    assert engine(record)["attributes"][names.LLMLAT_DECODE_STEPS] == 3
    assert phases(record) == ({PREFILL: 30, DECODE: 15}, set())


# What prefill computes


class Cache:
    def get_seq_length(self):
        return 6


@pytest.mark.parametrize(
    ("given", "computed", "cached"),
    [
        ({}, 10, 0),
        ({"past_key_values": Cache()}, 4, 6),
        ({"past_key_values": Cache(), "attention_mask": Ids(1, 10)}, 4, 6),
        ({"past_key_values": Cache(), "attention_mask": Ids(1, 16)}, 10, 6),
        ({"past_key_values": Cache(), "inputs_embeds": Ids(1, 20)}, 14, 6),
        ({"past_key_values": ((),)}, None, None),
        ({"cache_params": Cache()}, None, None),
        (
            {
                "past_key_values": Cache(),
                "generation_config": SimpleNamespace(_mask_length=16),
            },
            10,
            6,
        ),
    ],
    ids=["none", "whole", "mask", "rest", "embeds", "tuples", "state", "mask of ones"],
)
def test_a_cache_that_tells_what_it_holds(record, clock, given, computed, cached):
    Llama(clock, (4, 4)).generate(Ids(2, 10), **given)
    said = engine(record)["attributes"]
    expected = None if computed is None else 2 * computed
    assert said.get(names.LLMLAT_PREFILL_COMPUTED_TOKENS) == expected
    assert said.get(names.LLMLAT_PREFILL_CACHED_TOKENS) == (cached and 2 * cached)


def test_an_encoder_s_prompt_is_not_the_loop_s(record, clock):
    model = Llama(clock)
    model.config.is_encoder_decoder = True
    model.generate(Ids(1, 1))
    assert names.LLMLAT_PREFILL_COMPUTED_TOKENS not in engine(record)["attributes"]


@pytest.mark.parametrize("name", ["/srv/llama", "./llama", "a/b/c", "C:\\models", "", None, 3])
def test_a_path_is_no_name_of_a_model(record, clock, name):
    Llama(clock, name=name).generate(Ids(1, 10))
    assert names.GEN_AI_REQUEST_MODEL not in engine(record)["attributes"]


# How it is stopped


@VERSIONS
@pytest.mark.parametrize("error", [RuntimeError("the user's words"), KeyboardInterrupt()])
def test_a_criterion_that_raises_cancels(record, clock, is_old, error):
    with pytest.raises(type(error)) as raised:
        Llama(clock, is_old=is_old).generate(Ids(1, 10), stopping_criteria=stops_after(2, error))
    assert raised.value is error
    said = engine(record)["attributes"]
    assert said[names.LLMLAT_STREAM_END] == StreamEnd.CANCELLED.value
    assert said[names.ERROR_TYPE] == type(error).__name__
    assert said[names.LLMLAT_DECODE_TOKENS] == 2, "the third was there"
    assert phases(record) == ({PREFILL: 30, DECODE: 10}, {DECODE})
    assert "words" not in str(record.tree())


@VERSIONS
def test_a_streamer_that_raises_cancels(record, clock, is_old):
    with pytest.raises(ConnectionError):
        Llama(clock, is_old=is_old).generate(Ids(1, 10), streamer=Streamer(clock, 2))
    said = engine(record)["attributes"]
    assert said[names.LLMLAT_STREAM_END] == StreamEnd.CANCELLED.value
    assert phases(record) == ({PREFILL: 30, DECODE: 10}, {DECODE})


def test_an_interrupt_in_prefill_leaves_a_part_of_it(record, clock):
    model = Llama(clock)

    def interrupt():
        clock.advance(7 * MS)
        raise KeyboardInterrupt

    model.while_running = interrupt
    with pytest.raises(KeyboardInterrupt):
        model.generate(Ids(1, 10))
    said = engine(record)["attributes"]
    assert said[names.LLMLAT_STREAM_END] == StreamEnd.CANCELLED.value
    assert names.LLMLAT_ENGINE_TIME_TO_FIRST_TOKEN not in said
    assert names.LLMLAT_DECODE_STEPS not in said
    assert phases(record) == ({PREFILL: 7}, {PREFILL})


def test_a_model_that_fails_has_failed(record, clock):
    model = Llama(clock)

    def fail():
        raise RuntimeError("out of memory")

    model.while_running = fail
    with pytest.raises(RuntimeError):
        model.generate(Ids(1, 10))
    assert engine(record)["attributes"][names.LLMLAT_STREAM_END] == StreamEnd.FAILED.value


def test_what_is_refused_before_its_loop_has_no_phases(record, clock):
    with pytest.raises(AttributeError):
        Llama(clock).generate(None)
    assert phases(record) == ({}, set())
    assert engine(record)["attributes"][names.LLMLAT_STREAM_END] == StreamEnd.FAILED.value


# Who asks


def test_it_is_below_the_operation_that_asks_in_whichever_thread(record, clock):
    carried = Instrumentor(threads.TARGETS)
    carried.instrument()
    try:
        with llmlat_otel.agent("adviser"):
            thread = threading.Thread(target=Llama(clock).generate, args=(Ids(1, 10),))
            thread.start()
            thread.join()
    finally:
        carried.uninstrument()
    agent, span, *_ = record.spans
    assert span.name == ENGINE
    assert span.parent.span_id == agent.context.span_id
    (joined,) = agent.events
    waited_for = (f"{span.context.span_id:016x}",)
    assert joined.attributes[names.LLMLAT_JOIN_SPAN_IDS] == waited_for


def test_generations_side_by_side_do_not_mix(record, clock):
    """Each thread stops in the middle of its own, until the other one has come as far."""
    meeting = threading.Barrier(2, timeout=60)
    models = [Llama(clock, (n,)) for n in (4, 4)]
    runs = []
    for width, model in zip((10, 20), models, strict=True):
        model.while_running = meeting.wait
        runs.append(threading.Thread(target=model.generate, args=(Ids(1, width),)))
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    said = [each["attributes"] for each in record.tree() if each["name"] == ENGINE]
    assert {each[names.LLMLAT_PREFILL_COMPUTED_TOKENS] for each in said} == {10, 20}
    assert [each[names.LLMLAT_DECODE_STEPS] for each in said] == [3, 3]


def test_a_generation_in_a_criterion_is_the_time_of_the_one_around_it(record, clock):
    judge = Llama(clock, (2,))

    def criterion(ids, _):
        judge.generate(Ids(1, 50))
        return fake_transformers.Rows([False])

    Llama(clock).generate(Ids(1, 10), stopping_criteria=StoppingCriteriaList([criterion]))
    said = engine(record)["attributes"]
    assert said[names.LLMLAT_PREFILL_COMPUTED_TOKENS] == 10
    assert said[names.LLMLAT_DECODE_STEPS] == 3


def test_two_in_a_row_are_two(record, clock):
    model = Llama(clock)
    for _ in range(2):
        model.generate(Ids(1, 10))
    assert [each["name"] for each in record.tree()].count(ENGINE) == 2
    assert generations.underway() is None


@pytest.mark.parametrize("key", ["suppress_instrumentation"])
def test_nothing_is_timed_where_somebody_asks_for_silence(record, clock, key):
    token = contexts.attach(contexts.set_value(key, True))
    try:
        Llama(clock).generate(Ids(1, 10))
    finally:
        contexts.detach(token)
    assert record.tree() == []


# Nothing changes


def test_it_looks_as_before(timed):
    def looks():
        return (
            str(Llama.generate).partition(" at ")[0],
            inspect.signature(Llama.generate),
            inspect.getsource(Llama.generate),
            Llama.generate.__doc__,
            inspect.signature(Llama._sample).parameters.keys(),
            inspect.isfunction(Llama.__dict__.get("generate", GenerationMixin.generate)),
        )

    during = looks()
    timed.uninstrument()
    assert looks() == during


def test_criteria_are_the_caller_s_own_and_are_copied_as_before(clock):
    mine = StoppingCriteriaList()
    Llama(clock).generate(Ids(1, 10), stopping_criteria=mine)
    assert mine == []
    assert vars(mine) == {}
    assert type(copy.deepcopy(mine)) is type(pickle.loads(pickle.dumps(mine))) is type(mine)


@pytest.fixture(
    params=["_begun", "_enter", "_prompt", "_asked", "_answered", "_stopped", "_went_round"]
)
def broken(request, monkeypatch):
    """One piece of ours raises whenever it is called."""

    def fault(*args, **kwargs):
        raise TypeError("ours")

    monkeypatch.setattr(transformers, request.param, fault)


@pytest.mark.usefixtures("record", "broken")
def test_a_fault_of_ours_reaches_nobody(clock):
    result = Llama(clock, (4, 2)).generate(Ids(2, 10))
    assert result.shape == (2, 14)
    error = ValueError()
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - it is this very one
        Llama(clock).generate(Ids(1, 10), stopping_criteria=stops_after(1, error))
    assert raised.value is error


def test_what_is_not_sampled_is_not_looked_at(clock, monkeypatch):
    monkeypatch.setattr(generations, "Generation", None)
    with (
        recorded(sampler=ALWAYS_OFF) as record,
        record.tracer_provider.get_tracer("theirs").start_as_current_span("root"),
    ):
        assert Llama(clock).generate(Ids(1, 10)).shape == (1, 14)
