"""Four instrumentations beside ours, in either order: one inference span, and one trace."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from llmlat_semconv import attributes as names
from llmlat_semconv import metrics

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
OURS = "llmlat_otel"
SCOPES = {
    "genai": "opentelemetry.instrumentation.genai.openai",
    "openinference": "openinference.instrumentation.openai",
    "openllmetry": "opentelemetry.instrumentation.openai.v1",
    "httpx": "opentelemetry.instrumentation.httpx",
}
ORDERS = ("first", "last")
CALLS = ("chat", "chat_stream", "response", "response_stream", "embeddings", "retry")
WAYS_OUT = {"close": "closed_early", "leave_the_block": "closed_early", "drop": "abandoned"}
INFERENCES = {
    names.GEN_AI_OPERATION_NAME: {"chat", "embeddings"},
    names.OPENINFERENCE_SPAN_KIND: {"LLM", "EMBEDDING"},
    names.LLM_REQUEST_TYPE: {"chat", "completion", "embedding"},
}
RESULTS = {
    "chat": "ab",
    "chat_stream": 5,
    "response": "ab",
    "response_stream": 4,
    "embeddings": [0.5, 0.5],
    "retry": "ab",
    **dict.fromkeys(WAYS_OUT, "assistant"),
}


@pytest.fixture(scope="session")
def found():
    """What came of every cell: a program of its own, since not all peers clean up."""
    pairs = [each for peer in SCOPES for order in ORDERS for each in (peer, order)]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.integration.coexistence.cells", *pairs],
        cwd=ROOT,
        env={**inherited, "LLMLAT_PHASE_MIN": "0"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def makes_it_afterwards(peer, way):
    """OpenLLMetry makes the span of a response when that is there: none is current at any time."""
    return peer == "openllmetry" and way.startswith("response")


def every_cell(ways):
    return pytest.mark.parametrize(
        ("peer", "order", "way", "kind"),
        [
            pytest.param(peer, order, way, kind, id=f"{peer}, ours {order}: {way} {kind}")
            for peer in SCOPES
            for order in ORDERS
            for way in ways
            if not makes_it_afterwards(peer, way)
            for kind in ("sync", "async")
        ],
    )


def is_inference(span):
    return any(span["attributes"].get(name) in values for name, values in INFERENCES.items())


def the_inference(cell, peer):
    (span,) = filter(is_inference, cell["spans"])
    assert span["scope"] == (OURS if peer == "httpx" else SCOPES[peer])
    return span


def ancestors(span, spans):
    by_id = {each["id"]: each for each in spans}
    while span["parent"] in by_id:
        span = by_id[span["parent"]]
        yield span


def phases(cell):
    return [
        each["attributes"][names.LLMLAT_PHASE_NAME]
        for each in cell["spans"]
        if names.LLMLAT_PHASE_NAME in each["attributes"]
    ]


def said(cell, name):
    """Who says it, and what, on the span of the call or on that of its attempt."""
    return [each["attributes"][name] for each in cell["spans"] if name in each["attributes"]]


def check_that_nothing_went_wrong(cell):
    assert cell["faults"] == {}
    assert [each for each in cell["warnings"] if "llmlat" in each or "opentelemetry" in each] == []
    assert not cell["current"], "no span stays current"


@every_cell((*CALLS, *WAYS_OUT))
def test_one_inference_span_and_ours_under_it(found, peer, order, way, kind):
    cell = found[f"{peer} {order}"][f"{way} {kind}"]
    inference = the_inference(cell, peer)
    assert cell["result"] == RESULTS[way]
    for span in cell["spans"]:
        if span["scope"] == OURS and span is not inference:
            assert inference in list(ancestors(span, cell["spans"])), span["name"]
    assert said(cell, names.LLMLAT_CONTRACT_VERSION) == ["0.1.0"]
    check_that_nothing_went_wrong(cell)


@every_cell((*CALLS, *WAYS_OUT))
def test_the_account_is_whole(found, peer, order, way, kind):
    """Phases are there once each (twice where the request was sent twice), and how it ended."""
    cell = found[f"{peer} {order}"][f"{way} {kind}"]
    measured = phases(cell)
    attempts = 2 if way == "retry" else 1
    assert measured.count("prepare") == 1
    assert all(measured.count(name) == attempts for name in ("pool_wait", "send", "wait"))
    assert measured.count("connect") == 1
    ends = {"chat_stream": "complete", "response_stream": "complete", **WAYS_OUT}
    assert said(cell, names.LLMLAT_STREAM_END) == ([ends[way]] if way in ends else [])


@every_cell(CALLS)
def test_one_trace_upstream(found, peer, order, way, kind):
    """Each request names a span of the call: its HTTP span, its attempt, or the inference."""
    cell = found[f"{peer} {order}"][f"{way} {kind}"]
    spans = {each["id"]: each for each in cell["spans"]}
    inference = the_inference(cell, peer)
    assert len(cell["upstream"]) == (2 if way == "retry" else 1)
    for traceparent in cell["upstream"]:
        _, trace_id, span_id, flags = traceparent.split("-")
        assert trace_id == inference["trace"]
        assert int(flags, 16) & 1
        named = spans[span_id]
        assert (named["scope"] == SCOPES["httpx"]) is (peer == "httpx")
        assert named is inference or inference in list(ancestors(named, cell["spans"]))
    if peer != "openllmetry":  # It names its own span in each request, and that is left so.
        assert len(set(cell["upstream"])) == len(cell["upstream"])
    assert cell["baggage"] == [None] * len(cell["upstream"])


@every_cell(["within"])
def test_a_call_within_the_stream_of_another_is_a_call_of_its_own(found, peer, order, way, kind):
    cell = found[f"{peer} {order}"][f"{way} {kind}"]
    assert cell["result"] == [RESULTS["chat"]]
    inferences = list(filter(is_inference, cell["spans"]))
    assert [each["parent"] for each in inferences] == [None, None]
    for inference in inferences:
        theirs = [each for each in cell["spans"] if inference in ancestors(each, cell["spans"])]
        assert phases({"spans": theirs}).count("wait") == 1
    assert said(cell, names.LLMLAT_STREAM_END) == ["complete"]
    check_that_nothing_went_wrong(cell)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("peer", SCOPES)
def test_without_ours_the_peer_is_as_it_was(found, peer, order):
    cell = found[f"{peer} {order}"]["uninstrumented"]
    assert cell["result"] == RESULTS["chat_stream"]
    assert [each["scope"] for each in cell["spans"]] == [SCOPES[peer]]
    assert said(cell, names.LLMLAT_CONTRACT_VERSION) == []
    check_that_nothing_went_wrong(cell)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("peer", "theirs"),
    [("genai", True), ("openinference", False), ("httpx", False)],
)
def test_a_call_is_counted_by_one_of_the_two(found, peer, theirs, order):
    """genai-openai has the metrics under the name that they had before the conventions moved."""
    recorded = found[f"{peer} {order}"]["metrics"]
    inference = metrics.GEN_AI_CLIENT_INFERENCE_DURATION.name
    assert (inference in recorded) is not theirs
    assert (inference.replace("inference", "operation") in recorded) is theirs
    assert metrics.LLMLAT_PHASE_DURATION.name in recorded


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("way", ["response", "response_stream"])
def test_a_span_that_is_made_afterwards_cannot_be_taken(found, way, kind, order):
    """A limit: OpenLLMetry notes when a response was asked for, and makes its span when it came.

    Nothing tells beforehand, nor whether it will, so the call has a span of ours.
    """
    cell = found[f"openllmetry {order}"][f"{way} {kind}"]
    ours, theirs = sorted(filter(is_inference, cell["spans"]), key=lambda each: each["scope"])
    assert (ours["scope"], theirs["scope"]) == (OURS, SCOPES["openllmetry"])
    assert cell["upstream"][0].split("-")[2] == ours["id"]
    check_that_nothing_went_wrong(cell)
