"""Text completions of openai, the older API, whole and streamed."""

from __future__ import annotations

from typing import Any, Final

from llmlat_otel.core.attributes import Attributes
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.instrumentors.openai.facts import (
    COMPLETION_USAGE,
    extra_of,
    read_extensions,
    read_finish_reason,
    read_identity,
    read_usage,
)
from llmlat_otel.instrumentors.openai.request import request_of, targets
from llmlat_semconv.values import ContentKind, OperationName


class CompletionReader:
    """Reads one text completion, whose chunks have the form of the whole.

    Args:
        instance: The `Completions` object.
        kwargs: Of the method.
        reasoning_is_content: Whether visible reasoning counts as content; there is none.

    Attributes:
        request: What the call asks for.
        facts: What the response has said so far.
        is_terminated: Whether it has said why it ended.
    """

    __slots__ = ("_finish_reasons", "_is_known", "facts", "is_terminated", "request")

    def __init__(self, instance: Any, kwargs: dict[str, Any], reasoning_is_content: bool) -> None:
        del reasoning_is_content
        self.request = request_of(instance, kwargs, OperationName.TEXT_COMPLETION)
        self.facts: Attributes = {}
        self.is_terminated = False
        self._is_known = False
        self._finish_reasons: dict[int, str] = {}

    def event(self, chunk: Any, at_ns: int, recorder: PhaseRecorder) -> ContentKind | None:
        """Read a chunk; what is useful in it, if anything."""
        return self._read(chunk, at_ns, recorder)

    def response(self, response: Any, recorder: PhaseRecorder) -> None:
        """Read a completion that came whole."""
        self._read(response, None, recorder)

    def _read(self, said: Any, at_ns: int | None, recorder: PhaseRecorder) -> ContentKind | None:
        content = None
        for choice in said.choices or ():
            text = choice.text
            if text and type(text) is str:
                content = ContentKind.TEXT
            if read_finish_reason(choice, self._finish_reasons, self.facts):
                self.is_terminated = True
        if not self._is_known:
            self._is_known = read_identity(said, self.facts)
        if said.usage is not None:
            read_usage(said.usage, COMPLETION_USAGE, recorder, self.facts)
        read_extensions(extra_of(said), at_ns, recorder, self.facts)
        return content


TARGETS: Final = targets("openai.resources.completions", ("Completions.create",), CompletionReader)
