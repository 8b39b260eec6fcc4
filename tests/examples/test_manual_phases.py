"""examples/manual-phases: the steps that a program names itself, in tasks and in threads."""

from __future__ import annotations

from collections import Counter

import pytest

from llmlat_semconv.phases import Phase
from llmlat_semconv.spans import agent_span_name, retrieval_span_name, tool_span_name
from tests.examples.example_run import ROOT, Explained, drawn_operations, explained

AGENT = agent_span_name("planner")
CALENDAR, PREFERENCES = retrieval_span_name("calendar"), retrieval_span_name("preferences")
QUOTE = tool_span_name("quote")
CHAT = "chat emulated-adviser"


@pytest.fixture(scope="module")
def run() -> Explained:
    return explained("manual-phases")


def test_every_step_hangs_under_the_agent_also_what_runs_in_threads(run: Explained) -> None:
    steps = [each for each in run.document["operations"] if each["name"] != AGENT]
    assert Counter(each["name"] for each in steps) == {
        CALENDAR: 1,
        PREFERENCES: 1,
        QUOTE: 3,
        CHAT: 1,
    }
    assert [run.above(each) for each in steps] == [[AGENT]] * len(steps)
    assert run.document["findings"] == []


@pytest.mark.parametrize("name", [CALENDAR, PREFERENCES])
def test_of_two_look_ups_at_once_the_longer_one_is_waited_for(run: Explained, name: str) -> None:
    is_on_path = run.path_ns("e2e", run.one(name)) is not None
    assert is_on_path == (name == CALENDAR)


def test_of_three_quotes_at_once_the_longest_one_is_waited_for(run: Explained) -> None:
    quotes = sorted(run.named(QUOTE), key=lambda each: each["duration_ns"])
    assert [run.path_ns("e2e", each) is not None for each in quotes] == [False, False, True]


def test_the_traveller_s_choice_is_on_the_path_as_what_it_is(run: Explained) -> None:
    assert run.root["e2e"]["totals_ns"][Phase.HUMAN_WAIT.value] >= 200_000_000


def test_the_first_content_is_what_the_app_shows_first(run: Explained) -> None:
    """It is held back after the model has sent it: the agent's own time ends the path."""
    *_, first_of_the_model, held_back = run.root["ttft"]["sections"]
    assert first_of_the_model["span_id"] == run.one(CHAT)["span_id"]
    assert held_back["span_id"] == run.one(AGENT)["span_id"]


def test_the_readme_shows_these_operations(run: Explained) -> None:
    assert drawn_operations(ROOT / "examples" / "manual-phases" / "README.md") == run.names()
