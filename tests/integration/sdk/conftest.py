"""A real OpenAI-compatible server on loopback, and real clients that are timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import openai
import pytest

import llmlat_otel
from llmlat_otel.core.clock import Clock
from llmlat_otel.core.guard import faults
from llmlat_otel.settings import Settings
from llmlat_otel.testing import Recorded, recorded
from tests.integration.sdk.openai_server import CUT, Server
from tests.integration.serving import serving


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    with serving(made):
        yield made


@pytest.fixture
def cut() -> object:
    return CUT


@pytest.fixture
def instrumented() -> Iterator[None]:
    llmlat_otel.instrument()
    yield
    llmlat_otel.uninstrument()


@pytest.fixture
def record(instrumented: None) -> Iterator[Recorded]:
    """What is recorded, by a real clock; no fault of ours may have happened meanwhile."""
    before = faults()
    with recorded(clock=Clock(), settings=Settings(phase_min_ns=0)) as what:
        yield what
    assert faults() == before


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url, api_key="k") as made:
        yield made


@pytest.fixture
def make_async_client(server: Server) -> Callable[[], openai.AsyncOpenAI]:
    return lambda: openai.AsyncOpenAI(base_url=server.url, api_key="k")
