"""Decorated generators that are left early, and blocks in generators: wherever they are closed."""

import asyncio
import gc

import pytest
from opentelemetry import trace

import llmlat_otel
from tests.llmlat_otel.waiting import turns


@llmlat_otel.agent("adviser")
async def decorated():
    for word in ("not yet", "final", "never read"):
        await turns(1)
        yield word


async def with_a_block():
    with llmlat_otel.agent("adviser"):
        for word in ("not yet", "final", "never read"):
            await turns(1)
            yield word


GENERATORS = pytest.mark.parametrize("generator", [decorated, with_a_block])


@GENERATORS
def test_cx_01_a_generator_that_another_task_drops_says_nothing_and_ends(record, caplog, generator):
    held = []

    async def read():
        held.append(generator())
        async for _ in held[0]:
            break

    async def drop():
        before = trace.get_current_span()
        held.clear()
        gc.collect()
        await turns(5)
        assert trace.get_current_span() is before

    async def main():
        with record.tracer_provider.get_tracer("theirs").start_as_current_span("request") as span:
            await asyncio.ensure_future(read())
            await asyncio.ensure_future(drop())
            assert trace.get_current_span() is span

    asyncio.run(main())
    assert sorted(span["name"] for span in record.tree()) == ["invoke_agent adviser", "request"]
    assert not caplog.records


@GENERATORS
def test_cx_02_a_hundred_early_exits_are_a_hundred_spans_and_no_line_in_the_log(
    record, caplog, generator
):
    async def read():
        async for word in generator():
            if word == "final":
                return

    async def main():
        for _ in range(100):
            await asyncio.ensure_future(read())
        await turns(5)

    asyncio.run(main())
    assert len(record.tree()) == 100
    assert not caplog.records
