"""What the emulated engine reads and writes: OpenAI chat completions with llama.cpp's extras."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from batch_loop import Tick

__all__ = ["BadRequestError", "Order", "Timings", "Writer", "read_order"]

MODEL = "emulated-adviser"
_TOKENS_PER_MESSAGE = 4
_DEFAULT_OUTPUT_TOKENS = 64
_FILLER = ("the", "account", "is", "in", "good", "standing", "and", "its", "orders", "are", "sent")

Json = dict[str, Any]


class BadRequestError(ValueError):
    """The body is not a chat completion request that this engine understands."""


@dataclass(frozen=True, slots=True)
class Order:
    """A request, and the reply that it will get: one piece of text for each output token."""

    prompt_tokens: int
    pieces: tuple[str, ...]
    tool: str | None
    finish_reason: str
    stream: bool
    include_usage: bool
    return_progress: bool


def read_order(body: object) -> Order:
    """The order that a request body stands for.

    Raises:
        BadRequestError: no messages, or a field of the wrong type.
    """
    try:
        return _order(body)
    except (AttributeError, KeyError, TypeError) as malformed:
        raise BadRequestError(f"malformed request: {malformed!r}") from malformed


def _order(body: object) -> Order:
    if not isinstance(body, dict):
        raise BadRequestError("the body must be a JSON object")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequestError("'messages' must be a list that is not empty")
    limit = _output_limit(body)
    tool, text = _reply(body, limit)
    pieces = tuple(_pieces(text))
    whole = "tool_calls" if tool else "stop"
    return Order(
        prompt_tokens=_prompt_tokens(messages, body.get("tools") or []),
        pieces=pieces[:limit],
        tool=tool,
        finish_reason=whole if len(pieces) < limit else "length",
        stream=bool(body.get("stream")),
        include_usage=bool((body.get("stream_options") or {}).get("include_usage")),
        return_progress=bool(body.get("return_progress")),
    )


def _output_limit(body: Json) -> int:
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or _DEFAULT_OUTPUT_TOKENS
    if not isinstance(limit, int) or limit < 1:
        raise BadRequestError("'max_tokens' must be a positive integer")
    return limit


def _prompt_tokens(messages: list[Json], tools: list[Json]) -> int:
    return sum(
        _TOKENS_PER_MESSAGE + len(list(_pieces(json.dumps(part)))) for part in (*messages, *tools)
    )


def _reply(body: Json, limit: int) -> tuple[str | None, str]:
    """The name of the tool that must be called, if any, and the text or arguments."""
    tool = _forced_tool(body)
    if tool is not None:
        return tool["name"], json.dumps(_example(tool.get("parameters") or {}))
    response_format = body.get("response_format") or {}
    if response_format.get("type") == "json_schema":
        return None, json.dumps(_example(response_format["json_schema"]["schema"]))
    return None, " ".join(_FILLER[i % len(_FILLER)] for i in range(limit))


def _forced_tool(body: Json) -> Json | None:
    functions: list[Json] = [tool["function"] for tool in body.get("tools") or []]
    tools = {function["name"]: function for function in functions}
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        choice = choice["function"]["name"]
        if choice not in tools:
            raise BadRequestError(f"'tool_choice' names {choice!r}, which is not among the tools")
        return tools[choice]
    if choice == "required" and not tools:
        raise BadRequestError("'tool_choice' is 'required', but there are no tools")
    return next(iter(tools.values())) if choice == "required" else None


def _example(schema: Mapping[str, Any]) -> Any:
    """The plainest value that a JSON schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "object":
        return {name: _example(field) for name, field in schema.get("properties", {}).items()}
    if kind in {"integer", "number"}:
        return schema.get("minimum", 1)
    return {"array": [], "boolean": True, "null": None}.get(kind, "text")


