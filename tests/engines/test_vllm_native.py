"""A server whose own tracing is on: its span of a request is the parent, and there is no second."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from llmlat_semconv import attributes as names
from tests.engines.engine_accounts import accounts, check_in_order, wait_for
from tests.engines.vllm_server import SLOW_STEPS, VllmServer, tokens
from tests.llmlat_processor.http_sink import HttpSink

pytestmark = pytest.mark.engines

NATIVE = "llm_request"
AGREES_S = 0.001
TRACE_ID, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def server(otlp: HttpSink, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    """It is told where spans go by vLLM's own option, and by nothing else."""
    environment = {
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "LLMLAT_PHASE_MIN": "0",
    }
    options = (f"--otlp-traces-endpoint={otlp.url}/v1/traces", *SLOW_STEPS)
    folder = tmp_path_factory.mktemp("vllm")
    with VllmServer(folder, options, environment=environment) as server:
        list(server.stream(prompt=tokens(8), max_tokens=20))  # The first one waits for imports.
        yield server


def test_phases_lie_in_the_span_that_vllm_makes(server: VllmServer, otlp: HttpSink) -> None:
    headers = {"traceparent": f"00-{TRACE_ID}-{CALLER}-01"}
    body = {"prompt": tokens(40), "max_tokens": 30, "ignore_eos": True}
    with server.post("/v1/completions", body, headers) as answer:
        assert answer.status == 200
    (account,) = wait_for(otlp, lambda account: account.trace_id == TRACE_ID)
    assert account.name == NATIVE
    assert account.parent_id.hex() == CALLER
    assert not account.scope.startswith("llmlat")
    assert account.end == "complete"
    assert {"queue", "prefill", "decode"} <= {each.phase for each in account.phases}
    ours = {"queue": "queue", "prefill": "model_prefill", "decode": "model_decode"}
    for phase, name in ours.items():
        (theirs_s,) = (said for key, said in account.facts.items() if key.endswith(f"in_{name}"))
        assert account.length_s(phase) == pytest.approx(theirs_s, abs=AGREES_S), phase
    assert account.facts[names.LLMLAT_DECODE_TOKENS] == 29


def test_each_of_several_has_its_own(server: VllmServer, otlp: HttpSink) -> None:
    answer: dict[str, Any] = server.complete(prompt=[tokens(10), tokens(20)], max_tokens=4, n=2)
    told = wait_for(otlp, lambda account: account.is_of(answer), 4)
    assert {each.name for each in told} == {NATIVE}
    assert {len(each.of("decode")) for each in told} == {1}


def test_a_chat_is_told_of_as_well(server: VllmServer, otlp: HttpSink) -> None:
    said = [{"role": "user", "content": "bada gifo"}]
    with server.post("/v1/chat/completions", {"messages": said, "max_tokens": 5}) as answer:
        told = json.load(answer)
    (account,) = wait_for(
        otlp, lambda account: account.facts[names.LLMLAT_REQUEST_ID] == told["id"]
    )
    assert account.name == NATIVE
    check_in_order(account)


def test_vllm_makes_none_of_a_client_that_hangs_up_and_we_do(
    server: VllmServer, otlp: HttpSink
) -> None:
    chunks = server.stream(prompt=tokens(20, 450), max_tokens=1900)
    first = next(chunks)
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    (account,) = wait_for(otlp, lambda account: account.is_of(first))
    assert account.name == "engine text_completion"
    assert account.end == "cancelled"
    assert [each.phase for each in account.phases if each.is_cut] == ["decode"]


def test_no_request_has_two_spans(server: VllmServer, otlp: HttpSink) -> None:
    answer = server.complete(prompt=tokens(10), max_tokens=4)
    wait_for(otlp, lambda account: account.is_of(answer))
    told = accounts(otlp)
    assert len([each for each in told if each.name == NATIVE]) == otlp.names().count(NATIVE)
    for account in told:
        check_in_order(account)
