"""examples/gateway-asgi: one trace from an app through a gateway to an engine that has no spans."""

from __future__ import annotations

import pytest

from llmlat_semconv.spans import gateway_span_name
from llmlat_semconv.values import Evidence, SectionLabel
from tests.examples.example_run import ROOT, Explained, drawn_operations, explained

GATEWAY = gateway_span_name("/v1/chat/completions")
ASKED, FORWARDED = "chat emulated-adviser", "chat"


@pytest.fixture(scope="module")
def run() -> Explained:
    return explained("gateway-asgi")


def test_one_trace_goes_through_the_gateway(run: Explained) -> None:
    assert run.names() == {ASKED, GATEWAY, FORWARDED}
    assert run.above(run.one(FORWARDED)) == [GATEWAY, ASKED]
    assert (run.one(ASKED)["service"], run.one(GATEWAY)["service"]) == ("caller", "gateway")


def test_the_gateway_says_what_it_added(run: Explained) -> None:
    assert {SectionLabel.ADMISSION.value, SectionLabel.RELAY.value} <= set(
        run.root["e2e"]["totals_ns"]
    )


def test_what_the_engine_reports_is_about_the_gateways_call(run: Explained) -> None:
    forwarded = run.one(FORWARDED)["span_id"]
    for goal, label in (("e2e", SectionLabel.DECODE), ("ttft", SectionLabel.PREFILL)):
        sections = run.root[goal]["sections"]
        told = [each for each in sections if each["label"] == label.value]
        assert {each["span_id"] for each in told} == {forwarded}
        assert run.evidence(goal, label.value) == {Evidence.REPORTED.value}


def test_nothing_is_wrong_with_it(run: Explained) -> None:
    assert run.document["findings"] == []
    assert run.document["complete"]


def test_the_readme_shows_these_operations(run: Explained) -> None:
    assert drawn_operations(ROOT / "examples" / "gateway-asgi" / "README.md") == run.names()
