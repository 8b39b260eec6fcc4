"""Functions in scopes, and proxies: whatever the user could do with the original still works."""

import asyncio
import gc
import inspect
import warnings
from collections.abc import AsyncGenerator

import pytest

from llmlat_otel.core.guard import faults
from llmlat_otel.core.wrapping import Body, run_in, wrap


class Log:
    """A scope that writes down what it is told."""

    target = "log"

    def __init__(self):
        self.lines = []

    def begin(self):
        self.lines.append("begin")

    def returned(self):
        self.lines.append("returned")

    def failed(self, error):
        self.lines.append(type(error).__name__)

    def restart(self):
        self.lines.append("restart")

    def delivered(self, result):
        self.lines.append("delivered")
        return result


@pytest.fixture
def log():
    return Log()


async def add(a, b):
    return a + b


def test_a_plain_function(log):
    assert run_in(log, lambda a, b: a + b, (1,), {"b": 2}) == 3
    assert log.lines == ["begin", "returned", "delivered"]


def test_an_awaitable_result(log):
    assert asyncio.run(run_in(log, add, (1,), {"b": 2})) == 3
    assert log.lines == ["begin", "returned", "restart", "begin", "returned", "delivered"]


def test_without_a_scope_it_is_a_plain_call():
    assert run_in(None, lambda a, b: a + b, (1,), {"b": 2}) == 3


ERRORS = [ValueError("no"), KeyboardInterrupt(), asyncio.CancelledError(), StopIteration(1)]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_exceptions_pass_unchanged(log, error):
    def fail():
        raise error

    with pytest.raises(type(error)) as caught:
        run_in(log, fail, (), {})
    assert caught.value is error
    assert log.lines == ["begin", type(error).__name__]


class Broken(Log):
    """A scope that fails at everything."""

    def _fail(self, *_):
        raise LookupError

    begin = returned = failed = restart = delivered = _fail


def test_a_scope_that_fails_at_everything_changes_nothing():
    def fail():
        raise ValueError("no")

    before = faults().get("log", 0)
    assert run_in(Broken(), lambda: 3, (), {}) == 3
    assert asyncio.run(run_in(Broken(), add, (1, 2), {})) == 3
    with pytest.raises(ValueError, match="no") as caught:
        run_in(Broken(), fail, (), {})
    assert caught.value.__context__ is None
    assert faults()["log"] == before + 3 + 6 + 2


def test_a_coroutine_looks_like_the_one_whose_place_it_takes(log):
    coroutine, original = run_in(log, add, (1, 2), {}), add(1, 2)
    assert inspect.iscoroutine(coroutine)
    assert (coroutine.__name__, coroutine.__qualname__) == ("add", "add")
    coroutine.close()
    original.close()


def never_awaited(make):
    """What Python warns of; nothing is kept of what it warns of, which would keep that alive."""
    said = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: said.append(str(message))
        make()
        gc.collect()
    return said


def test_python_warns_of_a_coroutine_that_is_never_awaited_as_it_would_without_us(log):
    assert never_awaited(lambda: run_in(log, add, (1, 2), {})) == never_awaited(lambda: add(1, 2))


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


# Bodies that are generators: httpx closes what it iterates, if it passes for one


class Parts:
    """Parts of a body, and whether the generator that gives them has been left."""

    def __init__(self):
        self.is_left = False

    def __iter__(self):
        try:
            yield from "abc"
        finally:
            self.is_left = True

    async def __aiter__(self):
        try:
            for each in "abc":
                yield each
        finally:
            self.is_left = True


@pytest.mark.parametrize("watched", [1, 3])
def test_a_generated_body_is_closed_with_what_is_iterated(watched):
    parts, left = Parts(), iter(range(watched, 0, -1))
    reads = iter(Body(parts, lambda: next(left) > 1))
    assert inspect.isgenerator(reads)
    assert [next(reads), next(reads)] == ["a", "b"]
    reads.close()
    assert parts.is_left
    assert list(reads) == []


@pytest.mark.parametrize("watched", [1, 3])
def test_an_asynchronously_generated_body_is_closed_with_what_is_iterated(watched):
    parts, left = Parts(), iter(range(watched, 0, -1))

    async def close():
        reads = aiter(Body(parts, lambda: next(left) > 1))
        assert isinstance(reads, AsyncGenerator)
        read = [await anext(reads), await reads.asend(None)]
        await reads.aclose()
        return read

    assert asyncio.run(close()) == ["a", "b"]
    assert parts.is_left


def test_what_is_thrown_into_a_generated_body_arrives():
    parts = Parts()

    async def throw():
        reads = aiter(Body(parts, lambda: False))
        await anext(reads)
        await reads.athrow(ValueError("theirs"))

    with pytest.raises(ValueError, match="theirs"):
        asyncio.run(throw())
    assert parts.is_left
