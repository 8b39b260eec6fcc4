"""What others say in the context: silence, for everybody or for HTTP alone."""

import contextlib

import pytest
from openinference.instrumentation import suppress_tracing
from opentelemetry import context as contexts
from opentelemetry.instrumentation.utils import (
    suppress_http_instrumentation,
    suppress_instrumentation,
)
from opentelemetry.semconv_ai import SUPPRESS_LANGUAGE_MODEL_INSTRUMENTATION_KEY

from llmlat_otel.core.call import call_underway


@contextlib.contextmanager
def with_key(key, value=True):
    token = contexts.attach(contexts.set_value(key, value))
    try:
        yield
    finally:
        contexts.detach(token)


@pytest.mark.parametrize(
    "silence",
    [
        suppress_instrumentation,
        suppress_tracing,
        lambda: with_key("suppress_instrumentation"),
        lambda: with_key(SUPPRESS_LANGUAGE_MODEL_INSTRUMENTATION_KEY),
    ],
    ids=["OpenTelemetry", "OpenInference", "older instrumentations", "OpenLLMetry"],
)
def test_a_call_is_not_timed_where_silence_is_asked_for(library, record, silence):
    def create():
        assert call_underway() is None, "so that nothing is sent upstream"
        return "response"

    with silence():
        assert library.create(create, model="m") == "response"
    assert record.spans == ()
    assert record.points() == {}


def test_silence_about_http_is_none_about_the_call(library, record):
    """The phases of a call are no HTTP spans, and the peer still belongs to the call."""
    with suppress_http_instrumentation():
        library.create(library.send, model="m")
    assert [span["name"] for span in record.tree()][:2] == ["chat m", "phase prepare"]
    assert "traceparent" in library.headers[0]


def test_a_key_that_says_no_asks_for_nothing(library, record):
    with with_key("suppress_instrumentation", value=False):
        library.create(library.send, model="m")
    assert len(record.spans) > 0
