"""Calls over real connections: a server on loopback, and a library that is no more than a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import llmlat_otel
from llmlat_otel.core.attributes import Attributes, Request
from llmlat_otel.core.call import timed
from llmlat_otel.core.clock import Clock
from llmlat_otel.core.guard import faults
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.wrapping import wrap
from llmlat_otel.settings import Settings
from llmlat_otel.testing import Recorded, recorded
from llmlat_semconv.values import ContentKind, OperationName
from tests.integration.coexistence.upstream import Upstream
from tests.integration.serving import serving

Call = Callable[..., Any]
"""Calls a function as a library's timed method would: `call(function)`."""


class Reader:
    """Takes every event for text."""

    def __init__(self, instance: Any, kwargs: dict[str, Any], reasoning_is_content: bool) -> None:
        self.request = Request(
            OperationName.CHAT,
            "fake",
            "m",
            streamed=False,
            server_address="127.0.0.1",
            server_port=kwargs["port"],
        )
        self.facts: Attributes = {}
        self.is_terminated = True
        self.is_whole = False

    def event(self, event: Any, at_ns: int, recorder: PhaseRecorder) -> ContentKind | None:
        return ContentKind.TEXT

    def response(self, response: Any, recorder: PhaseRecorder) -> None:
        pass


_method = wrap(lambda function, **_: function(), timed("fake.call", Reader))


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    upstream = Upstream()
    with serving(upstream):
        yield upstream


@pytest.fixture
def record() -> Iterator[Recorded]:
    """What is recorded, by a real clock; no fault of ours may have happened meanwhile."""
    before = faults()
    llmlat_otel.instrument()
    with recorded(clock=Clock(), settings=Settings(phase_min_ns=0)) as what:
        yield what
    llmlat_otel.uninstrument()
    assert faults() == before


@pytest.fixture
def call(upstream: Upstream) -> Call:
    """A library's method: what it is given is what it does."""
    return lambda function: _method(function, port=upstream.server_port)


@pytest.fixture
def call_anyone() -> Call:
    """The same, of whichever port."""
    return lambda function: _method(function, port=None)


@pytest.fixture
def phases(record: Recorded) -> Callable[[], list[str]]:
    """The phases that were recorded so far, in their order."""
    return lambda: [each.name[6:] for each in record.spans if each.name.startswith("phase ")]
