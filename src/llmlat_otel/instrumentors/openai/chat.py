"""Chat completions of openai, whole and streamed."""

from __future__ import annotations

from typing import Any, Final

from llmlat_otel.core.attributes import Attributes
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.instrumentors.openai.facts import (
    COMPLETION_USAGE,
    EXTRA,
    Choices,
    extra_of,
    read_extensions,
    read_identity,
    read_usage,
)
from llmlat_otel.instrumentors.openai.request import asked_of, request_of, targets
from llmlat_semconv.values import ContentKind, OperationName

# Bound once: on Python 3.11 looking a member up takes as long as reading the clock twice.
_TEXT: Final = ContentKind.TEXT
_REASONING: Final = ("reasoning_content", "reasoning")


class ChatReader:
    """Reads one chat completion.

    Args:
        instance: The `Completions` object.
        kwargs: Of the method.
        reasoning_is_content: Whether visible reasoning counts as content.

    Attributes:
        request: What the call asks for.
        facts: What the response has said so far.
    """

    __slots__ = (
        "_are_several",
        "_choices",
        "_is_known",
        "_reasoning",
        "_tool_calls",
        "facts",
        "request",
    )

    def __init__(self, instance: Any, kwargs: dict[str, Any], reasoning_is_content: bool) -> None:
        self.request = request_of(instance, kwargs, OperationName.CHAT)
        self.facts: Attributes = {}
        self._choices = Choices(asked_of(kwargs))
        self._are_several = self._choices.are_several
        self._reasoning = reasoning_is_content
        self._is_known = False
        self._tool_calls: dict[tuple[int, int], tuple[str | None, int]] = {}

    @property
    def is_terminated(self) -> bool:
        """Whether all that have begun have said why they ended."""
        return self._choices.is_terminated

    @property
    def is_whole(self) -> bool:
        """Whether all that were asked for have."""
        return self._choices.is_whole

    def event(self, chunk: Any, at_ns: int, recorder: PhaseRecorder) -> ContentKind | None:
        """Read a chunk; what is useful in it, if anything."""
        content = None
        for choice in chunk.choices or ():
            if self._are_several:
                self._choices.begun(choice)
            delta = choice.delta
            if delta is not None:  # Azure sends choices of filter results alone
                text = delta.content
                if text and type(text) is str:
                    content = _TEXT
                elif content is not _TEXT:
                    content = self._other_content(delta) or content
                if delta.tool_calls:
                    called = self._read_tool_calls(choice.index, delta.tool_calls, at_ns, recorder)
                    content = content or called
            if choice.finish_reason is not None:
                self._finish(choice, recorder)
        if not self._is_known:
            self._is_known = read_identity(chunk, self.facts)
        usage = chunk.usage
        if usage is not None:
            read_usage(usage, COMPLETION_USAGE, recorder, self.facts)
        extra = getattr(chunk, EXTRA, None)  # Runs per chunk: a call of ours would take longer.
        if extra:
            read_extensions(extra, at_ns, recorder, self.facts)
        return content

    def response(self, response: Any, recorder: PhaseRecorder) -> None:
        """Read a completion that came whole."""
        for choice in response.choices or ():
            self._finish(choice, recorder)
        read_identity(response, self.facts)
        if response.usage is not None:
            read_usage(response.usage, COMPLETION_USAGE, recorder, self.facts)
        read_extensions(extra_of(response), None, recorder, self.facts)

    def _other_content(self, delta: Any) -> ContentKind | None:
        if delta.refusal:
            return ContentKind.REFUSAL
        audio = getattr(delta, "audio", None)
        if audio is not None and (audio.data or audio.transcript):
            return ContentKind.AUDIO
        call = delta.function_call
        if call is not None and (call.name or call.arguments):
            return ContentKind.TOOL_CALL
        if self._reasoning and any(extra_of(delta).get(each) for each in _REASONING):
            return ContentKind.REASONING
        return None

    def _read_tool_calls(
        self, index: int, deltas: Any, at_ns: int, recorder: PhaseRecorder
    ) -> ContentKind | None:
        """Note when each call's arguments last grew; one that begins completes those before it.

        Some servers count their calls wrongly or not at all: a name under another id is another
        call. An id alone is none: others make a new one up for each delta.
        """
        content = None
        for each in deltas:
            call_id, _ = self._tool_calls.get((index, each.index), (None, 0))
            name = each.function and each.function.name
            is_other = bool(name and each.id and each.id != call_id)
            if is_other or (index, each.index) not in self._tool_calls:
                self._complete_tool_calls(index, recorder)
                call_id = each.id
            self._tool_calls[index, each.index] = (call_id or each.id, at_ns)
            if name or (each.function and each.function.arguments):
                content = ContentKind.TOOL_CALL
        return content

    def _complete_tool_calls(self, index: int, recorder: PhaseRecorder) -> None:
        for key in [each for each in self._tool_calls if each[0] == index]:
            call_id, complete_ns = self._tool_calls.pop(key)
            if isinstance(call_id, str):
                recorder.tool_call(call_id, complete_ns)

    def _finish(self, choice: Any, recorder: PhaseRecorder) -> None:
        if self._choices.ended(choice, self.facts):
            self._complete_tool_calls(choice.index, recorder)


TARGETS: Final = (
    # Where chat completions are since 1.52, and where they were before.
    *targets(
        "openai.resources.chat.completions.completions",
        ("Completions.create", "Completions.parse"),
        ChatReader,
    ),
    *targets("openai.resources.chat.completions", ("Completions.create",), ChatReader),
    *targets("openai.resources.beta.chat.completions", ("Completions.parse",), ChatReader),
)
