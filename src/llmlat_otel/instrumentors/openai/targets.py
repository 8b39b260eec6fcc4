"""The methods of openai that are timed; a version of it has some of them."""

from __future__ import annotations

from typing import Final

from llmlat_otel.instrumentors.openai import chat, completions, embeddings, responses

TARGETS: Final = (
    *completions.TARGETS,
    *embeddings.TARGETS,
    *responses.TARGETS,
    *chat.TARGETS,
)
