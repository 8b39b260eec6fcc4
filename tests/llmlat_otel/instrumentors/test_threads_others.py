"""The current span goes with the work, whoever else carries it too, and in whichever order."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import wrapt
from opentelemetry import context as contexts

import llmlat_otel
from llmlat_otel.core.instrumentor import Instrumentor
from llmlat_otel.instrumentors import threads
from llmlat_otel.testing import recorded
from tests.llmlat_otel.places import PLACES
from tests.llmlat_otel.waiting import parents


@pytest.fixture
def record():
    with recorded() as what:
        yield what


def tool():
    with llmlat_otel.tool("one"):
        pass


def their_submit(wrapped, _, args, kwargs):
    """As opentelemetry-instrumentation-threading does it."""
    context = contexts.get_current()
    function = args[0]

    def carried(*args, **kwargs):
        token = contexts.attach(context)
        try:
            return function(*args, **kwargs)
        finally:
            contexts.detach(token)

    return wrapped(carried, *args[1:], **kwargs)


def their_start(wrapped, instance, args, kwargs):
    instance._their_context = contexts.get_current()
    return wrapped(*args, **kwargs)


def their_run(wrapped, instance, args, kwargs):
    token = contexts.attach(instance._their_context)
    try:
        return wrapped(*args, **kwargs)
    finally:
        contexts.detach(token)


THEIRS = (
    (ThreadPoolExecutor, "submit", their_submit),
    (threading.Thread, "start", their_start),
    (threading.Thread, "run", their_run),
)


@pytest.mark.parametrize("is_first", [True, False], ids=["they first", "we first"])
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_another_instrumentation_may_carry_as_well(record, caplog, place, is_first):
    instrumentor = Instrumentor(threads.TARGETS)
    kept = [vars(owner)[name] for owner, name, _ in THEIRS]
    steps = [instrumentor.instrument, wrap_theirs]
    for step in reversed(steps) if is_first else steps:
        step()
    try:
        with llmlat_otel.agent("adviser"):
            place(tool)
    finally:
        instrumentor.uninstrument()
        for (owner, name, _), original in zip(THEIRS, kept, strict=True):
            setattr(owner, name, original)
    assert parents(record) == {"adviser": None, "one": "adviser"}
    assert not caplog.records


def wrap_theirs():
    for owner, name, wrapper in THEIRS:
        wrapt.wrap_function_wrapper(owner, name, wrapper)
