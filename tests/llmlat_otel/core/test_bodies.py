"""Bodies that tell of their reads: they are iterated and closed as they would be without us."""

import asyncio
import inspect
from collections.abc import AsyncGenerator

import pytest

from llmlat_otel.core.bodies import Body


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
