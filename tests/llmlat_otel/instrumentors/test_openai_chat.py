"""What counts as content in a chunk, and what a response says of itself."""

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from llmlat_otel.core.recording import Reported, ToolCall
from llmlat_otel.instrumentors.openai.chat import ChatReader
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import ContentKind, Evidence, StreamEnd
from tests.llmlat_otel.instrumentors.answers import INSTANCE, chunk, recorder


def reader(*, reasoning_is_content=False):
    return ChatReader(INSTANCE, {"model": "m", "stream": True}, reasoning_is_content)


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


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_visible_reasoning_counts_where_it_is_declared_to_be_content(name):
    event = chunk({name: "Hm"})
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


def test_a_turn_is_terminated_by_its_finish_reason():
    read, marks = reader(), recorder()
    for event in (chunk({"content": "Hi"}), chunk(None)):
        read.event(event, 1, marks)
        assert not read.is_terminated
    read.event(chunk({}, "stop"), 1, marks)
    assert read.is_terminated


def test_a_model_that_is_named_later_is_read_then():
    read, marks = reader(), recorder()
    for name in ("", "", "m-2", "m-3"):
        read.event(chunk({"content": "Hi"}, model=name, id=name and "c-1"), 1, marks)
    assert read.facts[names.GEN_AI_RESPONSE_MODEL] == "m-2"
    assert read.facts[names.GEN_AI_RESPONSE_ID] == "c-1"


METRICS = {"queue_time_ms": 12.5, "time_to_first_token_ms": 85, "generation_time_ms": 1240.5}


@pytest.mark.parametrize(
    ("more", "reported"),
    [
        (
            {"metrics": METRICS},
            {Phase.QUEUE: 12_500_000, Phase.PREFILL: 85_000_000, Phase.DECODE: 1_240_500_000},
        ),
        (
            {"usage": {"timing_prompt_processing": 3.5, "timing_token_generation": 9}},
            {Phase.PREFILL: 3_500_000, Phase.DECODE: 9_000_000},
        ),
        ({"obfuscation": "x", "service_tier": "default"}, {}),
    ],
    ids=["vLLM", "LocalAI", "nothing of an engine"],
)
def test_what_an_engine_adds_to_the_last_chunk(more, reported):
    read, marks = reader(), recorder()
    read.event(chunk(None, **more), 1, marks)
    assert marks.finish(1).reported == tuple(
        Reported(phase, duration_ns, Evidence.REPORTED) for phase, duration_ns in reported.items()
    )


def test_chunks_that_an_older_library_makes_lack_what_it_does_not_know():
    read, delta = reader(), ChatCompletionChunk.construct(content=None, refusal=None)
    vars(delta).update(function_call=None, tool_calls=None)
    assert not hasattr(delta, "audio")
    choice = ChatCompletionChunk.construct(index=0, finish_reason="stop", delta=delta)
    event = ChatCompletionChunk.construct(choices=[])
    vars(event).update(choices=[choice])
    assert read.event(event, 1, recorder()) is None
    assert read.is_terminated


@pytest.mark.parametrize("reason", [7, True, object()], ids=["number", "truth", "object"])
def test_what_is_no_text_is_no_finish_reason(reason):
    read = reader()
    read.event(chunk({}, reason), 1, recorder())
    assert names.GEN_AI_RESPONSE_FINISH_REASONS not in read.facts
    assert not read.is_terminated
