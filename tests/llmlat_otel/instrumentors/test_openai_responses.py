"""What counts as content in an event of a response, and what a response says of itself."""

import pytest
from openai._models import construct_type
from openai.types.responses import ResponseStreamEvent

from llmlat_otel.core.recording import Reported, ToolCall
from llmlat_otel.instrumentors.openai.responses import ResponseReader
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import ContentKind, Evidence, StreamEnd
from tests.llmlat_otel.instrumentors.answers import INSTANCE, recorder, response

USAGE = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 9,
}


def reader(*, reasoning_is_content=False):
    return ResponseReader(INSTANCE, {"model": "m", "stream": True}, reasoning_is_content)


def event(kind, **said):
    """As the client makes it of what was sent."""
    said = {"type": kind, "sequence_number": 1, "output_index": 0, **said}
    return construct_type(value=said, type_=ResponseStreamEvent)


def item(kind, state="added", **said):
    return event(f"response.output_item.{state}", item={"type": kind, "id": "i-1", **said})


CALL = {"call_id": "call-1", "name": "quote", "arguments": ""}
TEXT, TOOL_CALL = ContentKind.TEXT, ContentKind.TOOL_CALL


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (event("response.output_text.delta", delta="Hi"), TEXT),
        (event("response.output_text.delta", delta=""), None),
        (event("response.refusal.delta", delta="No"), ContentKind.REFUSAL),
        (event("response.audio.delta", delta="UklG"), ContentKind.AUDIO),
        (event("response.audio.transcript.delta", delta="Hi"), ContentKind.AUDIO),
        (event("response.function_call_arguments.delta", delta="{"), TOOL_CALL),
        (event("response.custom_tool_call_input.delta", delta="x"), TOOL_CALL),
        (event("response.mcp_call_arguments.delta", delta="{"), TOOL_CALL),
        (item("function_call", **CALL), TOOL_CALL),
        (item("mcp_call", name="quote", server_label="s"), TOOL_CALL),
        (item("web_search_call"), None),
        (item("message", role="assistant", content=[]), None),
        (item("function_call_output", call_id="call-1", output="4"), None),
        (event("response.reasoning_text.delta", delta="Hm"), None),
        (event("response.reasoning_summary_text.delta", delta="Hm"), None),
        (event("response.created", response=response("in_progress").to_dict()), None),
        (event("response.output_text.done", text="Hi"), None),
        (event("keepalive"), None),
        (event("response.of_a_later_version.delta", delta="Hi"), None),
    ],
    ids=lambda said: getattr(said, "type", None),
)
def test_content(said, expected):
    assert reader().event(said, 1, recorder()) is expected


@pytest.mark.parametrize("kind", ["response.reasoning_text", "response.reasoning_summary_text"])
def test_visible_reasoning_counts_where_it_is_declared_to_be_content(kind):
    read = reader(reasoning_is_content=True)
    assert read.event(event(f"{kind}.delta", delta="Hm"), 1, recorder()) is ContentKind.REASONING
    assert read.event(event(f"{kind}.delta", delta=""), 1, recorder()) is None


FACTS = {
    names.GEN_AI_RESPONSE_MODEL: "m-2",
    names.GEN_AI_RESPONSE_ID: "r-1",
    names.GEN_AI_RESPONSE_FINISH_REASONS: ("completed",),
    names.GEN_AI_USAGE_INPUT_TOKENS: 9,
    names.GEN_AI_USAGE_OUTPUT_TOKENS: 0,
    names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 4,
    names.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: 2,
}


def test_the_facts_of_a_stream_are_those_of_its_last_event():
    read, marks = reader(), recorder()
    read.event(event("response.created", response=response("in_progress").to_dict()), 1, marks)
    assert set(read.facts) == {names.GEN_AI_RESPONSE_MODEL, names.GEN_AI_RESPONSE_ID}
    assert not read.is_terminated
    whole = response(usage=USAGE).to_dict()
    read.event(event("response.completed", response=whole), 2, marks)
    assert read.facts == FACTS
    assert read.is_terminated


