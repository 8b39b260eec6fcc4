"""Embeddings of openai."""

from __future__ import annotations

from typing import Any, Final

from llmlat_otel.core.attributes import Attributes
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.instrumentors.openai.facts import COMPLETION_USAGE, read_identity, read_usage
from llmlat_otel.instrumentors.openai.request import request_of, targets
from llmlat_semconv.values import OperationName


class EmbeddingReader:
    """Reads the response of one request for embeddings.

    Args:
        instance: The `Embeddings` object.
        kwargs: Of the method.
        reasoning_is_content: Whether visible reasoning counts as content; there is none.

    Attributes:
        request: What the call asks for.
        facts: What the response has said.
        is_terminated: Whether it is there.
        is_whole: The same.
    """

    __slots__ = ("facts", "is_terminated", "is_whole", "request")

    def __init__(self, instance: Any, kwargs: dict[str, Any], reasoning_is_content: bool) -> None:
        del reasoning_is_content
        self.request = request_of(instance, kwargs, OperationName.EMBEDDINGS)
        self.facts: Attributes = {}
        self.is_terminated = self.is_whole = False

    def event(self, event: Any, at_ns: int, recorder: PhaseRecorder) -> None:
        """There are none."""
        del event, at_ns, recorder

    def response(self, response: Any, recorder: PhaseRecorder) -> None:
        """Read the response; its vectors are left alone."""
        self.is_terminated = self.is_whole = True
        read_identity(response, self.facts)
        read_usage(response.usage, COMPLETION_USAGE, recorder, self.facts)


TARGETS: Final = targets("openai.resources.embeddings", ("Embeddings.create",), EmbeddingReader)
