"""openai: chat completions, responses, embeddings and text completions; one file an API."""

from llmlat_otel.instrumentors.openai.targets import TARGETS

__all__ = ["TARGETS"]
