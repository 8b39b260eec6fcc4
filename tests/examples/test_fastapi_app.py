"""examples/fastapi-app: one trace from a visitor through a service to the model, and after it."""

from __future__ import annotations

import pytest

from llmlat_semconv.spans import tool_span_name
from llmlat_semconv.values import FindingKind, SectionLabel
from tests.examples.example_run import ROOT, Explained, drawn_operations, explained

ASK, ANSWER, CHAT = "ask", "GET /answer", "chat emulated-adviser"
TASK, FILING = "BackgroundTask file_question", tool_span_name("file_question")


@pytest.fixture(scope="module")
def run() -> Explained:
    return explained("fastapi-app")


def test_one_trace_goes_through_both_processes(run: Explained) -> None:
    assert run.names() == {ASK, ANSWER, CHAT, TASK, FILING}
    assert run.above(run.one(FILING)) == [TASK, ANSWER, ASK]
    assert (run.one(ASK)["service"], run.one(ANSWER)["service"]) == ("visitor", "service")


def test_cx_10_a_stream_that_is_made_after_the_route_has_returned_is_in_its_trace(
    run: Explained,
) -> None:
    server, chat = run.one(ANSWER), run.one(CHAT)
    assert run.above(chat) == [ANSWER, ASK]
    assert server["duration_ns"] > chat["duration_ns"], "it covers the last byte"


def test_cx_11_what_runs_after_the_reply_is_on_no_path_and_outlives_the_request(
    run: Explained,
) -> None:
    task = run.one(TASK)
    assert run.path_ns("e2e", task) is run.path_ns("e2e", run.one(FILING)) is None
    (finding,) = run.document["findings"]
    assert finding["kind"] == FindingKind.OUTLIVED_PARENT.value
    assert finding["of"] == task["span_id"]
    assert finding["amount_ns"] > 290_000_000, "the server span covers none of it"


def test_the_visitor_s_time_is_explained_by_the_engine(run: Explained) -> None:
    totals = run.root["e2e"]["totals_ns"]
    assert {SectionLabel.PREFILL.value, SectionLabel.DECODE.value} <= set(totals)
    assert run.root["ttft"] is not None


def test_the_readme_shows_these_operations(run: Explained) -> None:
    assert drawn_operations(ROOT / "examples" / "fastapi-app" / "README.md") == run.names()
