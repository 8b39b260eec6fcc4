"""A call under way: whose it is, when it begins, and that our faults stay ours."""

import asyncio
import contextvars
import types
from typing import Any

import pytest
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult

from llmlat_otel.core import propagation
from llmlat_otel.core.call import call_underway
from llmlat_otel.core.guard import faults
from llmlat_otel.testing import MS, FakeAsyncStream, FakeStream, ManualClock, recorded
from llmlat_semconv import attributes as names
from llmlat_semconv.values import ContentKind

TEXT = ContentKind.TEXT


class BrokenClock(ManualClock):
    """Raises from the nth reading on."""

    def __init__(self, good_readings: int) -> None:
        super().__init__()
        self._good_readings = good_readings
        self.now_ns = self._read

    def _read(self) -> int:
        self._good_readings -= 1
        if self._good_readings < 0:
            raise RuntimeError("the clock is broken")
        return self.monotonic_ns


@pytest.mark.parametrize("good_readings", range(20))
def test_a_broken_clock_never_reaches_the_user(library, clock, good_readings):
    events = [(MS, TEXT)] * 3
    with recorded(clock=BrokenClock(good_readings)):
        stream = library.create(lambda: FakeStream(clock, events), model="m", stream=True)
        assert list(stream) == [TEXT] * 3


def test_a_broken_reader_never_reaches_the_user(library, record):
    before = faults().get("fake.create", 0)
    stream = library.create(lambda: FakeStream(library.clock, [(MS, OSError)] * 2), stream=True)
    assert list(stream) == [OSError, OSError]
    assert faults()["fake.create"] == before + 2
    assert len(record.tree()) > 0


def test_a_call_within_a_call_is_the_same_call(library, record):
    library.create(lambda: library.create(lambda: "response", model="m"), model="m")
    assert [span["name"] for span in record.tree()].count("chat m") == 1


def test_st_03_a_stream_that_is_read_in_another_span_is_one_span_of_the_calls_own(library, record):
    watching = Watching()
    record.tracer_provider.add_span_processor(watching)
    tracer = record.tracer_provider.get_tracer("app")
    with tracer.start_as_current_span("a"):
        stream = library.create(
            lambda: FakeStream(library.clock, [(MS, TEXT)]), model="m", stream=True
        )
    library.wait(50)
    with tracer.start_as_current_span("b"):
        list(stream)
    spans = {span["name"]: span for span in record.tree()}
    assert watching.started.count("chat m") == 1
    assert spans["chat m"]["parent"] == spans["a"]["id"]
    assert (spans["chat m"]["start_ns"], spans["chat m"]["end_ns"]) == (0, 51 * MS)


def test_the_span_is_not_current_while_the_caller_has_control(library, record):
    tracer = record.tracer_provider.get_tracer("app")
    with tracer.start_as_current_span("outer") as outer:
        for _ in library.create(lambda: FakeStream(library.clock, [(MS, TEXT)]), stream=True):
            assert trace.get_current_span() is outer
            assert call_underway() is None
        assert trace.get_current_span() is outer


def test_what_the_transport_does_hangs_under_the_call(library, record):
    seen = []

    def create():
        library.send()
        return "response"

    def transport(attempt, status):
        seen.append(trace.get_current_span())

    library._transport = transport
    library.create(create, model="m")
    assert seen[0].get_span_context().span_id == 1
    assert contexts.get_current() == {}


def test_an_awaitable_call_begins_when_it_first_runs(library, record):
    async def answer():
        library.wait(5)
        return "response"

    async def main():
        coroutine = library.create(answer, model="m")
        library.wait(100)
        return await coroutine

    assert asyncio.run(main()) == "response"
    span = record.tree()[0]
    assert span["end_ns"] - span["start_ns"] == 5 * MS


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_a_coroutine_that_is_never_awaited_leaves_no_span(library, record):
    async def answer():
        return "response"

    coroutine = library.create(answer, model="m")
    del coroutine
    assert record.tree() == []


def test_a_call_whose_coroutine_is_closed_elsewhere_ends_silently(library, record, caplog):
    @types.coroutine
    def wait():
        yield

    async def answer():
        library.send()
        await wait()

    coroutine = contextvars.copy_context().run(start, library.create(answer, model="m"))
    coroutine.close()
    assert call_underway() is None
    assert record.tree()[0]["attributes"][names.ERROR_TYPE] == "GeneratorExit"
    assert not caplog.records


def start(coroutine):
    """Run a coroutine up to where it waits."""
    coroutine.send(None)
    return coroutine


