"""What counts as content in a chunk, and what a response says of itself."""

from types import SimpleNamespace

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.recording import Anchor, ToolCall
from llmlat_otel.instrumentors.openai import ChatReader
from llmlat_semconv import attributes as names
from llmlat_semconv.values import ContentKind, StreamEnd

URL = SimpleNamespace(host="127.0.0.1", port=None, scheme="https")
INSTANCE = SimpleNamespace(_client=SimpleNamespace(base_url=URL))


def reader(*, reasoning_is_content=False):
    return ChatReader(INSTANCE, {"model": "m", "stream": True}, reasoning_is_content)


def recorder():
    return PhaseRecorder(0, Anchor(0, 0, 0), 1)


def chunk(delta=None, finish_reason=None, index=0, **others):
    choices = [{"index": index, "delta": delta, "finish_reason": finish_reason}]
    return ChatCompletionChunk.construct(
        id="c-1",
        object="chat.completion.chunk",
        created=1,
        model="m-2",
        choices=[] if delta is None else choices,
        **others,
    )


def tool_delta(index, call_id=None, name=None, arguments=None):
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": call_id, "function": function}]}


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        ({"content": "Hi"}, ContentKind.TEXT),
        ({"refusal": "No"}, ContentKind.REFUSAL),
        ({"audio": {"data": "UklG"}}, ContentKind.AUDIO),
        ({"audio": {"id": "a", "expires_at": 1}}, None),
        ({"role": "assistant"}, None),
        ({"role": "assistant", "content": ""}, None),
        ({}, None),
        (None, None),
        (tool_delta(0, "call-1", "quote", ""), ContentKind.TOOL_CALL),
        (tool_delta(0, None, None, "{}"), ContentKind.TOOL_CALL),
        (tool_delta(0, "call-1"), None),
        ({"reasoning_content": "Hm"}, None),
        ({"content": [{"type": "thinking", "thinking": []}]}, None),
        ({"function_call": {"name": "quote", "arguments": ""}}, ContentKind.TOOL_CALL),
    ],
)
def test_content(delta, expected):
    assert reader().event(chunk(delta), 1, recorder()) is expected


def test_visible_reasoning_counts_where_it_is_declared_to_be_content():
    event = chunk({"reasoning_content": "Hm"})
    assert reader(reasoning_is_content=True).event(event, 1, recorder()) is ContentKind.REASONING


def test_the_facts_of_a_stream():
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 0,
        "total_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    read, marks = reader(), recorder()
    for event in (chunk({"content": "Hi"}), chunk({}, "stop"), chunk(usage=usage)):
        read.event(event, 1, marks)
    assert read.facts == {
        names.GEN_AI_RESPONSE_MODEL: "m-2",
        names.GEN_AI_RESPONSE_ID: "c-1",
        names.GEN_AI_RESPONSE_FINISH_REASONS: ("stop",),
        names.GEN_AI_USAGE_INPUT_TOKENS: 9,
        names.GEN_AI_USAGE_OUTPUT_TOKENS: 0,
        names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 4,
    }


def test_usage_that_is_not_sent_is_absent():
    read = reader()
    read.event(chunk({"content": "Hi"}), 1, recorder())
    assert not [name for name in read.facts if "usage" in name]


def test_tool_calls_are_complete_when_the_next_begins_or_the_turn_ends():
    read, marks = reader(), recorder()
    events = [
        (10, tool_delta(0, "call-1", "quote", "")),
        (20, tool_delta(0, None, None, '{"a":')),
        (30, tool_delta(0, None, None, "1}")),
        (40, tool_delta(1, "call-2", "sum", "{}")),
    ]
    for at_ns, delta in events:
        read.event(chunk(delta), at_ns, marks)
    read.event(chunk({}, "tool_calls"), 50, marks)
    assert marks.finish(60, StreamEnd.COMPLETE).tool_calls == (
        ToolCall("call-1", 30),
        ToolCall("call-2", 40),
    )


def test_a_tool_call_that_is_cut_off_is_not_complete():
    read, marks = reader(), recorder()
    read.event(chunk(tool_delta(0, "call-1", "quote", '{"a":')), 10, marks)
    assert marks.finish(60, StreamEnd.CLOSED_EARLY).tool_calls == ()


def test_what_the_call_asks_for():
    request = reader().request
    assert (request.model, request.streamed) == ("m", True)
    assert (request.server_address, request.server_port) == ("127.0.0.1", 443)


def choices(*deltas):
    """A chunk with one delta for each of several choices."""
    every = [{"index": index, "delta": delta} for index, delta in enumerate(deltas)]
    return ChatCompletionChunk.construct(id="c-1", model="m-2", created=1, choices=every)


@pytest.mark.parametrize("deltas", [("text", "call"), ("call", "text"), ("call", "refusal")])
def test_what_is_visible_in_one_choice_counts_before_a_tool_call_in_another(deltas):
    known = {
        "text": {"content": "Hi"},
        "refusal": {"refusal": "No"},
        "call": tool_delta(0, "a", "f"),
    }
    kind = reader().event(choices(*(known[each] for each in deltas)), 1, recorder())
    assert kind is (ContentKind.REFUSAL if "refusal" in deltas else ContentKind.TEXT)


def test_a_choice_without_a_delta_is_read_on():
    read = reader()
    choice = {"index": 0, "content_filter_offsets": {"check_offset": 1}, "finish_reason": "stop"}
    event = ChatCompletionChunk.construct(id="c-1", model="m-2", created=1, choices=[choice])
    assert read.event(event, 1, recorder()) is None
    assert read.facts[names.GEN_AI_RESPONSE_FINISH_REASONS] == ("stop",)


def test_a_tool_call_beside_text_is_read_too():
    read, marks = reader(), recorder()
    delta = {"content": "Hi", **tool_delta(0, "call-1", "quote", "{}")}
    assert read.event(chunk(delta, "tool_calls"), 10, marks) is ContentKind.TEXT
    assert marks.finish(60, StreamEnd.COMPLETE).tool_calls == (ToolCall("call-1", 10),)


@pytest.mark.parametrize("index", [0, None], ids=["all 0", "none"])
def test_tool_calls_that_are_not_counted_are_told_apart_by_name_and_id(index):
    read, marks = reader(), recorder()
    begun = tool_delta(index, "call-1", "quote", "")
    grown = tool_delta(index, "made up anew", None, "{}")
    other = tool_delta(index, "call-2", "quote", "{}")
    for at_ns, delta in ((10, begun), (20, grown), (30, other)):
        read.event(chunk(delta), at_ns, marks)
    read.event(chunk({}, "tool_calls"), 40, marks)
    assert marks.finish(60, StreamEnd.COMPLETE).tool_calls == (
        ToolCall("call-1", 20),
        ToolCall("call-2", 30),
    )


def test_a_finish_reason_that_is_not_sent_is_absent():
    read = reader()
    message = {"role": "assistant", "content": "Hi"}
    choice = {"index": 0, "message": message, "finish_reason": None}
    read.response(ChatCompletion.construct(id="c-1", model="m-2", choices=[choice]), recorder())
    assert names.GEN_AI_RESPONSE_FINISH_REASONS not in read.facts
