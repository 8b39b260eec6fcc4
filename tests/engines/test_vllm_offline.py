"""`LLM()` in a program of its own: a span per prompt, below whatever span asks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from llmlat_semconv import attributes as names
from tests.engines import parts
from tests.engines.engine_accounts import accounts, check_in_order
from tests.engines.installed import python_path
from tests.engines.vllm_server import PATIENCE_S, variables
from tests.llmlat_processor.http_sink import HttpSink, http_sink

pytestmark = pytest.mark.engines

PROGRAM = Path(__file__).with_name("offline.py")
LENGTHS = [4, 40, 45]
ANSWER = 20
IN_ONE_PROCESS = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}


@pytest.fixture
def otlp() -> Any:
    with http_sink() as sink:
        yield sink


def run(folder: Path, kind: str, **environment: str) -> list[list[int]]:
    """Have the program ask; the tokens of its answers."""
    file = folder / "answers.json"
    told = subprocess.run(
        [parts.vllm_python(), PROGRAM, parts.model(), kind, file],
        env=variables(PYTHONPATH=python_path(folder), LLMLAT_PHASE_MIN="0", **environment),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    answers: list[list[int]] = json.loads(file.read_text())
    assert [len(answer) for answer in answers] == [ANSWER] * len(LENGTHS)
    return answers


def asker(sink: HttpSink) -> Span:
    (span,) = (span for _, _, span in sink.spans if "asker" in span.name)
    return span


@pytest.mark.parametrize(
    ("kind", "where"),
    [("agent", IN_ONE_PROCESS), ("otel", {})],
    ids=["agent-in-one-process", "span-and-core-in-another-process"],
)
def test_each_prompt_has_a_span_below_the_one_that_asks(
    kind: str, where: dict[str, str], otlp: HttpSink, sending: dict[str, str], tmp_path: Path
) -> None:
    run(tmp_path, kind, **sending, **where)
    parent, told = asker(otlp), accounts(otlp)
    assert [each.facts[names.LLMLAT_PREFILL_COMPUTED_TOKENS] for each in told] == LENGTHS
    for account in told:
        assert account.parent_id == parent.span_id
        assert account.trace_id == parent.trace_id.hex()
        assert account.kind == Span.SPAN_KIND_INTERNAL
        assert account.end == "complete"
        assert account.facts[names.GEN_AI_REQUEST_MODEL] == str(parts.model())
        assert account.facts[names.LLMLAT_DECODE_TOKENS] == ANSWER - 1
        assert {"queue", "prefill", "decode"} <= {each.phase for each in account.phases}
        check_in_order(account)


@pytest.mark.parametrize(
    ("switch", "left"),
    [({"LLMLAT_DISABLED": "vllm"}, ["asker"]), ({"OTEL_SDK_DISABLED": "true"}, [])],
    ids=["our-vllm", "all-of-opentelemetry"],
)
def test_switched_off_nothing_of_an_engine_is_told(
    switch: dict[str, str],
    left: list[str],
    otlp: HttpSink,
    sending: dict[str, str],
    tmp_path: Path,
) -> None:
    run(tmp_path, "agent", **sending, **IN_ONE_PROCESS, **switch)
    assert accounts(otlp) == []
    assert [span.name.split()[-1] for _, _, span in otlp.spans] == left
