"""ollama: chat, text completions and embeddings, whole and streamed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from llmlat_otel.core.attributes import Attributes, Request
from llmlat_otel.core.call import timed
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.instrumentor import Target
from llmlat_otel.core.late_streams import timed_when_pulled
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.reported import read_ollama_durations, token_count
from llmlat_otel.core.wrapping import Wrapper
from llmlat_semconv import attributes as names
from llmlat_semconv.values import ContentKind, OperationName

_OLLAMA: Final = "ollama"
_PORTS: Final = {"http": 80, "https": 443}

_USAGE: Final = (
    # Of the whole prompt, or of what was not cached: that depends on the version.
    (names.GEN_AI_USAGE_INPUT_TOKENS, "prompt_eval_count"),
    (names.GEN_AI_USAGE_OUTPUT_TOKENS, "eval_count"),
)

_TEXT: Final = ContentKind.TEXT

Said = Callable[[Any], tuple[Any, Any, Any]]
"""What a chunk says: text, thinking, tool calls."""


def _in_chat(chunk: Any) -> tuple[Any, Any, Any]:
    message = chunk.message
    return message.content, message.thinking, message.tool_calls


def _in_completion(chunk: Any) -> tuple[Any, Any, Any]:
    return chunk.response, chunk.thinking, None


def _in_embeddings(_: Any) -> tuple[Any, Any, Any]:
    return None, None, None


class Reader:
    """Reads one call. Its chunks have the form of the whole, and the last one says how it went.

    Args:
        operation: What is asked for.
        said: Finds what a chunk says.
        args: Of the method; all that is read but the model can be given by name only.
        instance: The client.
        kwargs: Of the method.
        reasoning_is_content: Whether visible reasoning counts as content.

    Attributes:
        request: What the call asks for.
        facts: What the response has said so far.
        is_terminated: Whether its last chunk has come.
        is_whole: The same.
    """

    __slots__ = ("_reasoning", "_said", "facts", "is_terminated", "is_whole", "request")

    def __init__(
        self,
        operation: OperationName,
        said: Said,
        args: tuple[Any, ...],
        instance: Any,
        kwargs: dict[str, Any],
        reasoning_is_content: bool,
    ) -> None:
        self.request = _request(
            operation, args[0] if args else kwargs.get("model"), instance, kwargs
        )
        self.facts: Attributes = {}
        self.is_terminated = self.is_whole = False
        self._said = said
        self._reasoning = reasoning_is_content

    def event(self, chunk: Any, at_ns: int, recorder: PhaseRecorder) -> ContentKind | None:  # noqa: ARG002
        """Read a chunk; what is useful in it, if anything."""
        if chunk.done:
            self.response(chunk, recorder)
        elif not self.facts:
            self._read_model(chunk)
        text, thinking, tool_calls = self._said(chunk)
        if text:
            return _TEXT
        if tool_calls:
            return ContentKind.TOOL_CALL
        return ContentKind.REASONING if thinking and self._reasoning else None

    def response(self, response: Any, recorder: PhaseRecorder) -> None:
        """Read a response that came whole, or the last chunk of one."""
        self.is_terminated = self.is_whole = True
        self._read_model(response)
        reason = response.done_reason
        if reason and isinstance(reason, str):
            self.facts[names.GEN_AI_RESPONSE_FINISH_REASONS] = (reason,)
        # What was not sent is None there.
        said = {key: value for key, value in vars(response).items() if value is not None}
        for name, key in _USAGE:
            count = token_count(said.get(key))
            if count is not None:
                self.facts[name] = count
        read_ollama_durations(said, recorder, self.facts)

    def _read_model(self, response: Any) -> None:
        model = response.model
        if model and isinstance(model, str):
            self.facts[names.GEN_AI_RESPONSE_MODEL] = model


def _request(
    operation: OperationName, model: Any, instance: Any, kwargs: dict[str, Any]
) -> Request:
    url = instance._client.base_url
    return Request(
        operation=operation,
        provider=_OLLAMA,
        model=model if isinstance(model, str) else None,
        streamed=bool(kwargs.get("stream")),
        server_address=url.host,
        server_port=url.port or _PORTS.get(url.scheme),
    )


def _timed(target: str, operation: OperationName, said: Said) -> Wrapper:
    """What is streamed is sent when it is first pulled; all else at once."""

    def wrapper(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
        is_late = guarded(target, bool, kwargs.get("stream"))
        make = timed_when_pulled if is_late else timed
        timing = guarded(target, make, target, partial(Reader, operation, said, args[:1]))
        if timing is None:
            return wrapped(*args, **kwargs)
        return timing(wrapped, instance, args, kwargs)

    return wrapper


TARGETS: Final = tuple(
    Target(module, f"{owner}{method}", _timed(f"{_OLLAMA} {owner}{method}", operation, said))
    # Functions of the package are methods of a client of its own, bound as it is imported.
    for module, owner in (
        ("ollama._client", "Client."),
        ("ollama._client", "AsyncClient."),
        ("ollama", ""),
    )
    for method, operation, said in (
        ("chat", OperationName.CHAT, _in_chat),
        ("generate", OperationName.TEXT_COMPLETION, _in_completion),
        ("embed", OperationName.EMBEDDINGS, _in_embeddings),
    )
)
