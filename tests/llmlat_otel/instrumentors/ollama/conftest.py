"""ollama's own client over a server of the test's, timed or not."""

from __future__ import annotations

import httpx
import ollama
import pytest

from llmlat_otel.core.guard import faults
from llmlat_otel.core.instrumentor import Instrumentor
from llmlat_otel.instrumentors import httpx as transport
from llmlat_otel.instrumentors.ollama import TARGETS
from tests.llmlat_otel.instrumentors.ollama.answers import PLACE, Server


@pytest.fixture
def server(clock):
    return Server(clock)


@pytest.fixture
def client(server):
    with ollama.Client(PLACE, transport=httpx.MockTransport(server.answer)) as made:
        yield made


@pytest.fixture
def async_client(server):
    return ollama.AsyncClient(PLACE, transport=httpx.MockTransport(server.answer))


@pytest.fixture
def instrumentors():
    return Instrumentor(TARGETS), Instrumentor(transport.TARGETS)


@pytest.fixture
def timed(instrumentors):
    before = faults()
    for each in instrumentors:
        each.instrument()
    yield
    for each in instrumentors:
        each.uninstrument()
    assert faults() == before
