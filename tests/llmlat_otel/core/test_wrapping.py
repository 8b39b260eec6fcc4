"""Functions in scopes, and proxies: whatever the user could do with the original still works."""

import asyncio
import gc
import inspect
import warnings

import pytest

from llmlat_otel.core.guard import faults
from llmlat_otel.core.wrapping import run_in, wrap
from tests.llmlat_otel.core.log import Log


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
    assert log.lines == ["begin", f"failed by {type(error).__name__}"]


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
