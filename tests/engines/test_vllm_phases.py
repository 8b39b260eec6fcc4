"""A real server with few slots, few blocks and a small budget: each kind of waiting is a phase."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from llmlat_semconv import attributes as names
from tests.engines import parts
from tests.engines.ending import ended_at_work
from tests.engines.engine_accounts import Account, accounts, check_in_order, wait_for
from tests.engines.installed import sends_to
from tests.engines.vllm_server import FEW_SLOTS, SLOW_STEPS, SMALL_BUDGET, VllmServer, tokens
from tests.faults.processor_run import wait_until
from tests.llmlat_processor.http_sink import HttpSink

pytestmark = pytest.mark.engines

SLOTS = 8
BLOCKS = ("--num-gpu-blocks-override=100", "--max-model-len=2048")
"""Of 32 tokens: enough for eight requests of 380 tokens, too few for eight of 660."""
METRICS = ("--enable-per-request-metrics",)
AGREES_S = 0.001
CANCELLED, COMPLETE, FAILED = "cancelled", "complete", "failed"


@pytest.fixture(scope="module")
def server(otlp: HttpSink, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    environment = {**sends_to(otlp.url), "LLMLAT_ENGINE_STEPS": "true", "LLMLAT_PHASE_MIN": "0"}
    options = (*FEW_SLOTS, *SMALL_BUDGET, *BLOCKS, *METRICS, *SLOW_STEPS)
    folder = tmp_path_factory.mktemp("vllm")
    with VllmServer(folder, options, environment=environment) as server:
        list(server.stream(prompt=tokens(8), max_tokens=20))  # The first one waits for imports.
        yield server


def told_of(otlp: HttpSink, answer: dict[str, Any], count: int = 1) -> list[Account]:
    return wait_for(otlp, lambda account: account.is_of(answer), count)


def at_once(server: VllmServer, count: int, prompt: int, answer: int) -> list[dict[str, Any]]:
    """Answers to several clients, whose prompts share no prefix."""

    def one(number: int) -> dict[str, Any]:
        return server.complete(prompt=tokens(prompt, 61 * number), max_tokens=answer)

    with ThreadPoolExecutor(count) as clients:
        return list(clients.map(one, range(count)))


# ── Waiting, and its kinds ───────────────────────────────────────────────────────────────────────


def test_a_long_prompt_is_prefilled_in_three_chunks(server: VllmServer, otlp: HttpSink) -> None:
    answer = server.complete(prompt=tokens(135, 100), max_tokens=3)
    (account,) = told_of(otlp, answer)
    assert account.end == COMPLETE
    assert account.facts[names.LLMLAT_PREFILL_CHUNK_SIZES] == [64, 64, 7]
    assert account.facts[names.LLMLAT_PREFILL_CHUNK_COUNT] == 3
    assert account.facts[names.LLMLAT_PREFILL_COMPUTED_TOKENS] == 135
    assert account.facts[names.LLMLAT_PREFILL_CACHED_TOKENS] == 0
    assert (
        account.facts[names.LLMLAT_DECODE_TOKENS] == account.facts[names.LLMLAT_DECODE_STEPS] == 2
    )
    assert [each.phase for each in account.phases] == [
        "tokenize",
        "queue",
        "prefill",
        "decode",
        "detokenize",
    ]
    assert not any(each.is_cut for each in account.phases)


def test_a_prompt_that_was_seen_before_is_taken_from_the_cache(
    server: VllmServer, otlp: HttpSink
) -> None:
    prompt = tokens(135, 200)
    answers = [server.complete(prompt=prompt, max_tokens=3) for _ in range(2)]
    (first,), (again,) = (told_of(otlp, answer) for answer in answers)
    assert first.facts[names.LLMLAT_PREFILL_CACHED_TOKENS] == 0
    assert again.facts[names.LLMLAT_PREFILL_CACHED_TOKENS] == 128
    assert again.facts[names.LLMLAT_PREFILL_COMPUTED_TOKENS] == 7
    assert again.facts[names.LLMLAT_PREFILL_CHUNK_SIZES] == [7]


def test_who_finds_no_slot_waits_in_the_queue(server: VllmServer, otlp: HttpSink) -> None:
    prompts = [tokens(8, 31 * number) for number in range(12)]
    answer = server.complete(prompt=prompts, max_tokens=100)
    told = sorted(told_of(otlp, answer, 12), key=lambda account: account.of("queue")[0].end_ns)
    assert max(each.facts[names.LLMLAT_BATCH_SIZE_MAX] for each in told) == SLOTS
    first_end_ns = min(each.of("decode")[0].end_ns for each in told)
    assert [each.of("queue")[0].end_ns < first_end_ns for each in told] == [True] * 8 + [False] * 4
    waits_s = [each.length_s("queue") for each in told]
    assert min(waits_s[SLOTS:]) > max(waits_s[:SLOTS])
    before = [
        each.facts[names.LLMLAT_ENGINE_REQUESTS_WAITING]
        + each.facts[names.LLMLAT_ENGINE_REQUESTS_RUNNING]
        for each in sorted(told, key=lambda account: account.of("queue")[0].start_ns)
    ]
    assert before == list(range(12))


def test_few_blocks_preempt_and_each_eviction_is_told(server: VllmServer, otlp: HttpSink) -> None:
    before = server.metric("vllm:num_preemptions_total")
    answers = at_once(server, SLOTS, prompt=60, answer=600)
    told = [account for answer in answers for account in told_of(otlp, answer)]
    evictions = server.metric("vllm:num_preemptions_total") - before
    assert evictions > 0
    assert sum(each.facts[names.LLMLAT_PREEMPTION_COUNT] for each in told) == evictions
    assert sum(len(each.of("preempted")) for each in told) == evictions
    assert {each.facts[names.LLMLAT_DECODE_TOKENS] for each in told} == {599}
    for each in told:
        check_agrees(each, next(answer for answer in answers if each.is_of(answer)))
        for preempted in each.of("preempted"):
            (decode,) = each.of("decode")
            assert decode.start_ns <= preempted.start_ns < preempted.end_ns <= decode.end_ns


# ── The same as vLLM's own account ───────────────────────────────────────────────────────────────


def reached_first_token_s(account: Account) -> float:
    """From the first time in the batch to the first token: an eviction before it is in between."""
    first, *_, last = (*account.of("prefill"), *account.of("prefill"))
    return account.length_s("prefill") if first is last else (last.end_ns - first.start_ns) / 1e9


def check_agrees(account: Account, answer: dict[str, Any]) -> None:
    theirs = answer["metrics"]
    ours = {
        "queue_time_ms": account.length_s("queue"),
        "time_to_first_token_ms": reached_first_token_s(account),  # vLLM's own begins there.
        "generation_time_ms": account.length_s("decode"),
    }
    for name, length_s in ours.items():
        assert length_s == pytest.approx(theirs[name] / 1e3, abs=AGREES_S), (name, account)


def test_each_phase_is_as_long_as_vllm_says(server: VllmServer, otlp: HttpSink) -> None:
    kinds = {
        "vllm:request_queue_time_seconds": "queue",
        "vllm:request_prefill_time_seconds": "prefill",
        "vllm:request_decode_time_seconds": "decode",
    }
    before = {kind: server.metric(f"{kind}_sum") for kind in kinds}
    answers = [each for _ in range(3) for each in at_once(server, 12, prompt=20, answer=40)]
    told = [account for answer in answers for account in told_of(otlp, answer)]
    for account, answer in zip(told, answers, strict=True):
        check_agrees(account, answer)
    for kind, phase in kinds.items():
        theirs_s = server.metric(f"{kind}_sum") - before[kind]
        ours_s = sum(each.length_s(phase) for each in told)
        assert ours_s == pytest.approx(theirs_s, abs=AGREES_S * len(told)), kind
    assert max(each.length_s("queue") for each in told) > AGREES_S


# ── Several of one request ───────────────────────────────────────────────────────────────────────


def test_two_prompts_and_two_answers_of_each_are_four_spans(
    server: VllmServer, otlp: HttpSink
) -> None:
    prompts = [tokens(10, 300), tokens(12, 400)]
    answer = server.complete(prompt=prompts, max_tokens=5, n=2, temperature=1)
    told = told_of(otlp, answer, 4)
    assert len({each.span_id for each in told}) == 4
    assert sorted(each.facts[names.LLMLAT_PREFILL_COMPUTED_TOKENS] for each in told) == [
        10,
        10,
        12,
        12,
    ]
    assert answer["usage"]["completion_tokens"] == sum(
        1 + each.facts[names.LLMLAT_DECODE_TOKENS] for each in told
    )
    assert all(each.of("prefill") and each.of("decode") for each in told)


# ── Clients that hang up ─────────────────────────────────────────────────────────────────────────


def test_a_client_that_hangs_up_in_the_middle_leaves_one_span_with_what_was_reached(
    server: VllmServer, otlp: HttpSink
) -> None:
    chunks = server.stream(prompt=tokens(20, 450), max_tokens=1900)
    first = next(chunks)
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    (account,) = told_of(otlp, first)
    assert account.end == CANCELLED
    assert [(each.phase, each.is_cut) for each in account.phases] == [
        ("tokenize", False),
        ("queue", False),
        ("prefill", False),
        ("decode", True),
    ]
    assert 1 <= account.facts[names.LLMLAT_DECODE_TOKENS] < 1899
    assert account.facts[names.LLMLAT_PREFILL_COMPUTED_TOKENS] == 20
    server.complete(prompt=tokens(3), max_tokens=1)
    told_of(otlp, first)


def test_a_client_that_hangs_up_in_the_queue_leaves_one_span_with_its_wait(
    server: VllmServer, otlp: HttpSink
) -> None:
    prompts = [tokens(8, 17 * number) for number in range(SLOTS)]
    busy = server.stream(prompt=prompts, max_tokens=370)
    next(busy)
    wait_until(lambda: server.metric("vllm:num_requests_running") == SLOTS)
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc)
    body = {"model": parts.MODEL_NAME, "prompt": tokens(30), "max_tokens": 50}
    headers = {"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}
    headers["content-type"] = "application/json"
    connection.request("POST", "/v1/completions", json.dumps(body), headers)
    wait_until(lambda: server.metric("vllm:num_requests_waiting") == 1)
    connection.close()
    (account,) = wait_for(otlp, lambda account: account.trace_id == trace_id)
    busy.close()  # type: ignore[attr-defined]
    assert account.end == CANCELLED
    assert account.parent_id.hex() == "b7ad6b7169203331"
    assert [(each.phase, each.is_cut) for each in account.phases] == [
        ("tokenize", False),
        ("queue", True),
    ]
    assert account.facts[names.LLMLAT_ENGINE_REQUESTS_RUNNING] == SLOTS
    assert names.LLMLAT_DECODE_TOKENS not in account.facts


def test_phases_follow_one_another(server: VllmServer, otlp: HttpSink) -> None:
    told = accounts(otlp)
    assert told
    for account in told:
        check_in_order(account)


# ── The end, which is the last test of this server ───────────────────────────────────────────────


def test_what_has_ended_and_what_is_under_way_is_told_at_the_end(
    server: VllmServer, otlp: HttpSink
) -> None:
    begun = [server.stream(prompt=tokens(20, 90 * number), max_tokens=1500) for number in range(3)]
    firsts = [next(chunks) for chunks in begun]
    done = server.complete(prompt=tokens(5), max_tokens=1)
    assert ended_at_work(server, begun) == 0
    told = accounts(otlp)
    for first in firsts:
        (account,) = (each for each in told if each.is_of(first))
        assert account.end in {CANCELLED, FAILED}  # By the engine's last words, or its silence.
        assert [each.phase for each in account.phases if each.is_cut] == ["decode"]
        check_in_order(account)
    assert [each.end for each in told if each.is_of(done)] == [COMPLETE]
