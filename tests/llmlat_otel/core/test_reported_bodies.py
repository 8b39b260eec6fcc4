"""What engines say of themselves in the body of a response, as their documentation shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmlat_otel.core.attributes import Attributes
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.recording import Anchor
from llmlat_otel.core.reported import (
    read_dynamo_timing,
    read_llama_timings,
    read_localai_timings,
    read_ollama_durations,
    read_vllm_metrics,
)
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import Evidence

DAY_NS = 86_400 * 10**9
HOSTILE: tuple[Any, ...] = (
    None,
    True,
    False,
    "1",
    b"1",
    "",
    [],
    {},
    (1,),
    -1,
    -0.5,
    10**30,
    1e300,
    1e18,
)
NOT_FINITE = (float("nan"), float("inf"), float("-inf"))

# docs/api.md: the last chunk of /api/chat, streamed
OLLAMA = {
    "total_duration": 4883583458,
    "load_duration": 1334875,
    "prompt_eval_count": 26,
    "prompt_eval_duration": 342546000,
    "eval_count": 282,
    "eval_duration": 4535599000,
}

# docs/api.md: /api/generate, streamed; the model was loaded for it
OLLAMA_LOADED = {
    "total_duration": 10706818083,
    "load_duration": 6338219291,
    "prompt_eval_count": 26,
    "prompt_eval_duration": 130079000,
    "eval_count": 259,
    "eval_duration": 4232710000,
}

# docs/api.md: /api/embed
OLLAMA_EMBED = {"total_duration": 14143917, "load_duration": 1019500, "prompt_eval_count": 8}

# vllm/entrypoints/generate/base/protocol.py, PerRequestMetrics
VLLM = {
    "time_to_first_token_ms": 41.5,
    "generation_time_ms": 212.25,
    "queue_time_ms": 3.125,
    "mean_itl_ms": 10.5,
    "tokens_per_second": 81.0,
}

# docs/content/advanced/advanced-usage.md, with `Extra-Usage`
LOCALAI = {
    "prompt_tokens": 24,
    "completion_tokens": 12,
    "total_tokens": 36,
    "timing_prompt_processing": 62.5,
    "timing_token_generation": 148.0,
}

# dynamo-llm 1.6.1, src/protocols/common/timing.rs, TimingInfo: what a router of two pools says
DYNAMO = {
    "request_received_ms": 1_764_500_000_000,
    "prefill_wait_time_ms": 4.5,
    "prefill_time_ms": 180.25,
    "ttft_ms": 201.5,
    "total_time_ms": 912.75,
    "kv_transfer_estimated_latency_ms": 16.75,
}

# llama.cpp, tools/server/README.md: `timings`
LLAMA = {"cache_n": 3, "prompt_n": 20, "prompt_ms": 62.5, "predicted_n": 9, "predicted_ms": 148.0}

Told = dict[Phase, tuple[int, Evidence]]


Reader = Callable[[Any, PhaseRecorder, Attributes], None]

READERS: dict[str, Reader] = {
    "dynamo": read_dynamo_timing,
    "llama.cpp": read_llama_timings,
    "localai": read_localai_timings,
    "ollama": read_ollama_durations,
    "vllm": read_vllm_metrics,
}
SAID: dict[str, dict[str, Any]] = {
    "dynamo": DYNAMO,
    "llama.cpp": LLAMA,
    "localai": LOCALAI,
    "ollama": OLLAMA,
    "vllm": VLLM,
}


def read(reader: Reader, said: Any) -> tuple[Told, Attributes]:
    marks = PhaseRecorder(0, Anchor(0, 0, 0), 1)
    facts: Attributes = {}
    reader(said, marks, facts)
    return {
        each.phase: (each.duration_ns, each.evidence) for each in marks.finish(1).reported
    }, facts


def reported(**durations_ns: int) -> Told:
    return {Phase(name): (each, Evidence.REPORTED) for name, each in durations_ns.items()}


def test_ollama_says_how_long_it_loaded_at_most() -> None:
    told, facts = read(read_ollama_durations, OLLAMA_LOADED)
    assert told == {
        Phase.LOAD: (6_338_219_291, Evidence.BOUNDED),
        **reported(prefill=130_079_000, decode=4_232_710_000),
    }
    assert facts == {names.LLMLAT_DECODE_TOKENS: 258}, "decode begins when the first was sampled"


def test_ollama_of_a_model_that_was_there_says_no_more_than_that_it_took_so_long_at_most() -> None:
    told, _ = read(read_ollama_durations, OLLAMA)
    assert told[Phase.LOAD] == (1_334_875, Evidence.BOUNDED)


def test_ollama_says_only_how_long_it_loaded_of_embeddings() -> None:
    assert read(read_ollama_durations, OLLAMA_EMBED) == (
        {Phase.LOAD: (1_019_500, Evidence.BOUNDED)},
        {},
    )


def test_ollama_does_not_say_how_many_of_the_prompt_it_computed() -> None:
    """Up to 0.30 `prompt_eval_count` leaves cached tokens out, later it does not."""
    _, facts = read(read_ollama_durations, OLLAMA)
    assert names.LLMLAT_PREFILL_COMPUTED_TOKENS not in facts
    assert names.LLMLAT_PREFILL_CACHED_TOKENS not in facts


def test_ollama_that_says_how_many_were_cached() -> None:
    _, facts = read(read_ollama_durations, {**OLLAMA, "prompt_eval_cached_count": 20})
    assert facts[names.LLMLAT_PREFILL_CACHED_TOKENS] == 20


def test_ollama_that_was_asked_to_load_and_no_more_says_nothing() -> None:
    """`done_reason` is `load`, and there are no durations at all."""
    assert read(read_ollama_durations, {"total_duration": None, "load_duration": None}) == ({}, {})


def test_ollama_that_stopped_before_any_token() -> None:
    told, facts = read(read_ollama_durations, {**OLLAMA, "eval_count": 0, "eval_duration": 0})
    assert Phase.DECODE not in told
    assert facts == {}


def test_ollama_that_sampled_one_token_sampled_none_after_it() -> None:
    _, facts = read(read_ollama_durations, {**OLLAMA, "eval_count": 1})
    assert facts == {names.LLMLAT_DECODE_TOKENS: 0}


def test_vllm_counts_prefill_from_when_it_was_scheduled() -> None:
    assert read(read_vllm_metrics, VLLM) == (
        reported(queue=3_125_000, prefill=41_500_000, decode=212_250_000),
        {},
    )


def test_vllm_with_one_token_has_a_decode_of_no_length() -> None:
    """What it has not reached is null; the first token is the last one here."""
    told, _ = read(read_vllm_metrics, {**VLLM, "generation_time_ms": 0.0, "mean_itl_ms": None})
    assert told[Phase.DECODE] == (0, Evidence.REPORTED)


def test_vllm_of_a_request_that_was_not_scheduled() -> None:
    said = dict.fromkeys(VLLM)
    assert read(read_vllm_metrics, said) == ({}, {})


def test_dynamo_says_how_long_kv_travelled_at_most_and_nothing_that_others_call_so() -> None:
    """Its `prefill_time_ms` holds the worker's queue, `prefill_wait_time_ms` does not."""
    assert read(read_dynamo_timing, DYNAMO) == (
        {Phase.KV_TRANSFER: (16_750_000, Evidence.BOUNDED)},
        {},
    )


