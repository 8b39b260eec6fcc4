"""Our work may fail wherever it can, and spans may go nowhere: the server answers all the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.engines.ending import ended_at_work
from tests.engines.engine_accounts import accounts
from tests.engines.installed import python_path, sends_to
from tests.engines.vllm_server import FEW_SLOTS, SLOW_STEPS, SMALL_BUDGET, VllmServer, tokens
from tests.faults.processor_run import free_port, wait_until
from tests.llmlat_processor.http_sink import HttpSink

pytestmark = pytest.mark.engines

REQUESTS = 200
SLOTS, WAITING = 8, 8
QUEUED = "vllm:num_requests_waiting"
OPTIONS = (*FEW_SLOTS, *SMALL_BUDGET, *SLOW_STEPS, "--max-model-len=2048")
LEFT_OUT = {"VLLM_PLUGINS": "another"}

EMIT = ("Emitter.", "OpenSpan.", "emit.", "points.")
"""Of these an engine's request needs some."""
ELSEWHERE = {
    "arrivals._accept_here",  # In `LLM()`.
    "frontend._fail",  # The engine dies.
    "frontend._forget",  # vLLM takes the request not.
    "attributes.error_type",
    "scheduler._look_for_transfers",  # The cache is another engine's.
}


class Outcome(NamedTuple):
    """What a server has answered, and how it has ended."""

    answers: list[list[int]]
    code: int


def ask(server: VllmServer, number: int) -> list[int]:
    """The tokens of an answer; every fourth is streamed, and some prompts are long."""
    prompt = tokens(150 if number % 20 == 7 else 9, 7 * number)
    body = {"prompt": prompt, "max_tokens": 8, "temperature": 0, "return_token_ids": True}
    chunks = server.stream(**body) if number % 4 == 3 else [server.complete(**body)]
    return [token for chunk in chunks for token in chunk["choices"][0]["token_ids"]]


def ask_all(server: VllmServer) -> list[list[int]]:
    return [ask(server, number) for number in range(REQUESTS)]


def end(server: VllmServer) -> int:
    """Its exit code, as it ends while it answers."""
    chunks = server.stream(prompt=tokens(20), max_tokens=1900)
    next(chunks)
    return ended_at_work(server, [chunks])


@pytest.fixture(scope="module")
def left_out(otlp: HttpSink, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Of a server beside which our package is installed, and that is not to load it."""
    environment = {**sends_to(otlp.url), **LEFT_OUT}
    with VllmServer(tmp_path_factory.mktemp("left"), OPTIONS, environment=environment) as server:
        return Outcome(ask_all(server), end(server))


@pytest.fixture(scope="module")
def raising(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("raising")


@pytest.fixture(scope="module")
def server(
    left_out: Outcome, raising: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[VllmServer]:
    """One in which all that we do may raise; nobody listens where spans are to go."""
    folder = tmp_path_factory.mktemp("vllm")
    nobody = f"http://127.0.0.1:{free_port()}"
    places = (str(Path(__file__).with_name("raising")), python_path(folder))
    environment = {
        **sends_to(nobody),
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "1",
        "LLMLAT_ENGINE_STEPS": "true",
        "RAISING": str(raising),
        "PYTHONPATH": os.pathsep.join(places),
    }
    options = (*OPTIONS, f"--otlp-traces-endpoint={nobody}/v1/traces")
    with VllmServer(folder, options, environment=environment, plugin=False) as server:
        yield server


def queued_one_by_one(server: VllmServer) -> list[int]:
    """Tokens of answers that were waited for while others were given: these tell of each."""
    with ThreadPoolExecutor(WAITING) as clients:
        ahead = [server.stream(prompt=tokens(20, each), max_tokens=1900) for each in range(SLOTS)]
        for stream in ahead:
            next(stream)
        asked = []
        for number in range(WAITING):
            asked.append(clients.submit(ask, server, number))
            wait_until(lambda: server.metric(QUEUED) > number)  # noqa: B023 - looked at here and now
        for stream in ahead:
            stream.close()  # type: ignore[attr-defined]
        return [len(each.result()) for each in asked]


def test_left_out_by_vllms_own_list_nothing_is_told(left_out: Outcome, otlp: HttpSink) -> None:
    assert [len(answer) for answer in left_out.answers] == [8] * REQUESTS
    assert accounts(otlp) == []
    assert otlp.spans == []


@pytest.mark.parametrize("always", [True, False], ids=["always", "now-and-then"])
def test_with_every_seam_raising_every_request_is_answered_as_without_us(
    always: bool, server: VllmServer, left_out: Outcome, raising: Path
) -> None:
    switch = raising / "always"
    if always:
        switch.touch()
    assert ask_all(server) == left_out.answers
    with ThreadPoolExecutor(20) as clients:
        numbers = range(60)
        told = list(clients.map(lambda number: len(ask(server, number)), numbers))
    assert told == [8 for _ in numbers]
    assert queued_one_by_one(server) == [8 for _ in range(WAITING)]
    for number in numbers:
        given_up = server.stream(prompt=tokens(20, number), max_tokens=1900)
        next(given_up)
        given_up.close()  # type: ignore[attr-defined]
    assert ask(server, 0) == left_out.answers[0]
    switch.unlink(missing_ok=True)


def test_every_seam_that_a_request_passes_has_raised(server: VllmServer, raising: Path) -> None:
    processes = [set(file.read_text().split()) for file in raising.glob("raised-*")]
    never = set((raising / "seams").read_text().split()).difference(*processes)
    assert {each for each in never if not each.startswith(EMIT)} == ELSEWHERE
    assert sum("scheduler._stepped" in raised for raised in processes) == 1
    assert sum("frontend._received" in raised for raised in processes) == 1


def test_it_ends_as_without_us(server: VllmServer, left_out: Outcome) -> None:
    assert end(server) == left_out.code
