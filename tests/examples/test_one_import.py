"""examples/one-import: what one import says of one streamed call."""

from __future__ import annotations

import pytest

from llmlat_semconv.phases import Phase
from llmlat_semconv.values import Evidence, SectionLabel
from tests.examples.example_run import ROOT, Explained, drawn_operations, explained

CHAT = "chat emulated-adviser"


@pytest.fixture(scope="module")
def run() -> Explained:
    return explained("one-import")


def test_the_answer_is_printed_as_without_us(run: Explained) -> None:
    assert run.printed.startswith("the account is in good standing")


def test_the_call_is_the_only_operation_and_the_root(run: Explained) -> None:
    (only,) = run.document["operations"]
    assert (only["name"], only["service"], only["is_error"]) == (CHAT, "ask", False)
    assert run.document["findings"] == []


@pytest.mark.parametrize(
    "phase", [Phase.PREPARE, Phase.CONNECT, Phase.SEND, Phase.FINALIZE], ids=lambda each: each.value
)
def test_what_the_client_does_is_measured(run: Explained, phase: Phase) -> None:
    assert run.evidence("e2e", phase.value) == {Evidence.MEASURED.value}


@pytest.mark.parametrize("label", [SectionLabel.PREFILL, SectionLabel.DECODE], ids=str)
def test_what_the_engine_says_of_itself_is_reported(run: Explained, label: SectionLabel) -> None:
    assert run.evidence("e2e", label.value) == {Evidence.REPORTED.value}


def test_the_first_content_comes_before_the_end_and_the_decode(run: Explained) -> None:
    root = run.root
    assert 0 < root["ttft"]["duration_ns"] < root["e2e"]["duration_ns"] == root["duration_ns"]
    assert SectionLabel.DECODE.value not in root["ttft"]["totals_ns"]


def test_the_readme_shows_these_operations(run: Explained) -> None:
    assert drawn_operations(ROOT / "examples" / "one-import" / "README.md") == run.names()
