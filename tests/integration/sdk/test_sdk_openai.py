"""openai over a real connection: phases, attempts, raw responses, and what the server sees."""

import asyncio
from typing import Any

import httpx
import httpx2
import openai
import pytest
from openai.types.chat import ChatCompletion

import llmlat_otel
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import (
    Phase,
    reported_duration_attribute,
    reported_evidence_attribute,
)

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
CLIENT_PHASES = ["prepare", "pool_wait", "connect", "send", "wait"]


def operation(record):
    (span,) = [each for each in record.spans if each.name == "chat m"]
    return span


def phases(record):
    return [each.name.split()[1] for each in record.spans if each.name.startswith("phase")]


def facts(span):
    """What the span says of the response, times aside."""
    timed = {
        names.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK,
        reported_duration_attribute(Phase.QUEUE),
    }
    wanted = {*RESPONSE, names.GEN_AI_REQUEST_STREAM, reported_evidence_attribute(Phase.QUEUE)}
    others = {name for name in span.attributes if name.startswith(GEN_AI)}
    return {
        name: value for name, value in span.attributes.items() if name in (wanted | others) - timed
    }


GEN_AI = names.GEN_AI_REQUEST_MODEL.partition(".")[0]
RESPONSE = {
    names.GEN_AI_OPERATION_NAME: "chat",
    names.GEN_AI_PROVIDER_NAME: "openai",
    names.GEN_AI_REQUEST_MODEL: "m",
    names.GEN_AI_RESPONSE_MODEL: "m-2",
    names.GEN_AI_RESPONSE_ID: "c-1",
    names.GEN_AI_RESPONSE_FINISH_REASONS: ("stop",),
    names.GEN_AI_USAGE_INPUT_TOKENS: 3,
    names.GEN_AI_USAGE_OUTPUT_TOKENS: 2,
    reported_duration_attribute(Phase.PREFILL): 0.0045,
    reported_duration_attribute(Phase.DECODE): 0.009,
    names.LLMLAT_PREFILL_COMPUTED_TOKENS: 2,
    names.LLMLAT_PREFILL_CACHED_TOKENS: 1,
    names.LLMLAT_DECODE_TOKENS: 1,
    names.SERVER_ADDRESS: "127.0.0.1",
}


def test_a_call(client, record):
    completion = client.chat.completions.create(**ASK)
    assert type(completion) is ChatCompletion
    assert facts(operation(record)) == {**RESPONSE, names.GEN_AI_REQUEST_STREAM: False}
    assert phases(record) == [*CLIENT_PHASES, "finalize"]


def test_a_streamed_call(client, record):
    assert len(list(client.chat.completions.create(**ASK, stream=True))) == 6
    span = operation(record)
    assert facts(span) == {
        **RESPONSE,
        names.GEN_AI_REQUEST_STREAM: True,
        reported_evidence_attribute(Phase.QUEUE): "bounded",
    }
    assert phases(record) == [*CLIENT_PHASES, "first_content", "stream", "finalize"]
    first_chunk_s = span.attributes[names.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK]
    assert 0 < first_chunk_s < span.attributes[names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT]
    wait = next(each for each in record.spans if each.name == "phase wait")
    bound_s = span.attributes[reported_duration_attribute(Phase.QUEUE)]
    assert bound_s == pytest.approx(wait.attributes[names.LLMLAT_PHASE_DURATION], abs=1e-6)


def test_phases_account_for_nearly_all_of_the_call(client, record):
    """Of one of several at least: on a busy machine any of them may be held up in between."""
    for _ in range(5):
        list(client.chat.completions.create(**ASK, stream=True))
    left = []
    for span in [each for each in record.spans if each.name == "chat m"]:
        own = [each for each in record.spans if each.parent == span.get_span_context()]
        covered = sum(each.end_time - each.start_time for each in own)
        left.append(span.end_time - span.start_time - covered)
    assert 0 <= min(left) < 5_000_000


