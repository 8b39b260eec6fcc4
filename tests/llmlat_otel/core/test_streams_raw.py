"""Raw responses: what they are parsed to, and read as, is told once; they stay what they were."""

import asyncio
import gc
import inspect
from typing import Any

import pytest

from llmlat_otel.core.streams import RawResponse
from tests.llmlat_otel.core.log import Log


def test_wr_04_a_block_gives_the_proxy_and_all_ways_to_read_it_count_once(log):
    class Response:
        """As openai's, read in whatever way."""

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def iter_lines(self):
            yield from ("a", "b")

        def read(self):
            return b"ab"

        def parse(self):
            return None

    raw: Any = RawResponse(Response(), Log(), log)
    assert list(raw.iter_lines()) == ["a", "b"]
    assert log.lines == ["begin", "returned", "begin", "a", "begin", "b", "begin", "completed"]
    log.lines.clear()
    assert raw.read() == b"ab"
    assert log.lines == ["begin", "returned", b"ab", "completed"]


class Noted:
    """Is told that it is gone."""

    def __init__(self, gone):
        self._gone = gone

    def __del__(self):
        self._gone.append(1)


class Response:
    """As openai's, synchronous."""

    headers = {"a": "b"}

    def parse(self, to=None):
        return to

    def close(self):
        pass

    text = "there"


class AsyncResponse:
    async def parse(self, to=None):
        return to

    async def json(self):
        await asyncio.sleep(0)
        return {}

    async def close(self):
        pass


def test_a_raw_response_is_what_it_wraps(log):
    parsing = Log()
    raw: Any = RawResponse(Response(), parsing, log)
    assert isinstance(raw, Response)
    assert raw.headers == {"a": "b"}
    assert raw.parse(to="it") == "it"
    assert raw.text == "there"
    assert not hasattr(raw, "aclose")
    assert not hasattr(raw, "iter_lines")
    assert inspect.signature(raw.parse) == inspect.signature(Response().parse)
    raw.close()
    assert parsing.lines == ["begin", "returned", "delivered"]
    assert log.lines == ["begin", "returned", "closed"]


def test_wr_08_an_asynchronous_one_is_parsed_by_a_coroutine(log):
    parsing = Log()
    raw: Any = RawResponse(AsyncResponse(), parsing, log)
    assert inspect.iscoroutinefunction(raw.parse)
    assert asyncio.run(raw.parse(to="it")) == "it"
    assert parsing.lines == ["begin", "returned", "restart", "begin", "returned", "delivered"]
    assert asyncio.run(raw.json()) == {}
    assert log.lines[-2:] == [{}, "completed"]


@pytest.mark.parametrize("name", ["parse", "json", "close"])
def test_what_is_called_on_a_response_keeps_it_alive(log, name):
    gone: list[int] = []

    raw: Any = RawResponse(AsyncResponse(), Log(), log)
    raw._self_note = Noted(gone)
    coroutine = getattr(raw, name)()
    del raw
    gc.collect()
    assert gone == []
    coroutine.close()
    del coroutine
    gc.collect()
    assert gone == [1]
