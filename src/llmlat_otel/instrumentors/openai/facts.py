"""What a response of openai says of itself, as facts for the operation span."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from llmlat_otel.core.attributes import Attributes
from llmlat_otel.core.recorder import PhaseRecorder
from llmlat_otel.core.reported import (
    read_dynamo_timing,
    read_llama_progress,
    read_llama_timings,
    read_localai_timings,
    read_vllm_metrics,
    token_count,
)
from llmlat_semconv import attributes as names

Usage = tuple[tuple[str, str, str | None], ...]
"""Where in `usage` a count is: attribute, key, and the key within, where it is a detail."""

COMPLETION_USAGE: Final[Usage] = (
    (names.GEN_AI_USAGE_INPUT_TOKENS, "prompt_tokens", None),
    (names.GEN_AI_USAGE_OUTPUT_TOKENS, "completion_tokens", None),
    (names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, "prompt_tokens_details", "cached_tokens"),
    (names.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS, "prompt_tokens_details", "cache_write_tokens"),
    (names.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS, "completion_tokens_details", "reasoning_tokens"),
)
RESPONSE_USAGE: Final[Usage] = (
    (names.GEN_AI_USAGE_INPUT_TOKENS, "input_tokens", None),
    (names.GEN_AI_USAGE_OUTPUT_TOKENS, "output_tokens", None),
    (names.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, "input_tokens_details", "cached_tokens"),
    (names.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS, "input_tokens_details", "cache_write_tokens"),
    (names.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS, "output_tokens_details", "reasoning_tokens"),
)

EXTRA: Final = "__pydantic_extra__"
"""Where a model keeps what was sent beyond the API; its `model_extra` takes three times as long."""

_EXTENSIONS: Final = frozenset({"metrics", "nvext", "prompt_progress", "timings"})


def read_identity(response: Any, facts: Attributes) -> bool:
    """Read model and id; whether both are known. Azure's first chunk has them empty."""
    model, response_id = getattr(response, "model", None), getattr(response, "id", None)
    if model and isinstance(model, str):
        facts[names.GEN_AI_RESPONSE_MODEL] = model
    if response_id and isinstance(response_id, str):
        facts[names.GEN_AI_RESPONSE_ID] = response_id
    return names.GEN_AI_RESPONSE_MODEL in facts and names.GEN_AI_RESPONSE_ID in facts


def read_usage(usage: Any, where: Usage, recorder: PhaseRecorder, facts: Attributes) -> None:
    """Read token counts: the last word counts, and what is not in it stays as it was said before.

    What is never sent is not known, and never 0.
    """
    for name, key, detail in where:
        count = getattr(usage, key, None)
        count = token_count(count if detail is None else getattr(count, detail, None))
        if count is not None:
            facts[name] = count
    read_localai_timings(extra_of(usage), recorder, facts)


def extra_of(model: Any) -> Mapping[str, Any]:
    """What was sent beyond the API."""
    extra: Mapping[str, Any] | None = getattr(model, EXTRA, None)
    return extra or {}


def read_extensions(
    extra: Mapping[str, Any], at_ns: int | None, recorder: PhaseRecorder, facts: Attributes
) -> None:
    """Read what an engine adds to the API.

    Args:
        extra: What was sent beyond it.
        at_ns: When it arrived; None if it came whole.
        recorder: Is told phases.
        facts: Is told counts.
    """
    if _EXTENSIONS.isdisjoint(extra):
        return
    if "timings" in extra:
        read_llama_timings(extra["timings"], recorder, facts)
    if "metrics" in extra:
        read_vllm_metrics(extra["metrics"], recorder, facts)
    if isinstance(extra.get("nvext"), Mapping):
        read_dynamo_timing(extra["nvext"].get("timing"), recorder, facts)
    if "prompt_progress" in extra and at_ns is not None:
        read_llama_progress(at_ns, recorder)


class Choices:
    """Why the choices of a completion have ended, of those that have begun and were asked for.

    Args:
        asked: How many were asked for. Some servers give one, whatever is asked of them.

    Attributes:
        are_several: Whether it is worth being told of each that has begun.
    """

    __slots__ = ("_asked", "_begun", "_reasons", "are_several")

    def __init__(self, asked: int) -> None:
        self.are_several = asked > 1
        self._asked = asked
        self._begun: set[int] = set()
        self._reasons: dict[int, str] = {}

    def begun(self, choice: Any) -> None:
        """Some of one has come."""
        self._begun.add(_index(choice))

    def ended(self, choice: Any, facts: Attributes) -> bool:
        """Read why a choice ended, if it has; whether it has.

        Args:
            choice: Of a completion, or of a chunk.
            facts: Is told all reasons, in the order of the choices.
        """
        reason = choice.finish_reason
        if not isinstance(reason, str):
            return False
        reasons = self._reasons
        reasons[_index(choice)] = reason
        ordered = tuple(reasons[each] for each in sorted(reasons))
        facts[names.GEN_AI_RESPONSE_FINISH_REASONS] = ordered
        return True

    @property
    def is_terminated(self) -> bool:
        """Whether all that have begun have ended."""
        return bool(self._reasons) and self._begun <= self._reasons.keys()

    @property
    def is_whole(self) -> bool:
        """Whether all that were asked for have ended."""
        return self.is_terminated and len(self._reasons) >= self._asked


def _index(choice: Any) -> int:
    index = choice.index
    return index if type(index) is int else 0