def test_async_calls(make_async_client, record):
    async def main():
        async with make_async_client() as client:
            stream = await client.chat.completions.create(**ASK, stream=True)
            assert len([chunk async for chunk in stream]) == 6
            assert type(await client.chat.completions.create(**ASK)) is ChatCompletion

    asyncio.run(main())
    streamed, whole = [each for each in record.spans if each.name == "chat m"]
    assert facts(streamed)[names.GEN_AI_REQUEST_STREAM]
    assert facts(whole) == {**RESPONSE, names.GEN_AI_REQUEST_STREAM: False}
    assert phases(record) == [
        *CLIENT_PHASES,
        "first_content",
        "stream",
        "finalize",
        "prepare",
        "pool_wait",
        "send",
        "wait",
        "finalize",
    ], "the second call takes the connection of the first"


def test_two_failures_then_a_success_are_three_attempts_of_one_call(server, client, record):
    server.statuses = [503, 503]
    client.chat.completions.create(**ASK)
    attempts = [each for each in record.spans if each.name == "attempt m"]
    assert [each.attributes[names.LLMLAT_ATTEMPT_NUMBER] for each in attempts] == [1, 2, 3]
    assert [each.attributes[names.LLMLAT_ATTEMPT_OUTCOME] for each in attempts] == [
        "failed",
        "failed",
        "won",
    ]
    assert phases(record).count("backoff") == 2
    span = operation(record)
    assert span.attributes[names.HTTP_REQUEST_RESEND_COUNT] == 2
    assert span.status.is_ok
    parents = [headers["traceparent"].split("-")[2] for headers, _ in server.requests]
    ids = [span, *attempts[1:]]
    assert parents == [f"{each.get_span_context().span_id:016x}" for each in ids]


def test_retries_that_run_out_are_the_calls_failure(server, client, record):
    server.statuses = [500, 500, 500]
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(**ASK)
    span = operation(record)
    assert span.attributes[names.ERROR_TYPE] == "openai.InternalServerError"
    assert phases(record).count("backoff") == 2


def test_a_refused_connection_is_an_attempt_that_failed(record):
    client = openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="k", max_retries=1)
    with pytest.raises(openai.APIConnectionError):
        client.chat.completions.create(**ASK)
    attempts = [each for each in record.spans if each.name == "attempt m"]
    assert [each.attributes[names.ERROR_TYPE] for each in attempts] == ["httpx2.ConnectError"] * 2


def test_the_request_is_otherwise_as_it_was(server, client, record):
    client.chat.completions.create(**ASK, stream=True, extra_headers={"x-own": "1"}).close()
    headers, body = server.requests[0]
    assert body == {**ASK, "stream": True}
    assert headers["x-own"] == "1"
    assert headers["traceparent"].startswith("00-")
    assert "baggage" not in headers


def test_a_traceparent_of_the_users_own_stays(server, client, record):
    theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    client.chat.completions.create(**ASK, extra_headers={"traceparent": theirs})
    assert server.requests[0][0]["traceparent"] == theirs


def test_requests_without_a_call_above_are_none_of_our_business(server, record):
    answer = httpx2.post(server.url, json=ASK)
    assert answer.status_code == 200
    assert record.spans == ()
    assert "traceparent" not in server.requests[0][0]


def test_a_raw_response(client, record):
    raw = client.chat.completions.with_raw_response.create(**ASK)
    assert raw.headers["content-type"] == "application/json"
    assert raw.parse() is raw.parse()
    assert isinstance(raw.parse(), ChatCompletion)
    assert phases(record) == [*CLIENT_PHASES, "finalize"]


def check_streamed(record):
    span = operation(record)
    assert span.attributes[names.LLMLAT_STREAM_END] == "complete"
    assert span.attributes[names.GEN_AI_USAGE_OUTPUT_TOKENS] == 2
    assert names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT in span.attributes


def test_a_raw_response_with_a_stream(client, record):
    raw = client.chat.completions.with_raw_response.create(**ASK, stream=True)
    stream = raw.parse()
    assert isinstance(stream, openai.Stream)
    assert raw.parse() is stream
    assert len(list(stream)) == 6
    check_streamed(record)


