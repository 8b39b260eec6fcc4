"""Where the path to the first useful content ends, and where it runs."""

from __future__ import annotations

from typing import Any

import pytest

from llmlat_semconv import events
from llmlat_semconv.phases import Phase
from tests.cases.case_format import Json
from tests.cases.outcome import Outcome
from tests.llmlat_processor.stages.spans import chat, explained, phase, placed, row

ROOT = row("R", None, 0, 100)


def streamed(
    name: str, parent: str | None, start: float, end: float, at: float, **keys: Any
) -> Json:
    """A streamed inference with its first content at an instant."""
    return chat(name, parent, start, end, stream=True, first_useful_content=at, **keys)


def content_at(at: float) -> dict[str, Any]:
    """The app's own mark."""
    return {"events": [{"name": events.LLMLAT_FIRST_CONTENT, "at": at}]}


def ttft(*rows: Json) -> list[str]:
    return placed(explained(*rows), "ttft")


def reason(*rows: Json) -> str:
    absence = explained(*rows).root(None).ttft_absence
    return absence.value if absence else "there is a path"


# ── Who says so ──────────────────────────────────────────────────────────────────────────────────


#   R      ├──────────────────────▼────────┤
#   c        ├──────▼────────┤                   an answer that the app rewrote and showed at 80
def test_what_the_app_says_comes_first() -> None:
    root = row("R", None, 0, 100, **content_at(80))
    found = ttft(root, streamed("c", "R", 10, 60, 30), row("rewrite", "R", 60, 75))
    assert found == [
        "R unobserved 0..10",
        "c work 10..30",
        "R unobserved 30..60",
        "rewrite work 60..75",
        "R unobserved 75..80",
    ]


def test_of_several_marks_the_first_one_counts() -> None:
    rows = [row("a", "R", 10, 40, **content_at(30)), row("b", "R", 50, 90, **content_at(60))]
    assert ttft(ROOT, *rows) == ["R unobserved 0..10", "a work 10..30"]


def test_the_app_enters_the_inference_with_the_latest_content_before_its_mark() -> None:
    found = ttft(
        row("R", None, 0, 100, **content_at(70)),
        streamed("early", "R", 0, 90, 20),
        streamed("latest", "R", 30, 90, 60),
        streamed("after", "R", 40, 90, 75),
    )
    assert found == ["R unobserved 0..30", "latest work 30..60", "R unobserved 60..70"]


def test_the_app_without_an_inference_below_its_mark_walks_as_usual() -> None:
    found = ttft(row("R", None, 0, 100, **content_at(70)), row("a", "R", 10, 50))
    assert found == ["R unobserved 0..10", "a work 10..50", "R unobserved 50..70"]


def test_the_app_may_mark_the_content_on_an_operation_in_another_domain() -> None:
    """A browser is the root; the back end knows when it showed the first words."""
    found = explained(
        ROOT,
        row("server", "R", 7_000, 7_060, kind="server", host="B", **content_at(7_040)),
    )
    assert [(s.span.span_id, s.duration_ns) for s in found.sections("ttft", None)] == [
        (b"server", 40_000_000)
    ]


def test_the_roots_own_content_comes_before_anybody_elses() -> None:
    found = ttft(streamed("R", None, 0, 100, 50), streamed("c", "R", 10, 60, 30))
    assert found == ["R unobserved 0..50"]


def test_else_the_earliest_content_of_a_streamed_inference() -> None:
    found = ttft(ROOT, streamed("b", "R", 10, 90, 40), streamed("a", "R", 20, 90, 50))
    assert found == ["R unobserved 0..10", "b work 10..40"]


@pytest.mark.parametrize("op", ["execute_tool", "retrieval"])
def test_content_inside_a_tool_or_a_retrieval_is_shown_to_nobody(op: str) -> None:
    inner = row("hider", "R", 0, 40, op=op), row("between", "hider", 5, 30)
    hidden = streamed("hidden", "between", 5, 30, 10)
    assert ttft(ROOT, *inner, hidden, streamed("c", "R", 50, 90, 60))[-1] == "c work 50..60"
    assert reason(ROOT, *inner, hidden) != "there is a path"


def test_content_inside_a_second_agent_is_shown_to_the_first() -> None:
    agents = [row("R", None, 0, 100, op="invoke_agent"), row("sub", "R", 0, 40, op="invoke_agent")]
    hidden = streamed("hidden", "sub", 5, 30, 10)
    assert ttft(*agents, hidden, streamed("c", "R", 50, 90, 60))[-1] == "c work 50..60"
    assert ttft(agents[0], streamed("c", "R", 50, 90, 60))[-1] == "c work 50..60"


# ── Why there is none ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("inferences", "said"),
    [
        ([], "no_inference"),
        ([row("a", "R", 1, 9, op="embeddings", stream=True)], "no_inference"),
        ([chat("a", "R", 1, 9)], "not_streamed"),
        ([chat("a", "R", 1, 9, stream=False)], "not_streamed"),
        ([streamed("a", "R", 1, 9, 3, first_is_tool_call=True)], "only_tool_calls"),
        (
            [chat("a", "R", 1, 9), streamed("b", "R", 1, 9, 3, first_is_tool_call=True)],
            "only_tool_calls",
        ),
        ([chat("a", "R", 1, 9, stream=True, first_chunk=3)], "chunk_only"),
        ([streamed("a", "R", 1, 9, 3)], "there is a path"),
        ([row("a", "R", 1, 9, op="text_completion", first_useful_content=3)], "there is a path"),
        ([row("a", "R", 1, 9, op="generate_content", first_useful_content=3)], "there is a path"),
    ],
    ids=[
        "nothing",
        "only embeddings",
        "whole answers",
        "a stream that is declared none",
        "a tool call only",
        "a whole answer and a tool call",
        "no content was looked for",
        "chat",
        "text_completion",
        "generate_content",
    ],
)
def test_the_first_reason_that_holds_is_given(inferences: list[Json], said: str) -> None:
    assert reason(ROOT, *inferences) == said


