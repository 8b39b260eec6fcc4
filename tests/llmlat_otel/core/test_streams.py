"""Streams and raw responses: each is told of its steps and its end, and stays what it wraps."""

import asyncio
import copy
import gc
import inspect
import itertools
import pickle
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import aclosing, closing
from typing import Any

import pytest

from llmlat_otel.core.guard import faults
from llmlat_otel.core.streams import RawResponse, is_stream, stream
from llmlat_otel.testing import FakeAsyncStream, FakeStream, ManualClock
from tests.llmlat_otel.core.log import Log


def fake(*events, kind=FakeStream):
    return kind(ManualClock(), [(0, event) for event in events])


class Both(FakeStream):
    """A stream of both kinds, as LiteLLM's is."""

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None


class Generated(FakeStream):
    """A stream that gives out a generator to be iterated, as openai's does."""

    def __iter__(self):
        while True:
            try:
                yield next(self)
            except StopIteration:
                return


class GeneratedAsync(FakeAsyncStream):
    async def __aiter__(self):
        while True:
            try:
                yield await self.__anext__()
            except StopAsyncIteration:
                return


def read(measured):
    return list(measured)


def read_async(measured):
    async def reading():
        return [event async for event in measured]

    return asyncio.run(reading())


SHAPES = [
    (FakeStream, read),
    (FakeAsyncStream, read_async),
    (Both, read),
    (Both, read_async),
    (Generated, read),
    (GeneratedAsync, read_async),
]


@pytest.mark.parametrize(("kind", "read_all"), SHAPES)
def test_each_pull_is_told_once(log, kind, read_all):
    assert read_all(stream(fake("a", "b", kind=kind), log)) == ["a", "b"]
    assert log.lines[:6] == ["begin", "a", "begin", "b", "begin", "completed"]


@pytest.mark.parametrize(("kind", "read_all"), SHAPES)
def test_a_failure_passes_unchanged_and_is_told_once(log, kind, read_all):
    error = LookupError("no")
    with pytest.raises(LookupError) as caught:
        read_all(stream(fake("a", error, kind=kind), log))
    assert caught.value is error
    assert log.lines == ["begin", "a", "begin", "failed by LookupError"]


class Broken(Log):
    def _fail(self, *_):
        raise ZeroDivisionError

    begin = returned = received = completed = failed = closed = _fail


@pytest.mark.parametrize(("kind", "read_all"), SHAPES)
def test_a_pull_that_fails_at_everything_changes_nothing(kind, read_all):
    before = faults().get("log", 0)
    assert read_all(stream(fake("a", "b", kind=kind), Broken())) == ["a", "b"]
    assert faults()["log"] == before + 6
    with pytest.raises(LookupError) as caught:
        read_all(stream(fake(LookupError("no"), kind=kind), Broken()))
    assert caught.value.__context__ is None


ABILITIES = [Iterator, AsyncIterator]


@pytest.mark.parametrize("kind", [FakeStream, FakeAsyncStream, Both])
@pytest.mark.parametrize("ability", ABILITIES)
def test_a_proxy_can_do_what_its_stream_can_and_nothing_else(log, kind, ability):
    original = fake(kind=kind)
    assert issubclass(type(stream(original, log)), ability) == isinstance(original, ability)


def test_an_iterator_is_no_response(log):
    proxy = stream(iter([1]), log)
    for name in ("__anext__", "close", "aclose", "send"):
        assert not hasattr(proxy, name), name


class OwnStream(FakeStream):
    """A stream with attributes of its own."""

    note = "original"

    def __len__(self):
        return 7

    def __repr__(self):
        return "<own>"


def test_wr_05_dunder_look_ups_find_what_is_wrapped(log):
    original = OwnStream(ManualClock(), [(0, "a")])
    proxy = stream(original, log)
    assert isinstance(proxy, OwnStream)
    assert proxy.note == "original"
    assert iter(proxy) is proxy
    assert len(proxy) == 7
    assert repr(proxy) == "<own>"
    assert proxy == original
    proxy.note = "set through the proxy"
    assert original.note == "set through the proxy"
    with proxy as entered:
        assert entered is proxy


def test_close_reaches_the_original_once(log):
    original = fake("a")
    stream(original, log).close()
    assert original.close_count == 1
    assert log.lines == ["begin", "returned", "closed"]


CLOSED = ["begin", "returned", "restart"]


def test_wr_02_an_async_close_is_awaited_once(log):
    original = fake("a", kind=FakeAsyncStream)

    async def use():
        async with stream(original, log) as entered:
            assert type(entered).__name__ == "MeasuredStream"
            assert await entered.__anext__() == "a"

    asyncio.run(use())
    assert original.close_count == 1
    assert log.lines[2:] == ["begin", "returned", "begin", "returned", "closed"]


WAYS_TO_CLOSE = ["close", "aclose", "block"]


