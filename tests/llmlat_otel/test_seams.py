"""Small seams: what the guard, the settings and an instrumentor do where others fail them."""

import logging
import threading
from types import ModuleType

import pytest

from llmlat_otel.core import instrumentor, runtime
from llmlat_otel.core.guard import faults, guarded, replaced
from llmlat_otel.core.instrumentor import Instrumentor, Target
from llmlat_otel.core.outputs import Outputs
from llmlat_otel.settings import PHASE_MIN, PHASES, Settings


class FaultError(Exception):
    """A fault of ours."""


def fail(*_):
    raise FaultError


class Refusing(logging.Filter):
    """A filter of the application's that fails."""

    def filter(self, record):
        raise FaultError


def test_a_log_filter_that_fails_does_not_reach_the_application_either():
    logger, refusing = logging.getLogger("llmlat_otel"), Refusing()
    logger.addFilter(refusing)
    logger.setLevel(logging.DEBUG)
    try:
        assert guarded("a refused target", fail) is None
    finally:
        logger.removeFilter(refusing)
        logger.setLevel(logging.NOTSET)
    assert faults()["a refused target"] == 1


def test_what_our_work_makes_of_a_thing_takes_its_place():
    assert replaced("a thing", 7, lambda thing, other: thing + other, 3) == 10


@pytest.mark.parametrize("work", [fail, lambda _: None])
def test_a_thing_stays_where_our_work_failed_or_made_nothing_of_it(work):
    assert replaced("a thing", 7, work) == 7


@pytest.mark.parametrize("digits", ["9" * 400, "9" * 309 + "ms"])
def test_a_duration_that_no_number_holds_is_refused_like_any_other(digits):
    settings = Settings.from_environment({PHASE_MIN: digits})
    assert settings.phase_min_ns == Settings().phase_min_ns
    assert PHASE_MIN in settings.refused[0]


def through(wrapped, _, args, kwargs):
    return wrapped(*args, **kwargs)


@pytest.fixture
def library():
    """A class whose method is timed, and one that inherits it."""

    class Library:
        def create(self):
            return "created"

    class Derived(Library):
        pass

    return type("Home", (), {"Library": Library, "Derived": Derived})


@pytest.fixture
def instrumented(library):
    targets = [Target("home", f"{name}.create", through) for name in ("Library", "Derived")]
    timing = Instrumentor(targets)
    timing._is_active = True
    for target in targets:
        timing._install(target, library)
    return timing


def test_what_could_not_be_put_back_is_put_back_by_the_next_try(library, instrumented, monkeypatch):
    replacement = vars(library.Library)["create"]
    with monkeypatch.context() as broken:
        broken.setattr(instrumentor, "_restored", fail)
        instrumented.uninstrument()
    assert vars(library.Library)["create"] is replacement
    instrumented.uninstrument()
    assert vars(library.Library)["create"] is not replacement
    assert "create" not in vars(library.Derived), "it is inherited again"


def test_at_no_time_is_a_method_missing(library, instrumented):
    seen = []

    class Watching(type):
        def __delattr__(cls, name):
            seen.append(cls().create())
            super().__delattr__(name)

        def __setattr__(cls, name, value):
            seen.append(cls().create())
            super().__setattr__(name, value)

    watched = Watching("Watched", (library.Derived,), {})
    timing = Instrumentor([])
    timing._is_active = True
    home = ModuleType("home")
    home.Watched = watched  # type: ignore[attr-defined]
    timing._install(Target("home", "Watched.create", through), home)
    timing.uninstrument()
    assert seen == ["created"] * 3
    assert "create" not in vars(watched)


class Handling(logging.Handler):
    """A handler of the application's that does something which is timed."""

    def __init__(self, work):
        super().__init__()
        self._work = work

    def emit(self, record):
        self._work()


def is_over_in_time(work):
    """Whether work comes to its end, and does not wait for itself."""
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(10)
    return not worker.is_alive()


def test_a_log_handler_may_need_the_sdk_that_warns_while_it_is_made(monkeypatch):
    made, logger = [], logging.getLogger("llmlat_otel")
    handling = Handling(lambda: made.append(runtime.runtime()))
    monkeypatch.setattr(runtime, "_current", None)
    monkeypatch.setenv(PHASES, "span")
    logger.addHandler(handling)
    try:
        assert is_over_in_time(runtime.runtime)
    finally:
        logger.removeHandler(handling)
    assert made == [runtime.runtime()]


def test_a_log_handler_may_make_a_span_while_an_exporter_warns():
    seen = []
    outputs = Outputs("domain", lambda: seen.append(outputs.spans()), None, None)
    assert is_over_in_time(outputs.spans)
    assert len(seen) == 1