def _pieces(text: str) -> Iterator[str]:
    """Text cut the way that a tokenizer would: a word or a sign, with the blanks before it."""
    return (match.group() for match in re.finditer(r"\s*(?:\w+|[^\w\s])", text))


@dataclass(slots=True)
class Timings:
    """When a request was admitted and when its tokens came; the queue is not part of it."""

    admitted_ns: int = 0
    first_token_ns: int = 0
    last_token_ns: int = 0

    def note(self, tick: Tick) -> None:
        """Take in one tick of the batch loop."""
        if tick.prefilled == 0:
            self.admitted_ns = tick.at_ns
        if tick.sampled == 1:
            self.first_token_ns = tick.at_ns
        self.last_token_ns = tick.at_ns

    def since_admitted_ms(self, tick: Tick) -> float:
        """Milliseconds of prefill up to this tick."""
        return (tick.at_ns - self.admitted_ns) / 1e6

    def as_json(self, order: Order) -> Json:
        """The block ``timings`` of llama.cpp, in milliseconds."""
        return {
            "cache_n": 0,
            "prompt_n": order.prompt_tokens,
            "prompt_ms": (self.first_token_ns - self.admitted_ns) / 1e6,
            "predicted_n": len(order.pieces),
            "predicted_ms": (self.last_token_ns - self.first_token_ns) / 1e6,
        }


class Writer:
    """Writes the reply to one order, as chunks of a stream or as one completion."""

    def __init__(self, order: Order, reply_id: str, created_s: int) -> None:
        self._order = order
        self._reply_id = reply_id
        self._head = {"id": f"chatcmpl-{reply_id}", "created": created_s, "model": MODEL}

    def progress(self, tick: Tick, timings: Timings) -> Json:
        """How much of the prompt has been computed."""
        done = {
            "total": self._order.prompt_tokens,
            "cache": 0,
            "processed": tick.prefilled,
            "time_ms": round(timings.since_admitted_ms(tick)),
        }
        return self.role() | {"prompt_progress": done}

    def role(self) -> Json:
        """The empty first delta."""
        return self._chunk({"role": "assistant", "content": None})

    def piece(self, index: int) -> Json:
        """One output token: of the text, or of the arguments of the tool call."""
        text = self._order.pieces[index]
        if self._order.tool is None:
            return self._chunk({"content": text})
        call: Json = {"index": 0, "function": {"arguments": text}}
        if index == 0:
            call |= {"id": self._call_id, "type": "function"}
            call["function"]["name"] = self._order.tool
        return self._chunk({"tool_calls": [call]})

    def last(self, timings: Timings) -> Iterator[Json]:
        """The end of the stream; llama.cpp puts its timings into the very last chunk."""
        end = self._chunk({}, self._order.finish_reason)
        if self._order.include_usage:
            yield end
            end = self._chunk({}) | {"choices": [], "usage": self._usage()}
        yield end | {"timings": timings.as_json(self._order)}

    def completion(self, timings: Timings) -> Json:
        """The whole reply at once."""
        text = "".join(self._order.pieces)
        message: Json = {"role": "assistant", "content": text}
        if self._order.tool is not None:
            function = {"name": self._order.tool, "arguments": text}
            call = {"id": self._call_id, "type": "function", "function": function}
            message |= {"content": None, "tool_calls": [call]}
        choice = {"index": 0, "finish_reason": self._order.finish_reason, "message": message}
        return self._head | {
            "object": "chat.completion",
            "choices": [choice],
            "usage": self._usage(),
            "timings": timings.as_json(self._order),
        }

    @property
    def _call_id(self) -> str:
        return f"call-{self._reply_id}"

    def _chunk(self, delta: Json, finish_reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return self._head | {"object": "chat.completion.chunk", "choices": [choice]}

    def _usage(self) -> Json:
        prompt, output = self._order.prompt_tokens, len(self._order.pieces)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "total_tokens": prompt + output,
            "prompt_tokens_details": {"cached_tokens": 0},
        }
