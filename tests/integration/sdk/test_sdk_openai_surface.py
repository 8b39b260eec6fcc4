"""Every entry point of openai, of this version and of an old one: one span for each request."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from llmlat_otel.testing import Recorded
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import (
    Phase,
    reported_duration_attribute,
    reported_evidence_attribute,
)
from tests.integration.sdk.openai_server import Server
from tests.integration.sdk.openai_surface import (
    ASK,
    BETA_RESPONSES,
    CHAT,
    RESPONSES,
    Surface,
    called,
    called_async,
)

ROOT = Path(__file__).parents[3]
OLD = Path(sys.prefix) / "peers" / "openai-1"

EVERYTHING = {**CHAT, **RESPONSES, **BETA_RESPONSES}
STREAMED = {each for each in EVERYTHING if "stream" in each}
OPERATIONS = {"completions": "text_completion", "embeddings": "embeddings"}


@pytest.fixture
def surface(server: Server) -> Iterator[Server]:
    server.RequestHandlerClass = Surface
    yield server
    Surface.said = ()


def expected(kind: str) -> dict[str, Any]:
    """What is to be known of a call."""
    api = kind.partition(".")[0]
    model = "" if "retrieve" in kind or "there" in kind else " m"
    found: dict[str, Any] = {
        "spans": [OPERATIONS.get(api, "chat") + model],
        "requests": 1,
        names.GEN_AI_RESPONSE_MODEL: "m-2",
        names.GEN_AI_USAGE_INPUT_TOKENS: 3,
        names.GEN_AI_USAGE_OUTPUT_TOKENS: 2,
    }
    if api != "embeddings":
        reason = "completed" if "responses" in kind else "stop"
        found[names.GEN_AI_RESPONSE_FINISH_REASONS] = [reason]
    if kind in STREAMED:
        found[names.LLMLAT_STREAM_END] = "complete"
        found[names.LLMLAT_RESPONSE_FIRST_CONTENT_KIND] = "text"
    return found


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("kind", EVERYTHING)
def test_wr_09_each_entry_point_is_one_span_for_one_request(
    surface: Server, record: Recorded, kind: str, is_async: bool
) -> None:
    sync, asynchronous = EVERYTHING[kind]
    found = called_async(surface, asynchronous) if is_async else called(surface, sync)
    assert found == expected(kind)


@pytest.mark.parametrize("api", ["responses", "beta"])
def test_wr_09_to_fetch_a_response_that_is_there_is_no_inference(
    surface: Server, record: Recorded, api: str
) -> None:
    def fetch(client: Any) -> None:
        (client.beta.responses if api == "beta" else client.responses).retrieve("r-1")

    assert called(surface, fetch) == {"spans": [], "requests": 1}


def test_every_entry_point_of_an_old_version_is_one_span_for_one_request() -> None:
    program = [sys.executable, "-W", "error", "-m", "tests.integration.sdk.openai_surface"]
    path = os.pathsep.join([str(OLD), str(ROOT)])
    done = subprocess.run(
        program,
        env={**os.environ, "PYTHONPATH": path},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    said = json.loads(done.stdout)
    assert said["version"].startswith("1.")
    assert said["version"] != openai.__version__
    assert said["found"] == {kind: [expected(kind)] * 2 for kind in CHAT}
    assert said["faults"] == {}


def operation(record: Recorded) -> dict[str, Any]:
    (span,) = [each for each in record.spans if each.name == "chat m"]
    return dict(span.attributes or {})


def test_azure(surface: Server, record: Recorded) -> None:
    endpoint = surface.url.removesuffix("/v1")
    with openai.AzureOpenAI(azure_endpoint=endpoint, api_key="k", api_version="v") as client:
        client.chat.completions.create(**ASK)
    attributes = operation(record)
    assert attributes[names.GEN_AI_PROVIDER_NAME] == "azure.ai.openai"
    assert attributes[names.SERVER_PORT] == surface.server_port
    assert "phase wait" in [each.name for each in record.spans]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_what_the_head_says_is_known_of_the_call(
    surface: Server, record: Recorded, streamed: bool
) -> None:
    Surface.said = (("OpenAI-Processing-MS", "12"), ("x-envoy-upstream-service-time", "13"))
    with openai.OpenAI(base_url=surface.url, api_key="k") as client:
        answer = client.chat.completions.create(**ASK, stream=streamed)
        if streamed:
            list(answer)
    attributes = operation(record)
    assert attributes[names.LLMLAT_REPORTED_PROCESSING_DURATION] == 0.012
    assert attributes[reported_duration_attribute(Phase.UPSTREAM)] == 0.013
    assert attributes[reported_evidence_attribute(Phase.UPSTREAM)] == "bounded"


def test_a_failure_within_a_stream_of_events_is_the_calls(
    surface: Server, record: Recorded
) -> None:
    error = {"type": "error", "code": "server_error", "message": "no", "sequence_number": 1}
    surface.response_events = (surface.response_events[0], error)
    with openai.OpenAI(base_url=surface.url, api_key="k") as client:
        assert len(list(client.responses.create(model="m", input="q", stream=True))) == 2
    attributes = operation(record)
    assert attributes[names.ERROR_TYPE] == "server_error"
    assert attributes[names.LLMLAT_STREAM_END] == "complete"
