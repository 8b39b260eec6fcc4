"""The smallest traces in which the paths once differed from the oracle's."""

from __future__ import annotations

from llmlat_semconv import events
from llmlat_semconv.phases import Phase
from tests.cases.outcome import Outcome
from tests.llmlat_processor.stages.spans import (
    amounts,
    chat,
    engine,
    explained,
    findings,
    link,
    phase,
    placed,
    row,
)

ROOT = row("R", None, 0, 10)


def mark(at: float) -> dict[str, object]:
    return {"events": [{"name": events.LLMLAT_FIRST_CONTENT, "at": at}]}


def test_of_two_predecessors_that_end_together_the_one_that_began_earlier_is_entered() -> None:
    rows = row("a", "R", 1, 2), row("b", "R", 0, 2), row("c", "R", 2, 10)
    found = explained(ROOT, *rows, links=[link("c", "a"), link("c", "b")])
    assert placed(found) == ["b work 0..2", "c work 2..10"]


#   c   wait ▒▒ stream ▒▒▒ finalize █      x began after the last content: the exchange is whole
#   x                      ├──────────┤
def test_a_call_that_a_later_child_outlives_keeps_its_whole_exchange() -> None:
    found = explained(
        ROOT,
        chat("c", "R", 0, 6, stream=True),
        phase(Phase.WAIT, "c", 0, 2),
        phase(Phase.STREAM, "c", 2, 5),
        phase(Phase.FINALIZE, "c", 5, 6),
        row("x", "c", 5, 9),
        engine("e", "c", 0, 4),
        phase(Phase.DECODE, "e", 0, 4),
    )
    assert "e decode 4" in amounts(found)
    assert not any("stream" in line or "wait" in line for line in amounts(found))


def test_a_consumer_can_only_have_held_what_streamed() -> None:
    found = explained(
        chat("c", None, 0, 8, consumer=1),
        phase(Phase.WAIT, "c", 0, 7),
        engine("s", "c", 0, 6),
    )
    assert amounts(found) == ["s work 6", "c transit 1", "c unobserved 1"]


def half_placed() -> Outcome:
    """`first_content` has a place, `stream` is a duration: the last content is not known."""
    said = {"phases": {"stream": 3}, "reported": {"decode": 4}, "first_useful_content": 1}
    return explained(
        row("R", None, 0, 10, **mark(10)),
        chat("L", "R", 0, 4, stream=True, **said),
        phase(Phase.FIRST_CONTENT, "L", 0, 1),
    )


def test_a_call_with_durations_is_not_taken_for_whole_before_its_end() -> None:
    assert findings(half_placed()) == []
    assert amounts(half_placed(), "ttft")[0] == "L first_content 1"


def test_the_apps_mark_enters_content_of_any_kind() -> None:
    asked = {"stream": True, "first_useful_content": 4, "first_is_tool_call": True}
    found = explained(row("R", None, 0, 10, **mark(6)), chat("L", "R", 1, 9, **asked))
    assert amounts(found, "ttft") == ["R unobserved 1", "L work 3", "R unobserved 2"]


def test_placed_envelopes_count_although_durations_overflow() -> None:
    found = explained(
        chat("c", None, 0, 2, stream=True, phases={"first_content": 1}),
        phase(Phase.STREAM, "c", 1, 2),
        row("x", "c", 0, 1),
        engine("s", "c", 0, 1),
    )
    assert findings(found) == ["phase_overflow of c 1"]
    assert "s work 1" in amounts(found)


def test_send_lends_nothing_that_first_content_can_give() -> None:
    reported = {"queue": 2, "prefill": 2, "decode": 4}
    found = explained(
        chat("c", None, 0, 8, stream=True, first_useful_content=5, reported=reported),
        phase(Phase.SEND, "c", 0, 1),
        phase(Phase.WAIT, "c", 1, 2),
        phase(Phase.FIRST_CONTENT, "c", 2, 5),
        phase(Phase.STREAM, "c", 5, 8),
    )
    assert amounts(found, "ttft") == ["c send 1", "c queue 2", "c prefill 2"]


#   c   ?? stream ▒▒          finalize: a duration, which has its place after the stream
#       └ first content
def test_a_duration_is_not_put_before_a_phase_that_lies_behind_the_clip() -> None:
    found = explained(
        ROOT,
        chat("c", "R", 0, 3, stream=True, first_useful_content=1, phases={"finalize": 1}),
        phase(Phase.STREAM, "c", 1, 2),
    )
    assert amounts(found, "ttft") == ["c unobserved 1"]


def test_what_finalize_lends_was_not_held_by_the_caller() -> None:
    found = explained(
        ROOT,
        chat("c", "R", 0, 2, consumer=1),
        phase(Phase.FINALIZE, "c", 1, 2),
        row("e", "c", 2, 2, kind="server"),
        row("x", "c", 0, 1),
    )
    assert amounts(found)[:2] == ["x work 1", "c transit 1"]
