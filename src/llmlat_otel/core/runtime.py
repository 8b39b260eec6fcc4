"""The running SDK: one clock, one emitter and one set of settings, made at first need."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from opentelemetry.trace import TracerProvider

from llmlat_otel.core.clock import Clock
from llmlat_otel.core.emit import Emitter
from llmlat_otel.core.guard import guarded
from llmlat_otel.settings import Settings


class Runtime(NamedTuple):
    """What every recording needs."""

    settings: Settings
    clock: Clock
    emitter: Emitter


MakeProvider = Callable[[str], TracerProvider | None]
"""Makes a tracer provider whose resource names a clock domain; None if none is wanted."""

_lock = threading.RLock()  # What the garbage collector runs meanwhile may come here as well.
_current: Runtime | None = None
_make_provider: MakeProvider | None = None


def runtime() -> Runtime:
    """The running SDK, made from the environment at the first call."""
    global _current  # noqa: PLW0603 - the SDK is one per process
    if _current is None:
        settings = None
        with _lock:
            if _current is None:
                settings = Settings.from_environment(os.environ)
                _current = _made(settings)
        if settings is not None:  # A handler of the application's may need all this itself.
            guarded("settings", settings.warn_of_refused)
    return _current


def provide_when_none(make: MakeProvider) -> None:
    """Have a provider made at first need, for as long as the application has set none."""
    global _make_provider  # noqa: PLW0603
    _make_provider = make
    _renew()


@contextmanager
def running(replacement: Runtime) -> Iterator[None]:
    """Put another one in its place for a while, in tests."""
    global _current  # noqa: PLW0603
    before = _current
    _current = replacement
    try:
        yield
    finally:
        _current = before


def _made(settings: Settings) -> Runtime:
    clock = Clock()
    make = _make_provider
    own_provider = None if make is None else lambda: make(clock.domain_id)
    return Runtime(settings, clock, Emitter(settings, clock.domain_id, own_provider))


def _renew() -> None:
    global _current  # noqa: PLW0603
    if _current is not None:
        _current = _made(_current.settings)


def _forked() -> None:
    """A child has threads, a pid and perhaps a clock domain of its own, and locks that are free."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()
    guarded("fork", _renew)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
