"""Engines for tests, of what `make engines` has set up, and what takes their spans.

`otlp`          takes spans over OTLP/HTTP; `otlp.url` is its address, `otlp.spans` what has come.
`sending`       the variables that have a program send its spans to `otlp`, soon.
`start_vllm`    starts a server for the time of one test: `start_vllm(*options, **how)`.

A server for a whole module is made with `VllmServer` itself, in a fixture of that module:

    @pytest.fixture(scope="module")
    def server(otlp: HttpSink, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
        folder = tmp_path_factory.mktemp("vllm")
        with VllmServer(folder, FEW_SLOTS, environment=sends_to(otlp.url)) as server:
            yield server

A file of tests says `pytestmark = pytest.mark.engines`, and what needs a program that imports torch
runs `parts.vllm_python()` with `vllm_server.variables(PYTHONPATH=installed.python_path(tmp_path))`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.engines.installed import sends_to
from tests.engines.vllm_server import VllmServer
from tests.llmlat_processor.http_sink import HttpSink, http_sink


@pytest.fixture(scope="module")
def otlp() -> Iterator[HttpSink]:
    with http_sink() as sink:
        yield sink


@pytest.fixture
def sending(otlp: HttpSink) -> dict[str, str]:
    return sends_to(otlp.url)


@pytest.fixture
def start_vllm(tmp_path: Path, sending: dict[str, str]) -> Iterator[Callable[..., VllmServer]]:
    with ExitStack() as running:

        def start(*options: str, **how: Any) -> VllmServer:
            how["environment"] = {**sending, **how.get("environment", {})}
            return running.enter_context(VllmServer(tmp_path, options, **how))

        yield start
