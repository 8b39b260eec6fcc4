"""What openai answers, made as its client makes it: nothing is checked, anything may be absent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from openai.types.chat import ChatCompletionChunk
from openai.types.responses import Response

from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.recording import Anchor

URL = SimpleNamespace(host="127.0.0.1", port=None, scheme="https")


def instance_of(client_class: type = SimpleNamespace, **client: Any) -> Any:
    """An object with methods, and its client."""
    made = client_class()
    vars(made).update(base_url=URL, **client)
    return SimpleNamespace(_client=made)


INSTANCE = instance_of()


def recorder() -> PhaseRecorder:
    return PhaseRecorder(0, Anchor(0, 0, 0), 1)


def chunk(
    delta: dict[str, Any] | None = None,
    finish_reason: str | None = None,
    index: int = 0,
    **others: Any,
) -> ChatCompletionChunk:
    choices = [{"index": index, "delta": delta, "finish_reason": finish_reason}]
    said = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "m-2"}
    return ChatCompletionChunk.construct(
        **{**said, "choices": [] if delta is None else choices, **others}
    )


def response(status: str | None = "completed", **more: Any) -> Response:
    return Response.construct(id="r-1", model="m-2", output=[], status=status, **more)