def test_localai() -> None:
    assert read(read_localai_timings, LOCALAI) == (
        reported(prefill=62_500_000, decode=148_000_000),
        {},
    )


def test_localai_whose_backend_has_no_times_says_nothing() -> None:
    """All but llama.cpp's leave them at 0, which is left out of what it sends."""
    said = {**LOCALAI, "timing_prompt_processing": 0.0, "timing_token_generation": 0}
    assert read(read_localai_timings, said) == ({}, {})


def test_llama_that_was_stopped_before_any_token_has_no_decode() -> None:
    told, facts = read(read_llama_timings, {**LLAMA, "predicted_n": 0, "predicted_ms": 0.0})
    assert told == reported(prefill=62_500_000)
    assert names.LLMLAT_DECODE_TOKENS not in facts


@pytest.mark.parametrize("producer", READERS)
def test_nobody_reads_anothers_fields(producer: str) -> None:
    others = {name: said for name, said in SAID.items() if name != producer}
    for said in others.values():
        assert read(READERS[producer], said) == ({}, {})


@pytest.mark.parametrize("junk", [*HOSTILE, *NOT_FINITE], ids=repr)
@pytest.mark.parametrize("producer", READERS)
def test_what_is_no_number_of_its_kind_is_absent(producer: str, junk: Any) -> None:
    assert read(READERS[producer], dict.fromkeys(SAID[producer], junk)) == ({}, {})


@pytest.mark.parametrize("producer", READERS)
def test_each_field_is_read_by_itself(producer: str) -> None:
    reader, said = READERS[producer], SAID[producer]
    whole, counts = read(reader, said)
    for key in said:
        told, facts = read(reader, {**said, key: "soon"})
        assert told.items() <= whole.items()
        assert facts.items() <= counts.items()
        assert len(whole) + len(counts) - len(told) - len(facts) in {0, 1}


@pytest.mark.parametrize(
    ("producer", "mark"),
    [
        ("dynamo", "request_received_ms"),
        ("localai", "timing_prompt_processing"),  # tinygrad's backend: all of the work, in seconds
        ("localai", "timing_token_generation"),
        ("ollama", "load_duration"),
        ("ollama", "total_duration"),
        ("vllm", "generation_time_ms"),
        ("vllm", "queue_time_ms"),
        ("vllm", "time_to_first_token_ms"),
    ],
)
def test_what_lacks_a_mark_is_somebody_elses(producer: str, mark: str) -> None:
    said = {key: value for key, value in SAID[producer].items() if key != mark}
    assert read(READERS[producer], said) == ({}, {})


@pytest.mark.parametrize("said", [None, [], "timings", 1, True, [("prompt_ms", 1.0)]], ids=repr)
@pytest.mark.parametrize("producer", READERS)
def test_what_is_no_object_says_nothing(producer: str, said: Any) -> None:
    assert read(READERS[producer], said) == ({}, {})


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=3,
)


@given(data=st.data(), producer=st.sampled_from(sorted(READERS)))
def test_whatever_is_sent_becomes_a_length_or_nothing(data: st.DataObject, producer: str) -> None:
    said = {key: data.draw(anything, label=key) for key in SAID[producer]}
    told, facts = read(READERS[producer], said)
    for duration_ns, _ in told.values():
        assert type(duration_ns) is int
        assert 0 <= duration_ns <= DAY_NS
    for count in facts.values():
        assert type(count) is int
        assert 0 <= count < 2**63


@given(
    st.dictionaries(
        st.sampled_from(["load_duration", "prompt_eval_duration", "eval_duration"]),
        st.integers(min_value=1, max_value=DAY_NS),
    )
)
def test_ollamas_nanoseconds_come_through_as_they_are(said: dict[str, int]) -> None:
    marks = {"total_duration": DAY_NS, "load_duration": None}
    told, _ = read(read_ollama_durations, {**marks, **said})
    assert sorted(each for each, _ in told.values()) == sorted(said.values())
