"""examples/vllm: three questions to a real vLLM of two places, as its README tells it."""

from __future__ import annotations

import json
import re

import pytest

from llmlat_semconv.spans import engine_span_name
from llmlat_semconv.values import Evidence, SectionLabel
from tests.engines import parts
from tests.engines.installed import python_path
from tests.engines.vllm_server import variables
from tests.examples.example_run import (
    PATIENCE_S,
    ROOT,
    Explained,
    drawn_operations,
    is_alive,
    start,
)
from tests.faults.processor_run import wait_until

pytestmark = pytest.mark.engines

ENGINE, CHAT = engine_span_name("chat"), f"chat {parts.MODEL_NAME}"
ROOT_NAME = "invoke_agent three questions"
OPTIONS = f"--load-format=dummy --dtype=float32 --served-model-name={parts.MODEL_NAME}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Explained:
    of_engine = variables(
        PYTHONPATH=python_path(tmp_path_factory.mktemp("example")),
        VLLM_PYTHON=str(parts.vllm_python()),
        VLLM_MODEL=str(parts.model()),
        VLLM_OPTIONS=OPTIONS,
    )
    process = start("vllm", "--json", **of_engine)
    printed, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    # vLLM's own workers notice that it has ended, and end.
    wait_until(lambda: not is_alive(process.pid))
    said, *traces = re.split(r"^(?=\{)", printed, flags=re.MULTILINE)
    (trace,) = map(json.loads, traces)
    return Explained(trace, said)


def test_one_trace_has_the_app_and_the_engine(run: Explained) -> None:
    assert run.names() == {ROOT_NAME, CHAT, ENGINE}
    assert len(run.named(ENGINE)) == 3
    assert {tuple(run.above(each)) for each in run.named(ENGINE)} == {(CHAT, ROOT_NAME)}


def test_the_one_that_waited_is_what_the_whole_waited_for(run: Explained) -> None:
    totals = run.root["e2e"]["totals_ns"]
    assert totals[SectionLabel.QUEUE.value] > 0
    assert {SectionLabel.PREFILL.value, SectionLabel.DECODE.value} <= set(totals)


def test_the_engine_has_measured_what_is_on_the_path(run: Explained) -> None:
    for label in (SectionLabel.QUEUE, SectionLabel.PREFILL, SectionLabel.DECODE):
        assert run.evidence("e2e", label.value) == {Evidence.MEASURED.value}


def test_the_readme_shows_these_operations(run: Explained) -> None:
    shown = drawn_operations(ROOT / "examples" / "vllm" / "README.md")
    assert shown == {each.replace(parts.MODEL_NAME, "tiny") for each in run.names()}
