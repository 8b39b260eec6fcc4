"""Which requests of a gateway ask a model for something, and whom, by where they go."""

import pytest

from llmlat_otel.core.endpoints import is_stream_of_events, request_to
from llmlat_semconv.values import Boundary, OperationName

ASKED = {
    "/v1/chat/completions": OperationName.CHAT,
    "/chat/completions/": OperationName.CHAT,
    "/openai/deployments/d/chat/completions": OperationName.CHAT,
    "/v1/responses": OperationName.CHAT,
    "/openai/responses": OperationName.CHAT,
    "/anthropic/v1/messages": OperationName.CHAT,
    "/v1/completions": OperationName.TEXT_COMPLETION,
    "/v1/embeddings": OperationName.EMBEDDINGS,
    "/v1beta/models/gemini-3:generateContent": OperationName.GENERATE_CONTENT,
    "/v1beta/models/gemini-3:streamGenerateContent": OperationName.GENERATE_CONTENT,
    "/api/chat": OperationName.CHAT,
    "/api/generate": OperationName.TEXT_COMPLETION,
}


@pytest.mark.parametrize("path", ASKED)
def test_an_endpoint_of_a_model_is_known_by_the_end_of_its_path(path):
    request = request_to("POST", "model", 80, path)
    assert request is not None
    assert request.operation is ASKED[path]
    assert request.boundary is Boundary.GATEWAY
    assert (request.server_address, request.server_port) == ("model", 80)
    assert request.model is None, "it is in the body"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1/models",
        "/v1/chat/completions/c-1",
        "/v1/threads/t-1/messages",
        "/forms/f-1/responses",
        "/v1/responses/r-1/cancel",
        "/v1/audio/transcriptions",
        "/chatcompletions",
        "/v1beta/models/gemini-3:countTokens",
    ],
)
def test_another_is_none_of_a_models(path):
    assert request_to("POST", "model", 80, path) is None


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
def test_a_model_is_asked_by_post(method):
    assert request_to(method, "model", 80, "/v1/chat/completions") is None
    assert request_to("post", "model", 80, "/v1/chat/completions") is not None


@pytest.mark.parametrize(
    ("host", "provider"),
    [
        ("api.openai.com", "openai"),
        ("API.Anthropic.com", "anthropic"),
        ("mine.openai.azure.com", "azure.ai.openai"),
        ("europe-west4-aiplatform.googleapis.com", "gcp.vertex_ai"),
        ("api.openai.com.evil.example", None),
        ("127.0.0.1", None),
        (None, None),
    ],
)
def test_whose_api_it_is_is_known_by_its_host_or_not_at_all(host, provider):
    request = request_to("POST", host, None, "/v1/chat/completions")
    assert request is not None
    assert request.provider == provider


def test_one_endpoint_is_a_streams_by_its_name():
    stream = request_to("POST", "model", 80, "/v1beta/models/g:streamGenerateContent")
    whole = request_to("POST", "model", 80, "/v1beta/models/g:generateContent")
    assert stream is not None
    assert whole is not None
    assert (stream.streamed, whole.streamed) == (True, None)


@pytest.mark.parametrize(
    ("content_type", "is_stream"),
    [
        ("text/event-stream", True),
        ("Text/Event-Stream; charset=utf-8", True),
        ("application/x-ndjson", True),
        ("application/vnd.amazon.eventstream", True),
        ("application/json", False),
        ("application/jsonlines", False),
        ("", False),
        (None, False),
    ],
)
def test_a_response_says_in_its_head_that_it_is_a_stream(content_type, is_stream):
    assert is_stream_of_events(content_type) is is_stream
