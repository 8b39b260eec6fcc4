"""Endpoints: which requests ask a model for something, by where they go; none of them is read."""

from __future__ import annotations

import re
from typing import Final

from llmlat_otel.core.attributes import Request
from llmlat_semconv.values import Boundary, OperationName

_CHAT: Final = OperationName.CHAT.value
_COMPLETION: Final = OperationName.TEXT_COMPLETION.value
_EMBEDDINGS: Final = OperationName.EMBEDDINGS.value
_CONTENT: Final = OperationName.GENERATE_CONTENT.value

_PATHS: Final = (
    (r"/chat/completions", _CHAT),  # OpenAI, and whoever has its API
    (r"/(?:v\d\w*|openai)/responses", _CHAT),  # not the responses to a form
    (r"/v\d\w*/messages", _CHAT),  # Anthropic; not the messages of a thread
    (r"/completions", _COMPLETION),
    (r"/embeddings", _EMBEDDINGS),
    (r":(?:stream)?[gG]enerateContent", _CONTENT),  # Gemini
    (r"/api/chat", _CHAT),  # Ollama
    (r"/api/generate", _COMPLETION),
)
"""How the path of an endpoint ends, and what is asked there, always by POST; the first counts."""

_ENDPOINT: Final = re.compile(f"(?:{'|'.join(f'({path})' for path, _ in _PATHS)})/?$", re.ASCII)
_OPERATIONS: Final = tuple(OperationName(operation) for _, operation in _PATHS)

_PROVIDERS: Final = {
    "api.anthropic.com": "anthropic",
    "api.cohere.com": "cohere",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral_ai",
    "api.openai.com": "openai",
    "api.perplexity.ai": "perplexity",
    "api.x.ai": "x_ai",
    "generativelanguage.googleapis.com": "gcp.gemini",
}
"""OpenTelemetry's names for whose API it is, by the host; behind any other may be anybody's."""

_PROVIDERS_BY_DOMAIN: Final = (
    (".openai.azure.com", "azure.ai.openai"),
    (".services.ai.azure.com", "azure.ai.inference"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
)

_STREAMS: Final = re.compile(
    r"text/event-stream|application/(?:x-ndjson|jsonl|json-seq|vnd\.amazon\.eventstream)\b", re.I
)
_STREAMED_PATH: Final = ":streamGenerateContent"


def request_to(method: str, host: str | None, port: int | None, path: str) -> Request | None:
    """What a gateway asks for with a request; None if it goes to no endpoint of a model.

    Args:
        method: Of HTTP.
        host: Where it goes.
        port: The port there.
        path: The path there, without its query.
    """
    if method.upper() != "POST":
        return None
    found = _ENDPOINT.search(path)
    if found is None or found.lastindex is None:
        return None
    return Request(
        operation=_OPERATIONS[found.lastindex - 1],
        provider=_provider(host or ""),
        model=None,
        streamed=True if _STREAMED_PATH in found.group() else None,
        server_address=host,
        server_port=port,
        boundary=Boundary.GATEWAY,
    )


def _provider(host: str) -> str | None:
    host = host.lower()
    known = _PROVIDERS.get(host)
    if known is not None:
        return known
    return next((name for end, name in _PROVIDERS_BY_DOMAIN if host.endswith(end)), None)


def is_stream_of_events(content_type: object) -> bool:
    """Whether a response says that it is a stream."""
    return isinstance(content_type, str) and _STREAMS.match(content_type.strip()) is not None