def test_concurrent_calls_are_kept_apart(library, record):
    async def one(name):
        async def answer():
            await asyncio.sleep(0)
            assert call_underway() is not None
            return FakeAsyncStream(library.clock, [(MS, TEXT)])

        stream = await library.create(answer, model=name, stream=True)
        return [event async for event in stream]

    async def main():
        return await asyncio.gather(*(one(str(index)) for index in range(5)))

    assert asyncio.run(main()) == [[TEXT]] * 5
    names_of_calls = sorted(span["name"] for span in record.tree() if span["kind"] == "CLIENT")
    assert names_of_calls == [f"chat {index}" for index in range(5)]


def test_a_request_to_another_host_is_none_of_the_calls(library, record):
    def create():
        call: Any = call_underway()
        reader = call._reader
        reader.request = reader.request._replace(server_address="api.example")
        assert call.begin_attempt("login.example") is None
        assert call.begin_attempt("api.example") is not None
        return "response"

    library.create(create, model="m")


def test_a_call_without_any_provider_still_works(library):
    assert library.create(lambda: "response", model="m") == "response"


def test_an_event_that_cannot_be_read_is_an_event(library, record):
    events = [(MS, TEXT), (MS, OSError), (MS, TEXT)]
    list(library.create(lambda: FakeStream(library.clock, events), stream=True))
    assert record.tree()[0]["attributes"][names.LLMLAT_STREAM_CHUNK_COUNT] == 3


def test_a_task_may_outlive_the_call_that_it_was_started_in(library, record):
    tasks = []

    async def later():
        await asyncio.sleep(0)
        assert call_underway() is None
        return library.create(lambda: "response", model="later")

    async def answer():
        tasks.append(asyncio.create_task(later()))
        return "response"

    async def main():
        await library.create(answer, model="m")
        assert await tasks[0] == "response"

    asyncio.run(main())
    assert [span["name"] for span in record.tree()] == ["chat m", "chat later"]


def test_a_task_that_a_call_has_started_makes_calls_of_its_own_while_that_is_streamed(
    library, record
):
    tasks = []

    async def later():
        await asyncio.sleep(0)
        assert call_underway() is None
        return library.create(lambda: "response", model="later")

    async def answer():
        tasks.append(asyncio.create_task(later()))
        return FakeAsyncStream(library.clock, [(0, TEXT)])

    async def main():
        stream = await library.create(answer, model="m", stream=True)
        assert await tasks[0] == "response"
        return [event async for event in stream]

    assert asyncio.run(main()) == [TEXT]
    assert [span["name"] for span in record.tree()] == ["chat m", "chat later"]


class Watching(SpanProcessor):
    """Notes what is started, and may raise at what ends."""

    def __init__(self, raises_at=()):
        self.started = []
        self._raises_at = raises_at

    def on_start(self, span, parent_context=None):
        self.started.append(span.name)

    def on_end(self, span):
        if span.name in self._raises_at:
            raise RuntimeError("no")


class ByName(Sampler):
    """Drops calls, and takes all else."""

    def should_sample(self, parent_context, trace_id, name, *_, **__):
        drop = name.startswith("chat")
        return SamplingResult(Decision.DROP if drop else Decision.RECORD_AND_SAMPLE)

    def get_description(self):
        return "by name"


def test_a_call_that_is_not_sampled_has_no_attempts_either(library, clock):
    def create():
        library.send(503)
        library.send()
        return "response"

    watching = Watching()
    with recorded(clock=clock, sampler=ByName()) as record:
        record.tracer_provider.add_span_processor(watching)
        library.create(create, model="m")
    assert watching.started == []


def test_a_span_processor_that_raises_leaves_no_call_open(library, record):
    record.tracer_provider.add_span_processor(Watching(raises_at=["phase connect"]))

    def create():
        library.send()
        return "response"

    assert library.create(create, model="m") == "response"
    assert [span["name"] for span in record.tree()].count("chat m") == 1


def test_what_others_set_in_the_context_meanwhile_stays(library, record):
    seen = []

    def create():
        before = propagation.enter(contexts.set_value("theirs", 1))
        library.send()
        propagation.leave(contexts.get_current(), before)
        return "response"

    library._transport = lambda *_: seen.append(contexts.get_value("theirs"))
    library.create(create, model="m")
    assert seen == [1]


def test_a_stream_that_ends_within_another_calls_span_leaves_that_alone(library, record):
    tracer = record.tracer_provider.get_tracer("app")
    stream = library.create(lambda: FakeStream(library.clock, [(MS, TEXT)]), model="m", stream=True)
    with tracer.start_as_current_span("other", attributes={names.GEN_AI_OPERATION_NAME: "chat"}):
        list(stream)
    assert {span["name"]: span["parent"] for span in record.tree()}["chat m"] is None