def test_the_facts_of_a_response_that_came_whole():
    read = reader()
    read.response(response(usage=USAGE), recorder())
    assert read.facts == FACTS


@pytest.mark.parametrize(
    ("status", "more", "reasons"),
    [
        ("completed", {}, ("completed",)),
        ("incomplete", {"incomplete_details": {"reason": "max_output_tokens"}}, None),
        ("incomplete", {}, ("incomplete",)),
        ("cancelled", {}, ("cancelled",)),
        ("queued", {}, ()),
        ("in_progress", {}, ()),
        (None, {}, ()),
    ],
)
def test_why_it_ended_is_in_the_words_of_the_api(status, more, reasons):
    read = reader()
    read.response(response(status, **more), recorder())
    expected = ("max_output_tokens",) if reasons is None else reasons
    assert read.facts.get(names.GEN_AI_RESPONSE_FINISH_REASONS, ()) == expected


@pytest.mark.parametrize(
    ("said", "error_type"),
    [
        (
            event(
                "response.failed",
                response=response("failed", error={"code": "server_error"}).to_dict(),
            ),
            "server_error",
        ),
        (event("error", code="rate_limit_exceeded", message="no"), "rate_limit_exceeded"),
        (event("error", code=None, message="no"), "error"),
    ],
    ids=["failed", "error", "error without a code"],
)
def test_a_failure_ends_the_stream_and_is_named_and_never_quoted(said, error_type):
    read = reader()
    read.event(said, 1, recorder())
    assert read.is_terminated
    assert read.facts[names.ERROR_TYPE] == error_type
    assert "no" not in read.facts.values()


@pytest.mark.parametrize("kind", ["incomplete", "failed", "completed"])
def test_each_last_event_terminates(kind):
    read = reader()
    read.event(event(f"response.{kind}", response=response(kind).to_dict()), 1, recorder())
    assert read.is_terminated


def test_a_tool_call_is_complete_when_its_arguments_are():
    read, marks = reader(), recorder()
    for at_ns, said in (
        (10, item("function_call", **CALL)),
        (20, event("response.function_call_arguments.delta", delta="{}")),
        (30, event("response.function_call_arguments.done", arguments="{}", item_id="i-1")),
        (40, item("function_call", "done", **CALL)),
    ):
        read.event(said, at_ns, marks)
    assert marks.finish(60, StreamEnd.COMPLETE).tool_calls == (ToolCall("call-1", 30),)


def test_a_tool_call_whose_arguments_do_not_stream_is_complete_with_its_item():
    read, marks = reader(), recorder()
    read.event(item("custom_tool_call", **{**CALL, "call_id": "call-1"}), 10, marks)
    read.event(item("custom_tool_call", "done", **CALL), 40, marks)
    read.event(event("response.output_item.done", output_index=1, item={**CALL_2}), 50, marks)
    assert marks.finish(60, StreamEnd.COMPLETE).tool_calls == (
        ToolCall("call-1", 40),
        ToolCall("call-2", 50),
    )


CALL_2 = {"type": "computer_call", "id": "i-2", "call_id": "call-2"}


def test_calls_that_the_server_makes_itself_are_nobodys_to_wait_for():
    read, marks = reader(), recorder()
    read.event(item("mcp_call", name="quote", server_label="s"), 10, marks)
    read.event(item("mcp_call", "done", name="quote", server_label="s"), 20, marks)
    assert marks.finish(60, StreamEnd.COMPLETE).tool_calls == ()


def test_what_vllm_says_of_itself():
    metrics = {"queue_time_ms": 1, "time_to_first_token_ms": 2, "generation_time_ms": 3}
    marks = recorder()
    whole = response(metrics=metrics).to_dict()
    reader().event(event("response.completed", response=whole), 1, marks)
    assert marks.finish(1).reported == tuple(
        Reported(phase, duration_ms * 1_000_000, Evidence.REPORTED)
        for phase, duration_ms in ((Phase.QUEUE, 1), (Phase.PREFILL, 2), (Phase.DECODE, 3))
    )
