"""Text completions of openai, the older API, whole and streamed."""

from __future__ import annotations

from typing import Any, Final

from llmlat_otel.core.attributes import Attributes
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.instrumentors.openai.facts import (
    COMPLETION_USAGE,
    Choices,
    extra_of,
    read_extensions,
    read_identity,
    read_usage,
)
from llmlat_otel.instrumentors.openai.request import asked_of, request_of, targets
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
    """

    __slots__ = ("_choices", "_is_known", "facts", "request")

    def __init__(self, instance: Any, kwargs: dict[str, Any], reasoning_is_content: bool) -> None:
        del reasoning_is_content
        self.request = request_of(instance, kwargs, OperationName.TEXT_COMPLETION)
        self.facts: Attributes = {}
        self._choices = Choices(asked_of(kwargs) * _prompts(kwargs))
        self._is_known = False

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
        return self._read(chunk, at_ns, recorder)

    def response(self, response: Any, recorder: PhaseRecorder) -> None:
        """Read a completion that came whole."""
        self._read(response, None, recorder)

    def _read(self, said: Any, at_ns: int | None, recorder: PhaseRecorder) -> ContentKind | None:
        content, choices = None, self._choices
        for choice in said.choices or ():
            if choices.are_several:
                choices.begun(choice)
            text = choice.text
            if text and type(text) is str:
                content = ContentKind.TEXT
            choices.ended(choice, self.facts)
        if not self._is_known:
            self._is_known = read_identity(said, self.facts)
        if said.usage is not None:
            read_usage(said.usage, COMPLETION_USAGE, recorder, self.facts)
        read_extensions(extra_of(said), at_ns, recorder, self.facts)
        return content


def _prompts(kwargs: dict[str, Any]) -> int:
    """How many prompts are to be completed; a list of numbers is one, as tokens."""
    prompt = kwargs.get("prompt")
    if type(prompt) is not list or not prompt or type(prompt[0]) is int:
        return 1
    return len(prompt)


TARGETS: Final = targets("openai.resources.completions", ("Completions.create",), CompletionReader)
