"""What is sent is counted at the other end, and processes are measured with what they start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from bench import hop, hop_ends
from bench.processes import ProcessError, free_address, started
from bench.report import Goal
from bench.traces import batches, llm_trace

PYTHON = sys.executable
BATCHES = batches(llm_trace, 5, seed=3, size=60)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def end(log: Path) -> Iterator[str]:
    address = free_address()
    with started([PYTHON, "-m", "bench.hop_ends", "count", address], log) as counting:
        counting.listening(address)
        yield address


def send(address: str, requests: list[bytes], folder: Path) -> None:
    hop_ends.write(folder / "requests", requests)
    command = [PYTHON, "-m", "bench.hop_ends", "send", address, str(folder / "requests")]
    with started(command, folder / "sender.log") as sender:
        sender.ended()


def as_if_made(request: bytes) -> bytes:
    """The same, as if the processor had made its spans."""
    made = ExportTraceServiceRequest.FromString(request)
    for of_resource in made.resource_spans:
        for of_scope in of_resource.scope_spans:
            of_scope.scope.name = "llmlat_processor"
    return made.SerializeToString()


def test_what_the_processor_has_made_is_not_counted(end: str, tmp_path: Path) -> None:
    first = BATCHES[0]
    send(end, [as_if_made(first.request), first.request], tmp_path)
    assert hop_ends.counted(end) == first.spans


def test_every_span_that_is_sent_is_counted(end: str, tmp_path: Path) -> None:
    assert hop_ends.counted(end) == 0
    send(end, [each.request for each in BATCHES], tmp_path)
    assert hop_ends.counted(end) == sum(each.spans for each in BATCHES)


BUSY = """
import sys, time
while time.process_time() < 0.3:
    pass
print("done", flush=True)
sys.stdin.read()
"""
STARTS_ONE_THAT_IS_BUSY = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {BUSY!r}], stdin=subprocess.PIPE).wait()
"""


def test_what_a_process_has_started_counts_as_its_own(log: Path) -> None:
    with started([PYTHON, "-c", STARTS_ONE_THAT_IS_BUSY], log) as outer:
        for _ in outer.waiting("it has not spun"):
            if "done" in log.read_text():
                break
        assert outer.cpu_s() >= 0.2
        assert outer.resident_bytes() > 1_000_000


def test_a_process_that_has_ended_is_not_waited_for(log: Path) -> None:
    with started([PYTHON, "-c", "raise SystemExit('no')"], log) as short:
        with pytest.raises(ProcessError, match=r"it ended with 1\nno"):
            short.ended()
        with pytest.raises(ProcessError, match="nothing listens"):
            short.listening(free_address())


def test_the_floor_is_what_was_measured_beside() -> None:
    taken = {name: hop.Taken() for name in hop.CONTENDERS}
    for name, us in {hop.PASSING: 4.0, hop.GROUPING: 10.0, hop.OURS: 8.0}.items():
        for kind in hop.KINDS:
            taken[name].us[kind].append(us)
    taken[hop.OURS].held_bytes.append(1_400)
    goals = {goal.name: goal for goal in hop.goals(taken)}
    assert goals["hop_llm"] == Goal("hop_llm", 125_000, 100_000, "/s", at_least=True)
    assert [name for name, goal in goals.items() if goal.is_met] == [
        "hop_llm",
        "hop_plain",
        "held_bytes",
    ]


def test_the_warm_up_is_of_other_traces(tmp_path: Path) -> None:
    load = hop.Load.made("llm", tmp_path, hop.Effort(requests=2, warm_up=1, rounds=1))
    assert load.warm_up.read_bytes() not in load.measured.read_bytes()
    assert 0 < load.warm_up_spans < load.spans