class Awaited(FakeAsyncStream):
    """Counts how often its closing was awaited."""

    def __init__(self, *args):
        super().__init__(*args)
        self.awaited = 0

    async def close(self):
        await asyncio.sleep(0)
        self.awaited += 1

    async def aclose(self):
        await self.close()


@pytest.mark.parametrize("way", WAYS_TO_CLOSE)
def test_wr_03_the_stream_of_the_library_is_closed_whatever_the_way(log, way):
    original = fake("a", "b", kind=Awaited)

    async def use():
        proxy = stream(original, log)
        if way == "block":
            async with proxy as entered:
                async for _ in entered:
                    break
        else:
            await proxy.__anext__()
            await getattr(proxy, way)()

    asyncio.run(use())
    assert original.awaited == 1
    assert log.lines.count("closed") == 1


def test_a_closing_that_fails_is_a_failure_of_the_stream(log):
    class Failing(FakeStream):
        def close(self):
            raise OSError("no")

    with pytest.raises(OSError, match="no"):
        stream(fake("a", kind=Failing), log).close()
    assert log.lines == ["begin", "failed by OSError"]


def test_an_exception_in_the_body_closes(log):
    original = fake("a")
    with pytest.raises(LookupError), stream(original, log):
        raise LookupError
    assert log.lines[-1] == "closed by LookupError"
    assert original.close_count == 1


def test_what_closes_still_looks_like_itself(log):
    proxy = stream(fake(kind=FakeAsyncStream), log)
    assert inspect.iscoroutinefunction(proxy.close)
    assert not hasattr(proxy, "aclose")


def generate() -> Generator[Any, Any, None]:
    received = yield "a"
    try:
        yield received
    except KeyError:
        yield "caught"


async def generate_async() -> AsyncGenerator[Any, Any]:
    received = yield "a"
    try:
        yield received
    except KeyError:
        yield "caught"


def test_a_generators_own_ways_to_go_on_are_pulls(log):
    with closing(stream(generate(), log)) as proxy:
        assert [next(proxy), proxy.send("b"), proxy.throw(KeyError())] == ["a", "b", "caught"]
        assert inspect.isgenerator(proxy)
    assert [each for each in log.lines if each not in {"begin", "returned"}] == [
        "a",
        "b",
        "caught",
        "closed",
    ]


def test_those_of_an_asynchronous_one_too(log):
    async def use():
        async with aclosing(stream(generate_async(), log)) as proxy:
            assert await proxy.__anext__() == "a"
            assert await proxy.asend("b") == "b"
            assert await proxy.athrow(KeyError()) == "caught"
            assert inspect.isasyncgen(proxy)

    asyncio.run(use())
    told = [each for each in log.lines if each not in {"begin", "returned", "restart"}]
    assert told == ["a", "b", "caught", "closed"]


# What a stream gives out to be iterated


def test_a_part_of_a_stream_is_closed_without_the_stream(log):
    original = fake("a", "b", "c", kind=Generated)
    proxy = stream(original, log)
    part = iter(proxy)
    assert inspect.isgenerator(part)
    assert next(part) == "a"
    part.close()
    assert list(proxy) == ["b", "c"]
    assert log.lines == ["begin", "a", "begin", "b", "begin", "c", "begin", "completed"]


class Noted:
    """Is told that it is gone."""

    def __init__(self, gone):
        self._gone = gone

    def __del__(self):
        self._gone.append(1)


@pytest.mark.parametrize("kind", [Generated, GeneratedAsync])
def test_a_part_keeps_the_whole_alive_and_nothing_else_does(log, kind):
    gone: list[int] = []
    proxy = stream(fake("a", kind=kind), log)
    proxy.note = Noted(gone)
    part = iter(proxy) if kind is Generated else aiter(proxy)
    del proxy
    gc.collect()
    assert gone == []
    del part
    gc.collect()
    assert gone == [1]


def test_an_iterator_that_only_asynchronous_iteration_gives_out_is_a_stream(log):
    class Given:
        async def __aiter__(self):
            yield "a"

    assert is_stream(Given())
    assert read_async(stream(Given(), log)) == ["a"]
    assert not is_stream("text")
    assert not is_stream({"a": 1})


def test_a_proxy_is_copied_and_pickled_as_what_it_wraps(log):
    response: Any = RawResponse({"a": 1}, Log(), log)
    assert type(copy.copy(response)) is type(copy.deepcopy(response)) is dict
    assert pickle.loads(pickle.dumps(stream(iter([1, 2]), log))).__next__() == 1
    original = OwnStream(ManualClock(), [(0, "a")])
    copied = copy.copy(stream(original, log))
    assert type(copied) is OwnStream
    with pytest.raises(TypeError, match="cannot pickle 'generator' object"):
        pickle.dumps(stream((each for each in "ab"), log))


def test_a_stream_is_split_as_what_it_wraps_is(log):
    first, second = itertools.tee(stream((each for each in "ab"), log))
    assert (list(first), list(second)) == (["a", "b"], ["a", "b"])
    assert log.lines[:6] == ["begin", "a", "begin", "b", "begin", "completed"]
