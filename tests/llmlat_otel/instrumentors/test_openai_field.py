"""Reports from the field about first content and usage, through openai's own client.

The server is a script on a manual clock: what it sends is parsed as it would be of a real one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import httpx2
import openai
import pytest

import llmlat_otel
from llmlat_otel.core.guard import faults
from llmlat_otel.testing import MS, ManualClock, Recorded, recorded
from llmlat_semconv import attributes as names
from llmlat_semconv.metrics import GEN_AI_CLIENT_INFERENCE_TIME_PER_OUTPUT_CHUNK
from llmlat_semconv.phases import Phase

ENTERED_NS = ManualClock().now_ns()
PING = ": ping\n\n"


class Script:
    """Sends each line at its time, in ms since the call was entered.

    Attributes:
        clock: Is moved on by it.
        lines: What it sends: comments as they are, chunks as data.
        head_ms: When it sends its head.
        sent: The bodies that were sent to it.
    """

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.lines: Iterable[tuple[float, Any]] = ()
        self.head_ms = 0.0
        self.sent: list[bytes] = []

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request.content)
        trace = request.extensions["trace"]
        trace("http11.send_request_headers.started", {})
        trace("http11.send_request_body.complete", {})
        self._wait_until(self.head_ms)
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=self._body())

    def _body(self) -> Iterator[bytes]:
        for at_ms, said in self.lines:
            self._wait_until(at_ms)
            line = said if isinstance(said, str) else f"data: {json.dumps(said)}\n\n"
            yield line.encode()
        yield b"data: [DONE]\n\n"

    def _wait_until(self, at_ms: float) -> None:
        self.clock.advance(ENTERED_NS + round(at_ms * MS) - self.clock.now_ns())

    def read(self, *lines: tuple[float, Any], **asked: Any) -> int:
        """Ask it, and read all of the stream; how many chunks there were."""
        self.lines = lines
        transport = httpx2.MockTransport(self.answer)
        with openai.OpenAI(
            base_url="http://127.0.0.1/v1",
            api_key="k",
            http_client=httpx2.Client(transport=transport),
        ) as client:
            everything = {"model": "m", "messages": [], "stream": True, **asked}
            return len(list(client.chat.completions.create(**everything)))


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def record(script: Script) -> Iterator[Recorded]:
    llmlat_otel.instrument()
    before = faults()
    with recorded(clock=script.clock) as what:
        yield what
    llmlat_otel.uninstrument()
    assert faults() == before


def said(delta: Any = None, finish_reason: Any = None, **more: Any) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    fixed = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m-2"}
    return {**fixed, "choices": [] if delta is None else choices, **more}


def text(content: str, **more: Any) -> dict[str, Any]:
    return said({"content": content}, **more)


ROLE = said({"role": "assistant", "content": ""})
STOP = said({}, "stop")


def of_operation(record: Recorded) -> dict[str, Any]:
    (span,) = [each for each in record.tree() if each["name"].startswith("chat")]
    attributes: dict[str, Any] = span["attributes"]
    return attributes


def firsts_ms(record: Recorded) -> tuple[Any, Any]:
    """When the first event came, and when the first content."""
    attributes = of_operation(record)
    wanted = (
        names.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK,
        names.LLMLAT_RESPONSE_TIME_TO_FIRST_CONTENT,
    )
    found = [attributes.get(name) for name in wanted]
    first_chunk, first_content = [each and pytest.approx(each * 1_000) for each in found]
    return first_chunk, first_content


THINKING = said({"reasoning_content": "Hm"})


@pytest.mark.parametrize(
    ("lines", "firsts"),
    [
        ([(100, ROLE), (200, PING), (1_500, text("Hi")), (1_600, STOP)], (100, 1_500)),
        ([(1_000, THINKING), (40_000, text("Hi")), (41_000, STOP)], (1_000, 40_000)),
        ([(400, text("Hi")), (3_000, STOP)], (400, 400)),
        ([(400, ROLE), (3_000, STOP)], (400, None)),
        ([], (None, None)),
    ],
    ids=[
        "TF-01: a role and a keep-alive before it",
        "TF-04: hidden thinking before it",
        "TF-06: long before the end",
        "TF-06: never seen, and so absent",
        "TF-06: an empty stream",
    ],
)
def test_when_the_first_content_came(script, record, lines, firsts):
    script.read(*lines)
    assert firsts_ms(record) == firsts


def test_tf_05_a_role_before_the_prompt_is_computed(script, record):
    """VLLM sends it after the first chunk of a chunked prefill."""
    script.read(
        (900, ROLE), (2_200, text("A")), (2_220, text("B")), (2_240, text("C")), (2_240, STOP)
    )
    assert firsts_ms(record) == (900, 2_200)
    phases = {
        each["attributes"][names.LLMLAT_PHASE_NAME]: each["attributes"][names.LLMLAT_PHASE_DURATION]
        for each in record.tree()
        if each["name"].startswith("phase")
    }
    assert phases == {
        Phase.WAIT.value: pytest.approx(0.9),
        Phase.FIRST_CONTENT.value: pytest.approx(1.3),
        Phase.STREAM.value: pytest.approx(0.04),
    }, "the rest of the prefill is no gap between two tokens"


USAGE = {"prompt_tokens": 7, "completion_tokens": 101, "total_tokens": 108}


def test_tf_08_time_per_chunk_is_of_all_of_them_and_recorded_once(script, record):
    instants = [1_000 + 10 * index for index in range(100)] + [2_000]
    instants[99] = 1_999  # The last two are 1 ms apart.
    chunks = [text("a") for _ in instants]
    chunks[50]["usage"] = USAGE
    chunks[100]["choices"][0]["finish_reason"] = "stop"
    script.read(*zip(instants, chunks, strict=True))
    points = record.points()[GEN_AI_CLIENT_INFERENCE_TIME_PER_OUTPUT_CHUNK.name]
    assert [value for _, value in points] == [pytest.approx(0.010)]
    assert of_operation(record)[names.GEN_AI_USAGE_OUTPUT_TOKENS] == 101


def test_tf_09_the_head_is_no_token_and_the_last_chunk_is_read(script, record):
    script.head_ms = 50
    script.read((600, text("Hi")), (650, STOP), (660, said(usage=USAGE)))
    assert firsts_ms(record) == (600, 600)
    assert of_operation(record)[names.GEN_AI_USAGE_OUTPUT_TOKENS] == 101


FILTERED = {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}
CHOICE_OF_FILTERS = {"index": 0, "content_filter_offsets": {}, "finish_reason": None}


def test_wr_10_azures_first_chunk_has_no_choices(script, record):
    count = script.read(
        (100, said(model="", id="", **FILTERED)),
        (200, ROLE),
        (300, text("Hi")),
        (310, said(choices=[CHOICE_OF_FILTERS])),
        (400, STOP),
        (410, said(usage=USAGE)),
    )
    assert count == 6
    assert firsts_ms(record) == (100, 300)
    attributes = of_operation(record)
    assert attributes[names.GEN_AI_RESPONSE_MODEL] == "m-2"
    assert attributes[names.GEN_AI_USAGE_OUTPUT_TOKENS] == 101


def test_us_01_usage_is_the_providers_and_needs_no_tokenizer(script, record):
    script.read((1, text("Hi")), (2, STOP), (3, said(usage=USAGE)), model="unheard-of")
    attributes = of_operation(record)
    assert attributes[names.GEN_AI_REQUEST_MODEL] == "unheard-of"
    assert attributes[names.GEN_AI_USAGE_INPUT_TOKENS] == 7
    assert attributes[names.GEN_AI_USAGE_OUTPUT_TOKENS] == 101


NOTHING = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
PARTIAL = {"prompt_tokens": 7, "completion_tokens": None}
LATER = {"completion_tokens": 102, "prompt_tokens_details": {"cached_tokens": 0}}


@pytest.mark.parametrize(
    ("sent", "counts"),
    [
        ([], (None, None, None)),
        ([None, None], (None, None, None)),
        ([{}], (None, None, None)),
        ([NOTHING], (0, 0, None)),
        ([PARTIAL, USAGE], (7, 101, None)),
        ([USAGE, PARTIAL, None], (7, 101, None)),
        ([USAGE, LATER], (7, 102, 0)),
        ([{"prompt_tokens": "7", "completion_tokens": True}], (None, None, None)),
        ([{"prompt_tokens": -1, "completion_tokens": 2**63}], (None, None, None)),
    ],
    ids=[
        "US-03: none",
        "US-03: null",
        "US-03: empty",
        "US-03: a real 0",
        "US-03: partial, then whole",
        "US-03: whole, then partial and null",
        "US-03: the last word counts",
        "US-03: no numbers",
        "US-03: no counts",
    ],
)
def test_usage_is_what_was_sent_and_never_0_instead(script, record, sent, counts):
    script.read((1, text("Hi")), *((2, said(usage=usage)) for usage in sent), (3, STOP))
    attributes = of_operation(record)
    assert counts == (
        attributes.get(names.GEN_AI_USAGE_INPUT_TOKENS),
        attributes.get(names.GEN_AI_USAGE_OUTPUT_TOKENS),
        attributes.get(names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS),
    )


@pytest.mark.parametrize("asked", [{}, {"stream_options": {"include_usage": True}}])
def test_us_02_the_request_is_byte_for_byte_the_callers(script, record, asked):
    script.read((1, text("Hi")), (2, STOP), **asked)
    llmlat_otel.uninstrument()
    plain: list[bytes] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        plain.append(request.content)
        return ANSWER

    bare = httpx2.MockTransport(answer)
    client = openai.OpenAI(
        base_url="http://127.0.0.1/v1", api_key="k", http_client=httpx2.Client(transport=bare)
    )
    list(client.chat.completions.create(model="m", messages=[], stream=True, **asked))
    assert script.sent == plain
    assert names.GEN_AI_USAGE_OUTPUT_TOKENS not in of_operation(record)


ANSWER = httpx2.Response(
    200, headers={"content-type": "text/event-stream"}, content=b"data: [DONE]\n\n"
)
