"""The end of a server that is answering."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.engines.vllm_server import PATIENCE_S, VllmServer
from tests.faults.processor_run import is_alive, wait_until


def ended_at_work(server: VllmServer, answers: Iterable[Iterator[dict[str, Any]]]) -> int:
    """SIGTERM while it answers, and clients that leave then; the exit code. Nobody is left.

    vLLM stops its engine at once and waits for its connections, whose last chunks may never come.
    """
    pids = server.pids()
    with ThreadPoolExecutor(1) as operator:
        stopping = operator.submit(server.stop)
        wait_until(
            lambda: stopping.done() or "Shutting down" in server.last_words(),
            server.last_words,
            PATIENCE_S,
        )
        for each in answers:
            each.close()  # type: ignore[attr-defined]
        code = stopping.result()
    assert not [pid for pid in pids if is_alive(pid)]
    return code
