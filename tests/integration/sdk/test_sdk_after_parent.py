"""A stream that is returned out of an agent's block and read by whoever called the agent."""

import asyncio

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

import llmlat_otel
from llmlat_processor.pipeline import process
from llmlat_processor.wire import decode
from llmlat_semconv import attributes as names
from llmlat_semconv.values import FindingKind

MESSAGES = [{"role": "user", "content": "hi"}]


def check(record, caplog):
    """The call is the agent's, and ended after it; nothing was said, and nothing is left behind."""
    agent, call = (
        next(span for span in record.spans if span.name == name)
        for name in ("invoke_agent adviser", "chat m")
    )
    assert call.parent.span_id == agent.context.span_id
    assert agent.start_time <= call.start_time <= agent.end_time <= call.end_time
    assert call.attributes[names.LLMLAT_STREAM_END] == "complete"
    assert trace.get_current_span() is trace.INVALID_SPAN
    assert not caplog.records
    found = process(decode(encode_spans(record.spans).SerializeToString()).spans)
    of_call = [
        each.kind for each in found.findings if each.of == call.context.span_id.to_bytes(8, "big")
    ]
    assert FindingKind.OUTLIVED_PARENT in of_call


def test_a_stream_may_be_read_after_the_agent_is_over(client, record, caplog):
    def answer():
        with llmlat_otel.agent("adviser"):
            return client.chat.completions.create(model="m", messages=MESSAGES, stream=True)

    for _ in answer():
        assert trace.get_current_span() is trace.INVALID_SPAN
    check(record, caplog)


def test_an_asynchronous_stream_may_be_read_after_the_agent_is_over(
    make_async_client, record, caplog
):
    async def answer(client):
        async with llmlat_otel.agent("adviser"):
            return await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)

    async def read(stream):
        async for _ in stream:
            assert trace.get_current_span() is trace.INVALID_SPAN

    async def main():
        async with make_async_client() as client:
            stream = await asyncio.ensure_future(answer(client))
            await asyncio.ensure_future(read(stream))

    asyncio.run(main())
    check(record, caplog)


def test_a_stream_may_be_read_in_another_thread_after_the_agent_is_over(client, record, caplog):
    @llmlat_otel.agent("adviser")
    def answer():
        return [client.chat.completions.create(model="m", messages=MESSAGES, stream=True)]

    asyncio.run(asyncio.to_thread(list, *answer()))
    check(record, caplog)


def test_model_calls_in_tasks_and_threads_are_waited_for(client, make_async_client, record, caplog):
    def ask():
        client.chat.completions.create(model="m", messages=MESSAGES)

    async def main():
        async with make_async_client() as own, llmlat_otel.agent("adviser"):
            whole = own.chat.completions.create(model="m", messages=MESSAGES)
            await asyncio.gather(whole, streamed(own), asyncio.to_thread(ask))

    async def streamed(own):
        async for _ in await own.chat.completions.create(model="m", messages=MESSAGES, stream=True):
            pass

    asyncio.run(main())
    agent = next(span for span in record.spans if span.name == "invoke_agent adviser")
    calls = [span for span in record.spans if span.name == "chat m"]
    said = [one for each in agent.events for one in each.attributes[names.LLMLAT_JOIN_SPAN_IDS]]
    assert sorted(said) == sorted(f"{call.context.span_id:016x}" for call in calls)
    assert len(calls) == 3
    assert not caplog.records
