"""A library that does not exist: its calls, streams and events, timed by a manual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from llmlat_otel.core.attempt import Attempt
from llmlat_otel.core.attributes import Attributes, Request
from llmlat_otel.core.call import call_underway, timed
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.wrapping import run_in, wrap
from llmlat_otel.settings import Settings
from llmlat_otel.testing import MS, ManualClock, Recorded, recorded
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import ContentKind, OperationName
from tests.llmlat_otel.core.log import Log


class FakeReader:
    """Reads events that are content kinds, or None; fails on anything else.

    Any stream is terminated, unless the call says `is_terminated=False`, and has more to come,
    unless it says `is_whole=True`.
    """

    def __init__(self, instance: Any, kwargs: dict[str, Any], reasoning_is_content: bool) -> None:
        self.request = Request(
            OperationName.CHAT, "fake", kwargs.get("model"), bool(kwargs.get("stream"))
        )
        self.facts: Attributes = {}
        self.is_terminated = kwargs.get("is_terminated", True)
        self.is_whole = kwargs.get("is_whole", False)

    def event(self, event: Any, at_ns: int, recorder: PhaseRecorder) -> ContentKind | None:
        if event is not None and not isinstance(event, ContentKind):
            raise TypeError(event)
        return event

    def response(self, response: Any, recorder: PhaseRecorder) -> None:
        self.facts["response"] = response


class Library:
    """Calls whatever it is given, as a library's method would.

    Attributes:
        clock: Moved by `send`.
        create: The timed method: `create(function, **kwargs)`.
    """

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.headers: list[dict[str, str]] = []
        self.create: Callable[..., Any] = wrap(
            lambda function, **_: function(), timed("fake.create", FakeReader)
        )

    def send(self, status: int = 200) -> None:
        """One attempt: 1 ms before it, then 2 of connecting, 3 of sending, 4 of waiting."""
        self.clock.advance(1 * MS)
        call = call_underway()
        assert call is not None
        attempt = call.begin_attempt(None)
        assert attempt is not None
        self.headers.append({})
        attempt.name_parent(self.headers[-1])
        run_in(attempt, self._transport, (attempt, status), {})

    def _transport(self, attempt: Attempt, status: int) -> Any:
        for phase, duration_ms in ((Phase.CONNECT, 2), (Phase.SEND, 3), (Phase.WAIT, 4)):
            attempt.mark(phase)
            self.clock.advance(duration_ms * MS)
        return type("Response", (), {"status_code": status, "headers": {}})

    def wait(self, duration_ms: int) -> None:
        """Let time pass."""
        self.clock.advance(duration_ms * MS)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def library(clock: ManualClock) -> Library:
    return Library(clock)


@pytest.fixture
def record(clock: ManualClock, request: pytest.FixtureRequest) -> Iterator[Recorded]:
    """What the test records; `@pytest.mark.parametrize("record", [Settings()], indirect=True)`."""
    settings: Settings | None = getattr(request, "param", None)
    with recorded(clock=clock, settings=settings) as what:
        yield what


@pytest.fixture
def log() -> Log:
    return Log()
