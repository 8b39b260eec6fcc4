"""openai: chat completions, whole and streamed, synchronous and not."""

from __future__ import annotations

from typing import Any, Final

from llmlat_otel.core.attributes import Attributes, Request
from llmlat_otel.core.call import timed
from llmlat_otel.core.instrumentor import Target
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.reported import read_llama_progress, read_llama_timings
from llmlat_semconv import attributes as names
from llmlat_semconv.values import ContentKind, OperationName

# Bound once: on Python 3.11 looking a member up takes as long as reading the clock twice.
_TEXT: Final = ContentKind.TEXT

_PORTS: Final = {"http": 80, "https": 443}

_USAGE: Final = (
    (names.GEN_AI_USAGE_INPUT_TOKENS, "prompt_tokens", None),
    (names.GEN_AI_USAGE_OUTPUT_TOKENS, "completion_tokens", None),
    (names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, "prompt_tokens_details", "cached_tokens"),
    (names.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS, "prompt_tokens_details", "cache_write_tokens"),
    (names.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS, "completion_tokens_details", "reasoning_tokens"),
)


class ChatReader:
    """Reads one chat completion.

    Args:
        instance: The `Completions` object.
        kwargs: Of `create`.
        reasoning_is_content: Whether visible reasoning counts as content.
    """

    __slots__ = ("_finish_reasons", "_is_known", "_reasoning", "_tool_calls", "facts", "request")

    def __init__(self, instance: Any, kwargs: dict[str, Any], reasoning_is_content: bool) -> None:
        url = instance._client.base_url
        model = kwargs.get("model")
        self.request = Request(
            operation=OperationName.CHAT,
            provider="openai",
            model=model if isinstance(model, str) else None,
            streamed=kwargs.get("stream") is True,
            server_address=url.host,
            server_port=url.port or _PORTS.get(url.scheme),
        )
        self.facts: Attributes = {}
        self._reasoning = reasoning_is_content
        self._is_known = False
        self._finish_reasons: dict[int, str] = {}
        self._tool_calls: dict[tuple[int, int], tuple[str | None, int]] = {}

    def event(self, chunk: Any, at_ns: int, recorder: PhaseRecorder) -> ContentKind | None:
        """Read a chunk; what is useful in it, if anything."""
        content = None
        for choice in chunk.choices or ():
            delta = choice.delta
            if delta is not None:  # Azure sends choices of filter results alone
                if delta.content and type(delta.content) is str:
                    content = _TEXT
                elif content is not _TEXT:
                    content = self._other_content(delta) or content
                if delta.tool_calls:
                    called = self._read_tool_calls(choice.index, delta.tool_calls, at_ns, recorder)
                    content = content or called
            if choice.finish_reason is not None:
                self._finish(choice, recorder)
        if not self._is_known or chunk.usage is not None:
            self._identify(chunk)
        extra = chunk.model_extra
        if extra:
            self._read_extra(extra, at_ns, recorder)
        return content

    def response(self, response: Any, recorder: PhaseRecorder) -> None:
        """Read a completion that came whole."""
        for choice in response.choices or ():
            if choice.finish_reason is not None:
                self._finish(choice, recorder)
        self._identify(response)
        if response.model_extra:
            self._read_extra(response.model_extra, None, recorder)

    def _other_content(self, delta: Any) -> ContentKind | None:
        if delta.refusal:
            return ContentKind.REFUSAL
        if delta.audio is not None and (delta.audio.data or delta.audio.transcript):
            return ContentKind.AUDIO
        call = delta.function_call
        if call is not None and (call.name or call.arguments):
            return ContentKind.TOOL_CALL
        if self._reasoning and (delta.model_extra or {}).get("reasoning_content"):
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
            if call_id is not None:
                recorder.tool_call(call_id, complete_ns)

    def _finish(self, choice: Any, recorder: PhaseRecorder) -> None:
        self._complete_tool_calls(choice.index, recorder)
        self._finish_reasons[choice.index] = choice.finish_reason
        reasons = tuple(str(self._finish_reasons[each]) for each in sorted(self._finish_reasons))
        self.facts[names.GEN_AI_RESPONSE_FINISH_REASONS] = reasons

    def _identify(self, response: Any) -> None:
        """Read model, id and usage; what is not sent is not known, and never 0."""
        self._is_known = True
        if response.model:
            self.facts[names.GEN_AI_RESPONSE_MODEL] = response.model
        if response.id:
            self.facts[names.GEN_AI_RESPONSE_ID] = response.id
        if response.usage is not None:
            self._read_usage(response.usage)

    def _read_usage(self, usage: Any) -> None:
        for name, key, detail in _USAGE:
            count = getattr(usage, key, None)
            count = count if detail is None else getattr(count, detail, None)
            if isinstance(count, int):
                self.facts[name] = count

    def _read_extra(self, extra: Any, at_ns: int | None, recorder: PhaseRecorder) -> None:
        """Read what an engine adds to the API."""
        if "timings" in extra:
            read_llama_timings(extra["timings"], recorder, self.facts)
        if "prompt_progress" in extra and at_ns is not None:
            read_llama_progress(at_ns, recorder)


TARGETS: Final = tuple(
    Target(module, attribute, timed(f"openai {attribute}", ChatReader))
    for module in ("openai.resources.chat.completions.completions",)
    for attribute in ("Completions.create", "AsyncCompletions.create")
)