def test_a_streaming_response_with_a_stream(client, record):
    with client.chat.completions.with_streaming_response.create(**ASK, stream=True) as raw:
        assert len(list(raw.parse())) == 6
    check_streamed(record)


def test_async_raw_and_streaming_responses_with_a_stream(make_async_client, record):
    async def main():
        async with make_async_client() as client:
            raw = await client.chat.completions.with_raw_response.create(**ASK, stream=True)
            assert len([chunk async for chunk in raw.parse()]) == 6
            create = client.chat.completions.with_streaming_response.create
            async with create(**ASK, stream=True) as streaming:
                assert len([chunk async for chunk in await streaming.parse()]) == 6

    asyncio.run(main())
    spans = [each for each in record.spans if each.name == "chat m"]
    assert [each.attributes[names.LLMLAT_STREAM_END] for each in spans] == ["complete"] * 2
    assert all(names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT in each.attributes for each in spans)


def test_a_streaming_response_that_is_parsed_whole(client, record):
    with client.chat.completions.with_streaming_response.create(**ASK) as raw:
        assert isinstance(raw.parse(), ChatCompletion)
    assert facts(operation(record)) == {**RESPONSE, names.GEN_AI_REQUEST_STREAM: False}


def test_a_streaming_response_that_is_read_as_lines(client, record):
    create = client.chat.completions.with_streaming_response.create
    with create(**ASK, stream=True) as raw:
        assert len([line for line in raw.iter_lines() if line]) == 7
    assert phases(record) == [*CLIENT_PHASES, "stream", "finalize"]


def test_the_stream_helper(client, record):
    with client.chat.completions.stream(**ASK) as stream:
        assert stream.get_final_completion().choices[0].message.content == "ab"
    check_streamed(record)


def test_the_stream_helper_that_is_left_early(client, record):
    with client.chat.completions.stream(**ASK) as stream:
        next(iter(stream))
    assert operation(record).attributes[names.LLMLAT_STREAM_END] == "closed_early"


def test_an_argument_error_is_the_users_own(client, record):
    with pytest.raises(TypeError, match="Missing required arguments"):
        client.chat.completions.create(model="m")
    assert operation(record).attributes[names.ERROR_TYPE] == "TypeError"


def test_a_mock_transport_has_no_transport_phases(server, record):
    completion = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": []}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json=completion))
    client = openai.OpenAI(
        base_url=server.url, api_key="k", http_client=httpx2.Client(transport=transport)
    )
    client.chat.completions.create(**ASK)
    assert phases(record) == ["prepare"], "what nobody measured is not made up"


def test_legacy_httpx_is_timed_too(server, record):
    legacy: Any = httpx.Client()
    client = openai.OpenAI(base_url=server.url, api_key="k", http_client=legacy)
    client.chat.completions.create(**ASK)
    assert phases(record) == [*CLIENT_PHASES, "finalize"]


def test_uninstrument_gives_the_library_back(server, client, record):
    llmlat_otel.uninstrument()
    client.chat.completions.create(**ASK)
    assert record.spans == ()
    assert "traceparent" not in server.requests[0][0]


def test_a_redirect_is_no_response(server, client, record):
    server.statuses = [307]
    client.chat.completions.create(**ASK)
    again = ["pool_wait", "send", "wait", "finalize"]
    assert phases(record) == [*CLIENT_PHASES, *again], "the last wait is for the response"


class Resending(httpx2.Client):
    """Sends each request twice, and gives the second response."""

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        super().send(request, **options).close()
        return super().send(request, **options)


def test_the_same_request_sent_again_is_another_attempt(server, record):
    with Resending() as transport:
        client = openai.OpenAI(base_url=server.url, api_key="k", http_client=transport)
        client.chat.completions.create(**ASK)
    attempts = [each for each in record.spans if each.name == "attempt m"]
    parents = [headers["traceparent"].split("-")[2] for headers, _ in server.requests]
    ids = [operation(record), attempts[1]]
    assert parents == [f"{each.get_span_context().span_id:016x}" for each in ids]
    assert phases(record).count("send") == 2
