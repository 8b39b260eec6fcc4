"""Proxies: whatever the user could do with the original still works."""

import asyncio
import copy
import inspect
import pickle
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from llmlat_otel.core.wrapping import (
    AsyncStream,
    Body,
    RawResponse,
    SyncStream,
    run_in,
    stream,
    wrap,
)
from llmlat_otel.testing import FakeAsyncStream, FakeStream, ManualClock


class Log:
    """A scope and a pull that write down what they are told."""

    def __init__(self):
        self.lines = []

    def __enter__(self):
        self.lines.append("enter")

    def __exit__(self, kind, error, traceback):
        self.lines.append("exit" if kind is None else kind.__name__)

    def restart(self):
        self.lines.append("restart")

    def delivered(self, result):
        self.lines.append("delivered")
        return result

    def received(self, event):
        self.lines.append(event)

    def closed(self, error):
        self.lines.append("closed" if error is None else f"closed by {type(error).__name__}")

    def abandoned(self):
        self.lines.append("abandoned")


@pytest.fixture
def log():
    return Log()


def fake(*events, kind=FakeStream):
    return kind(ManualClock(), [(0, event) for event in events])


def test_a_plain_function(log):
    assert run_in(log, lambda a, b: a + b, (1,), {"b": 2}) == 3
    assert log.lines == ["enter", "exit", "delivered"]


def test_an_awaitable_result(log):
    async def add(a, b):
        return a + b

    assert asyncio.run(run_in(log, add, (1,), {"b": 2})) == 3
    assert log.lines == ["enter", "exit", "restart", "enter", "exit", "delivered"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), asyncio.CancelledError()])
def test_exceptions_pass_unchanged(log, error):
    def fail():
        raise error

    with pytest.raises(type(error)) as caught:
        run_in(log, fail, (), {})
    assert caught.value is error
    assert log.lines == ["enter", type(error).__name__]


def test_a_stream_is_measured_at_the_pull(log):
    assert list(stream(fake("a", "b"), log)) == ["a", "b"]
    assert log.lines[:7] == ["enter", "exit", "a", "enter", "exit", "b", "enter"]
    assert log.lines[7:] == ["StopIteration", "abandoned"]


def test_an_async_stream_is_measured_at_the_pull(log):
    async def read():
        return [event async for event in stream(fake("a", kind=FakeAsyncStream), log)]

    assert asyncio.run(read()) == ["a"]
    assert log.lines == ["enter", "exit", "a", "enter", "StopAsyncIteration", "abandoned"]


class OwnStream(FakeStream):
    """A stream with an attribute of its own."""

    note = "original"


def test_a_stream_is_what_it_wraps(log):
    original = OwnStream(ManualClock(), [])
    proxy = stream(original, log)
    assert isinstance(proxy, OwnStream)
    assert proxy.note == "original"
    assert iter(proxy) is proxy
    proxy.note = "set through the proxy"
    assert original.note == "set through the proxy"
    with proxy as entered:
        assert entered is proxy


def test_a_stream_that_is_dropped_is_abandoned_at_once(log):
    proxy = stream(fake(), log)
    del proxy
    assert log.lines == ["abandoned"]


def test_a_synchronous_stream_does_not_pass_for_an_asynchronous_one(log):
    synchronous, asynchronous = (
        SyncStream(fake(), log),
        AsyncStream(fake(kind=FakeAsyncStream), log),
    )
    assert isinstance(synchronous, Iterator)
    assert not isinstance(synchronous, AsyncIterator)
    assert isinstance(asynchronous, AsyncIterator)
    assert not isinstance(asynchronous, Iterator)


def test_close_reaches_the_original_once(log):
    original = fake("a")
    stream(original, log).close()
    assert original.close_count == 1
    assert log.lines[0] == "closed"


def test_an_async_close_is_awaited_once(log):
    original = fake("a", kind=FakeAsyncStream)

    async def use():
        async with stream(original, log) as entered:
            assert type(entered) is AsyncStream

    asyncio.run(use())
    assert original.close_count == 1
    assert log.lines[0] == "closed"


def test_aclose_is_there_if_the_original_has_it(log):
    async def generate():
        yield 1

    assert not hasattr(stream(fake(), Log()), "aclose")
    generator = stream(generate(), log)
    asyncio.run(generator.aclose())
    assert log.lines[0] == "closed"


def test_an_exception_in_the_body_closes(log):
    original = fake("a")
    with pytest.raises(LookupError), stream(original, log):
        raise LookupError
    assert log.lines[0] == "closed by LookupError"
    assert original.close_count == 1


def test_a_raw_response_is_what_it_wraps(log):
    class Response:
        headers = {"a": "b"}

        def parse(self, to=None):
            return to

    response = RawResponse(Response(), log, lambda: log.lines.append("dropped"))
    assert isinstance(response, Response)
    assert response.headers == {"a": "b"}
    assert response.parse(to="it") == "it"
    del response
    assert log.lines == ["enter", "exit", "delivered", "dropped"]


def told(times):
    """Is told of reads, and wants to be so often."""
    remaining = iter(range(times))
    return lambda: next(remaining) < times - 1


def test_a_body_tells_of_its_reads_until_there_is_no_need():
    body = Body([b"a", b"b", b"c"], told(2))
    assert isinstance(body, list)
    assert list(body) == [b"a", b"b", b"c"], "a third word would have raised"


def test_an_asynchronous_body_does_too():
    async def generate():
        for part in (b"a", b"b", b"c"):
            yield part

    async def read():
        return [part async for part in Body(generate(), told(2))]

    assert asyncio.run(read()) == [b"a", b"b", b"c"]


def test_a_wrapped_function_still_looks_like_itself():
    async def coroutine():
        """What it does."""

    def generator(a, *, b=1):
        yield

    def wrapper(wrapped, _, args, kwargs):
        return wrapped(*args, **kwargs)

    assert inspect.iscoroutinefunction(wrap(coroutine, wrapper))
    assert wrap(coroutine, wrapper).__doc__ == "What it does."
    assert inspect.isgeneratorfunction(wrap(generator, wrapper))
    assert inspect.signature(wrap(generator, wrapper)) == inspect.signature(generator)


def test_a_proxy_is_copied_and_pickled_as_what_it_wraps(log):
    response: Any = RawResponse({"a": 1}, log, lambda: None)
    assert type(copy.copy(response)) is type(copy.deepcopy(response)) is dict
    assert pickle.loads(pickle.dumps(stream(iter([1, 2]), log))).__next__() == 1
    original = OwnStream(ManualClock(), [(0, "a")])
    copied = copy.copy(stream(original, log))
    assert type(copied) is OwnStream
    with pytest.raises(TypeError, match="cannot pickle 'generator' object"):
        pickle.dumps(stream((each for each in "ab"), log))
