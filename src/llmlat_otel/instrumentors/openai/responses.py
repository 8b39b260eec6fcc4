"""Responses of openai, whole and streamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from llmlat_otel.core.attributes import Attributes
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.wrapping import Wrapper
from llmlat_otel.instrumentors.openai.facts import (
    RESPONSE_USAGE,
    extra_of,
    read_extensions,
    read_identity,
    read_usage,
)
from llmlat_otel.instrumentors.openai.request import is_streamed, request_of, targets
from llmlat_semconv import attributes as names
from llmlat_semconv.values import ContentKind, OperationName

_DELTAS: Final = {
    "response.output_text.delta": ContentKind.TEXT,
    "response.refusal.delta": ContentKind.REFUSAL,
    "response.audio.delta": ContentKind.AUDIO,
    "response.audio.transcript.delta": ContentKind.AUDIO,
    "response.function_call_arguments.delta": ContentKind.TOOL_CALL,
    "response.custom_tool_call_input.delta": ContentKind.TOOL_CALL,
    "response.mcp_call_arguments.delta": ContentKind.TOOL_CALL,
    "response.shell_call_command.delta": ContentKind.TOOL_CALL,
}
_REASONING_DELTAS: Final = dict.fromkeys(
    ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"),
    ContentKind.REASONING,
)
_BEGINNINGS: Final = frozenset({"response.created", "response.in_progress", "response.queued"})
_UNENDED: Final = frozenset({"queued", "in_progress"})
_ENDS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_ERROR: Final = "error"
_ITEM_ADDED: Final = "response.output_item.added"
_ITEM_DONE: Final = "response.output_item.done"
_ARGUMENTS_DONE: Final = frozenset(
    {"response.function_call_arguments.done", "response.custom_tool_call_input.done"}
)
_CALL: Final = "_call"


class ResponseReader:
    """Reads one response.

    Args:
        instance: The `Responses` object.
        kwargs: Of the method.
        reasoning_is_content: Whether visible reasoning counts as content.

    Attributes:
        request: What the call asks for.
        facts: What the response has said so far.
        is_terminated: Whether its last event has come.
        is_whole: The same.
    """

    __slots__ = ("_deltas", "_tool_calls", "facts", "is_terminated", "is_whole", "request")

    def __init__(self, instance: Any, kwargs: dict[str, Any], reasoning_is_content: bool) -> None:
        self.request = request_of(instance, kwargs, OperationName.CHAT)
        self.facts: Attributes = {}
        self.is_terminated = self.is_whole = False
        self._deltas = {**_DELTAS, **_REASONING_DELTAS} if reasoning_is_content else _DELTAS
        self._tool_calls: dict[int, str | None] = {}

    def event(self, event: Any, at_ns: int, recorder: PhaseRecorder) -> ContentKind | None:
        """Read an event; what is useful in it, if anything."""
        kind = event.type
        content = self._deltas.get(kind)
        if content is not None:
            return content if event.delta else None
        if kind in _ENDS:
            self.is_terminated = self.is_whole = True
            self.response(event.response, recorder)
        elif kind == _ERROR:
            self.is_terminated = self.is_whole = True
            self._fail(event)
        elif kind in _BEGINNINGS:
            read_identity(event.response, self.facts)
        elif kind in _ARGUMENTS_DONE:
            self._complete(event.output_index, at_ns, recorder)
        elif kind in {_ITEM_ADDED, _ITEM_DONE}:
            return self._read_item(event, at_ns, recorder)
        return None

    def response(self, response: Any, recorder: PhaseRecorder) -> None:
        """Read a response that is there whole."""
        read_identity(response, self.facts)
        if response.usage is not None:
            read_usage(response.usage, RESPONSE_USAGE, recorder, self.facts)
        read_extensions(extra_of(response), None, recorder, self.facts)
        self._read_status(response)

    def _read_status(self, response: Any) -> None:
        """Why it ended, in the API's own words; one that goes on in the background has not."""
        status = response.status
        if isinstance(status, str) and status not in _UNENDED:
            details = response.incomplete_details
            reason = status if details is None else details.reason
            self.facts[names.GEN_AI_RESPONSE_FINISH_REASONS] = (str(reason or status),)
        if response.error is not None:
            self._fail(response.error)

    def _fail(self, error: Any) -> None:
        code = error.code
        self.facts[names.ERROR_TYPE] = code if code and isinstance(code, str) else _ERROR

    def _read_item(self, event: Any, at_ns: int, recorder: PhaseRecorder) -> ContentKind | None:
        """Read the beginning or the end of an item; a call that is the caller's to make has an id.

        Calls that the server makes itself have none, and nobody waits for their completion.
        """
        item, index = event.item, event.output_index
        if not item.type.endswith(_CALL):
            return None
        call_id, name = getattr(item, "call_id", None), getattr(item, "name", None)
        is_new = index not in self._tool_calls
        if is_new:
            self._tool_calls[index] = call_id if isinstance(call_id, str) else None
        if event.type == _ITEM_DONE:
            self._complete(index, at_ns, recorder)
        return ContentKind.TOOL_CALL if is_new and (name or call_id) else None

    def _complete(self, index: int, at_ns: int, recorder: PhaseRecorder) -> None:
        """A call's arguments are complete; said once."""
        call_id = self._tool_calls.get(index)
        if call_id is not None:
            self._tool_calls[index] = None
            recorder.tool_call(call_id, at_ns)


def _if_streamed(timing: Wrapper) -> Wrapper:
    """To follow a response that is being made is an inference; to fetch one is none."""

    def wrapper(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
        if guarded("openai", is_streamed, kwargs):
            return timing(wrapped, instance, args, kwargs)
        return wrapped(*args, **kwargs)

    return wrapper


_MODULE: Final = "openai.resources.responses.responses"
_BETA: Final = "openai.resources.beta.responses.responses"

TARGETS: Final = (
    *targets(_MODULE, ("Responses.create", "Responses.parse"), ResponseReader),
    *targets(_MODULE, ("Responses.retrieve",), ResponseReader, _if_streamed),
    *targets(_BETA, ("Responses.create",), ResponseReader),
    *targets(_BETA, ("Responses.retrieve",), ResponseReader, _if_streamed),
)