def test_a_root_that_only_asks_for_a_tool_is_not_the_sink() -> None:
    first = streamed("R", None, 0, 100, 20, first_is_tool_call=True)
    assert ttft(first, streamed("c", "R", 50, 90, 60))[-1] == "c work 50..60"


# ── Where it runs ────────────────────────────────────────────────────────────────────────────────


#   R       ├───────────────────────────┤
#   before    ├────┤                          had ended when c began: on the path
#   open        ├─────────────────────┤       still open at the sink: hidden behind the content
#   c                 ├─────▼─────┤
def test_what_is_still_open_at_the_sink_is_no_predecessor() -> None:
    found = ttft(
        ROOT, row("before", "R", 5, 25), row("open", "R", 10, 95), streamed("c", "R", 40, 90, 60)
    )
    assert found == [
        "R unobserved 0..5",
        "before work 5..25",
        "R unobserved 25..40",
        "c work 40..60",
    ]


def test_the_path_climbs_from_the_sink_through_what_came_before_each_ancestor() -> None:
    found = ttft(
        ROOT,
        row("before", "R", 0, 20),
        row("p", "R", 30, 95),
        row("inner", "p", 35, 45),
        streamed("c", "p", 50, 90, 60),
    )
    assert found == [
        "before work 0..20",
        "R unobserved 20..30",
        "p unobserved 30..35",
        "inner work 35..45",
        "p unobserved 45..50",
        "c work 50..60",
    ]


def test_content_after_the_end_of_its_inference_ends_the_path_there() -> None:
    assert ttft(ROOT, streamed("c", "R", 40, 60, 80))[-1] == "c work 40..60"


@pytest.mark.parametrize("root_content", [False, True])
def test_an_inference_that_began_before_its_root_is_clipped_at_the_roots_start(
    root_content: bool,
) -> None:
    """Sections sum to the sink minus the root's start, whatever began before."""
    mark = content_at(20) if root_content else {}
    found = explained(row("R", None, 10, 50, **mark), streamed("c", "R", 4, 40, 20))
    assert placed(found, "ttft") == ["c work 10..20"]


@pytest.mark.parametrize("at", [-5, 5])
def test_a_mark_outside_of_its_operation_adds_no_time(at: float) -> None:
    """Of an operation from 10 to 40: the path cannot be longer than the operation's start."""
    found = explained(ROOT, row("a", "R", 10, 40, **content_at(at)))
    path = found.path("ttft", None)
    assert path is not None
    assert path.duration_ns <= 10_000_000


def attempts(*rows: Json) -> Outcome:
    return explained(streamed("c", None, 0, 100, 70), *rows)


#   c     ├──────────────────▼─────┤
#   a1      ├────┤ failed
#   a2              ├────────▼───┤        open at the sink
def test_the_path_goes_down_into_the_attempt_that_is_open_at_the_sink() -> None:
    found = attempts(
        row("a1", "c", 5, 25, kind="client", attempt=1, error=True),
        row("a2", "c", 40, 95, kind="client", attempt=2),
        phase(Phase.WAIT, "a2", 40, 60),
        phase(Phase.STREAM, "a2", 60, 95),
    )
    assert placed(found, "ttft") == [
        "c unobserved 0..5",
        "a1 work 5..25",
        "c unobserved 25..40",
        "a2 wait 40..60",
        "a2 stream 60..70",
    ]


def test_a_hedges_loser_is_not_gone_down_into() -> None:
    found = attempts(
        row("a1", "c", 5, 95, kind="client", attempt=1),
        row("a2", "c", 40, 95, kind="client", attempt=2, lost=True),
    )
    assert placed(found, "ttft") == ["c unobserved 0..5", "a1 work 5..70"]


def test_without_an_attempt_open_at_the_sink_the_operation_itself_answers() -> None:
    found = attempts(row("a1", "c", 5, 25, kind="client", attempt=1, error=True))
    assert placed(found, "ttft") == [
        "c unobserved 0..5",
        "a1 work 5..25",
        "c unobserved 25..70",
    ]


# ── On another clock ─────────────────────────────────────────────────────────────────────────────


def test_a_sink_in_another_domain_counts_from_that_domains_first_span_on_the_climb() -> None:
    found = explained(
        ROOT,
        row("server", "R", 7_000, 7_050, kind="server", host="B"),
        row("handler", "server", 7_005, 7_045, host="B"),
        streamed("c", "handler", 7_010, 7_040, 7_030, host="B"),
    )
    path = found.path("ttft", None)
    assert path is not None
    assert path.root.span_id == b"server"
    assert [f"{s.span.span_id.decode()} {s.duration_ns // 10**6}" for s in path.sections] == [
        "server 5",
        "handler 5",
        "c 20",
    ]


def test_content_on_the_roots_clock_is_preferred_to_content_that_cannot_be_compared() -> None:
    found = explained(
        ROOT, streamed("far", "R", 0, 30, 10, host="B"), streamed("c", "R", 40, 90, 60)
    )
    assert placed(found, "ttft")[-1] == "c work 40..60"
