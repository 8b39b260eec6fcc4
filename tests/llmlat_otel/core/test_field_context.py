"""Reports from users of other tools about spans that stay current, or are made at every level."""

import asyncio
import contextlib
import sys
import types

import pytest
from opentelemetry import trace

from llmlat_otel.core.call import timed
from llmlat_otel.core.instrumentor import Instrumentor, Target
from llmlat_otel.core.manual import agent, phase, tool
from llmlat_otel.testing import MS, FakeAsyncStream, FakeStream
from llmlat_semconv.values import ContentKind
from tests.llmlat_otel.core.conftest import FakeReader

TEXT = ContentKind.TEXT


def call(library):
    library.create(library.send, model="m")


def failing_call(library):
    def create():
        library.send()
        raise ValueError

    with contextlib.suppress(ValueError):
        library.create(create, model="m")


def stream_that_is_left(library):
    def create():
        library.send()
        return FakeStream(library.clock, [(MS, TEXT)] * 3)

    for _ in library.create(create, model="m", stream=True):
        break


def chain(library):
    """A framework's run: an agent, its tools, and a model under each."""
    with agent("chain"), phase("route"):
        call(library)
        with tool("search"):
            stream_that_is_left(library)


def generator_that_is_dropped(library):
    @agent("generator")
    def run():
        call(library)
        yield 1
        yield 2

    next(run())


async def answer(library):
    library.send()
    return FakeAsyncStream(library.clock, [(MS, TEXT)] * 3)


def cancelled_task(library):
    async def run():
        async for _ in await library.create(lambda: answer(library), model="m", stream=True):
            await asyncio.Event().wait()

    async def main():
        task = asyncio.create_task(run())
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(main())


@pytest.mark.parametrize(
    "run",
    [
        call,
        failing_call,
        stream_that_is_left,
        chain,
        generator_that_is_dropped,
        cancelled_task,
    ],
)
def test_cx_05_the_span_that_was_current_before_a_run_is_current_after_it(library, record, run):
    tracer = record.tracer_provider.get_tracer("app")
    with tracer.start_as_current_span("outer") as outer:
        run(library)
        assert trace.get_current_span() is outer
        assert outer.is_recording()
        with tracer.start_as_current_span("X") as later:
            pass
    assert later.parent == outer.get_span_context()


class A:
    def generate(self, library):
        library.send()
        return "response"

    async def agenerate(self, library):
        library.send()
        return "response"

    def stream(self, library):
        library.send()
        return FakeStream(library.clock, [(MS, TEXT)])


class B(A):
    def generate(self, library):
        return super().generate(library)

    async def agenerate(self, library):
        return await super().agenerate(library)

    def stream(self, library):
        return super().stream(library)


class C(B):
    def generate(self, library):
        return super().generate(library)

    async def agenerate(self, library):
        return await super().agenerate(library)

    def stream(self, library):
        return super().stream(library)


@pytest.fixture
def at_every_level(monkeypatch):
    module = types.ModuleType("levels")
    for each in (A, B, C):
        setattr(module, each.__name__, each)
    monkeypatch.setitem(sys.modules, "levels", module)
    instrumentor = Instrumentor(
        Target("levels", f"{owner}.{method}", timed(f"{owner}.{method}", FakeReader))
        for owner in "ABC"
        for method in ("generate", "agenerate", "stream")
    )
    instrumentor.instrument()
    yield
    instrumentor.uninstrument()


@pytest.mark.usefixtures("at_every_level")
@pytest.mark.parametrize("kind", [A, B, C])
def test_in_05_a_call_that_goes_through_several_classes_has_one_span(library, record, kind):
    kind().generate(library)
    assert asyncio.run(kind().agenerate(library)) == "response"
    assert list(kind().stream(library)) == [TEXT]
    names = [span["name"] for span in record.tree()]
    assert names.count("chat") == len(library.headers) == 3
