"""What becomes of what the window lets go, with nobody who sends it: books, marks, what is said."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Event

import pytest

from llmlat_processor.model import (
    CLIENT,
    Assumptions,
    AttributeValue,
    ExplainedTrace,
    Span,
)
from llmlat_processor.pipeline import process
from llmlat_processor.service import UNEXPLAINED, handing_on
from llmlat_processor.service.handing_on import NO_DESTINATION, PRUNED_EVERY
from llmlat_processor.service.releasing import NO_ROOT
from llmlat_processor.window import Released, Why
from llmlat_processor.written import OWN_SCOPE
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import finding_attribute
from llmlat_semconv.values import FindingKind
from tests.llmlat_processor.otlp import CHAT
from tests.llmlat_processor.service.deployments import until
from tests.llmlat_processor.service.handed import (
    APART,
    TAP,
    Awaited,
    Pile,
    Told,
    message,
    received,
    released,
    rootless,
)
from tests.llmlat_processor.service.handed import handing_on as made

WAIT_S = 20


class Blocked:
    """A pipeline that waits until it may go on."""

    def __init__(self) -> None:
        self.begun, self.go_on = Event(), Event()

    def __call__(self, spans: Iterable[Span], assumptions: Assumptions) -> ExplainedTrace:
        self.begun.set()
        assert self.go_on.wait(WAIT_S)
        return process(spans, assumptions)


def failing(_spans: Iterable[Span], _assumptions: Assumptions) -> ExplainedTrace:
    raise ZeroDivisionError


@pytest.fixture
def _every_trace_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handing_on, "LARGE", 1)


def test_a_trace_goes_explained_and_its_spans_are_settled_with_its_last_request() -> None:
    pile, journal = Pile(), Told()
    hand_on, settling = made(pile, journal)

    hand_on([released(1, 2)], Awaited())
    assert (pile.names, pile.made > 0) == (["trace 1 span 1", "trace 1 span 2"], True)
    assert journal.done == []
    settling.settled(pile.requests)

    assert sorted(journal.done) == [(7, 0), (7, 1)]
    assert hand_on.snapshot()[0].traces == 1


def test_a_request_under_two_trace_ids_is_found_in_the_second_trace() -> None:
    asked: dict[str, AttributeValue] = {**CHAT, names.GEN_AI_RESPONSE_ID: "chatcmpl-7f3a"}
    answered: dict[str, AttributeValue] = {names.LLMLAT_REQUEST_ID: "chatcmpl-7f3a"}
    found: list[str] = []

    def observe(explained: ExplainedTrace) -> None:
        found.extend(f"{each.kind.value} {each.note}" for each in explained.findings)

    call, root = message(1, trace=1, attributes=asked), message(1, trace=2, attributes=answered)
    call.kind = CLIENT  # type: ignore[assignment]  # OTLP's number
    pile = Pile()
    hand_on, _ = made(pile, observe=observe)
    hand_on([Released(received(one), Why.COMPLETE) for one in (call, root)], Awaited())

    assert found == [f"trace_break its request is in trace {1:032x} too"]
    assert finding_attribute(FindingKind.TRACE_BREAK).encode() in pile.requests[1].content


@pytest.mark.parametrize("why", [Why.LATE, Why.COLLAPSED, Why.TRACE_FULL, Why.TOO_LARGE])
def test_what_needs_no_look_goes_together_and_is_settled_when_it_has_gone(why: Why) -> None:
    pile, journal = Pile(), Told()
    hand_on, settling = made(pile, journal)

    hand_on([released(2, trace=1, why=why), released(2, trace=2, why=why, batch=8)], Awaited())
    assert (len(pile.requests), journal.done) == (1, [])
    settling.settled(pile.requests)

    assert sorted(journal.done) == [(7, 0), (8, 0)]
    assert hand_on.snapshot()[0].as_they_came == {why.value: 2}


def test_what_comes_again_is_settled_at_once_since_its_like_is_kept_by_itself() -> None:
    pile, journal = Pile(), Told()
    hand_on, _ = made(pile, journal)

    hand_on([released(2, why=Why.REPEATED)], Awaited())

    assert (pile.requests, journal.done) == ([], [(7, 0)])
    assert hand_on.snapshot()[0].repeated == 1


def test_a_trace_that_we_fail_at_goes_as_it_came(caplog: pytest.LogCaptureFixture) -> None:
    pile = Pile()
    hand_on, _ = made(pile, explain=failing)

    hand_on([released(1, 2)], Awaited())

    assert (len(pile.names), pile.made) == (2, 0)
    assert hand_on.snapshot()[0].as_they_came == {UNEXPLAINED: 2}
    assert "could not be explained" in caplog.text


def test_a_fault_in_what_is_counted_costs_no_trace_its_explanation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def observe(_explained: ExplainedTrace) -> None:
        raise ZeroDivisionError

    pile = Pile()
    hand_on, _ = made(pile, observe=observe)

    hand_on([released(1, 2)], Awaited())

    assert (pile.made > 0, hand_on.snapshot()[0].traces) == (True, 1)
    assert "could not be counted" in caplog.text


def test_where_nothing_is_sent_any_more_nothing_is_explained() -> None:
    pile = Pile()
    pile.is_over = True
    hand_on, _ = made(pile, explain=failing)

    hand_on([released(1), revision()], Awaited())

    assert hand_on.snapshot()[0].as_they_came == {NO_DESTINATION: 1}


# ── A tap, and what is derived apart ─────────────────────────────────────────────────────────────


def test_a_tap_keeps_the_spans_until_what_it_made_of_them_has_gone() -> None:
    pile, journal = Pile(), Told()
    hand_on, settling = made(pile, journal, deployment=TAP)

    hand_on([released(1, 2)], Awaited())
    assert (pile.names, pile.made > 0, journal.done) == ([], True, [])
    settling.settled(pile.requests)

    assert sorted(journal.done) == [(7, 0), (7, 1)]
    assert hand_on.snapshot()[0].consumed == 2


def test_a_lane_that_goes_elsewhere_keeps_no_span_from_its_end() -> None:
    pile, journal = Pile(), Told()
    hand_on, settling = made(pile, journal, deployment=APART)

    hand_on([released(1, 2)], Awaited())
    assert len(pile.derived) == 1
    settling.settled(pile.derived)
    assert journal.done == []
    settling.settled(pile.requests)

    assert sorted(journal.done) == [(7, 0), (7, 1)]


# ── Skeletons ────────────────────────────────────────────────────────────────────────────────────


def test_what_goes_before_its_root_is_kept_until_the_trace_has_gone() -> None:
    pile, journal = Pile(), Told()
    hand_on, settling = made(pile, journal)
    first = rootless(2)
    hand_on([first], Awaited(1))
    assert (journal.appended, hand_on.snapshot()[0].as_they_came) == ([first.packed], {NO_ROOT: 1})
    settling.settled(pile.requests)
    assert journal.done == [(7, 0)]

    hand_on([released(1)], Awaited())
    settling.settled(pile.requests[1:])

    assert sorted(journal.done) == [(7, 0), (7, 0), (101, 0)]


def test_skeletons_that_nobody_waits_with_are_let_go_now_and_then() -> None:
    journal = Told()
    hand_on, _ = made(Pile(), journal)
    for batch, trace in enumerate((1, 2)):
        hand_on.keep(batch, rootless(2, trace=trace).packed)

    for _ in range(PRUNED_EVERY):
        hand_on((), Awaited(2))

    assert journal.done == [(0, 0)]


def test_at_the_end_skeletons_stay_for_the_next_run_whatever_round_it_is() -> None:
    journal = Told()
    hand_on, _ = made(Pile(), journal)
    for _ in range(PRUNED_EVERY - 1):
        hand_on((), Awaited())

    hand_on([rootless(2, why=Why.SHUTDOWN)], Awaited())  # a window that is flushed awaits nothing

    assert (len(journal.appended), journal.done) == (1, [])


# ── Large traces ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("_every_trace_is_large")
def test_a_large_trace_is_explained_beside_and_the_small_ones_go_on() -> None:
    pile, blocked = Pile(), Blocked()
    hand_on, _ = made(pile, explain=blocked)

    hand_on([released(1, 2)], Awaited())
    assert blocked.begun.wait(WAIT_S)
    hand_on([released(2, trace=2, why=Why.LATE)], Awaited())
    assert (pile.names, hand_on.large_bytes > 0) == (["trace 2 span 2"], True)
    blocked.go_on.set()
    hand_on.finish()

    assert (len(pile.names), hand_on.large_bytes) == (3, 0)


@pytest.mark.usefixtures("_every_trace_is_large")
def test_skeletons_of_a_large_trace_are_kept_until_it_has_gone() -> None:
    pile, journal, blocked = Pile(), Told(), Blocked()
    hand_on, settling = made(pile, journal, explain=blocked)
    hand_on.keep(3, rootless(3).packed)

    hand_on([released(1, 2)], Awaited())
    for _ in range(PRUNED_EVERY):
        hand_on((), Awaited())
    assert journal.done == []
    blocked.go_on.set()
    hand_on.finish()
    assert journal.done == []
    settling.settled(pile.requests)

    assert sorted(journal.done) == [(3, 0), (7, 0), (7, 1)]


@pytest.mark.usefixtures("_every_trace_is_large")
def test_at_a_hurried_end_the_large_traces_that_wait_go_as_they_came() -> None:
    pile, blocked = Pile(), Blocked()
    hand_on, _ = made(pile, explain=blocked)
    hand_on([released(1, 2), released(1, 2, trace=2)], Awaited())
    assert blocked.begun.wait(WAIT_S)

    pile.is_over = True
    blocked.go_on.set()
    hand_on.finish()

    assert len(pile.names) == 4
    assert hand_on.snapshot()[0].as_they_came == {NO_DESTINATION: 2}


@pytest.mark.usefixtures("_every_trace_is_large")
def test_a_fault_beside_ends_the_work_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    pile = Pile()
    hand_on, _ = made(pile)

    def full(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(pile, "put", full)
    hand_on([released(1, 2)], Awaited())

    with pytest.raises(ZeroDivisionError):
        hand_on.finish()
    with pytest.raises(ZeroDivisionError):
        hand_on((), Awaited())


# ── Revisions ────────────────────────────────────────────────────────────────────────────────────


def revision(*more: Span) -> Released:
    """The root of a trace, more of it, and one late span in another service."""
    late_one = received(message(2), service="planner")
    spans = [*received(message(1)), *more, *late_one]
    return Released(spans, Why.REVISED, 0, len(spans), late=1, revision=2)


def test_late_spans_that_change_the_path_are_worth_another_lane() -> None:
    pile, journal, window = Pile(), Told(), Awaited()
    hand_on, settling = made(pile, journal)

    hand_on([revision()], window)
    settling.settled(pile.requests)

    assert (pile.names, pile.made > 0, journal.done) == ([], True, [])
    assert (len(window.published_ids), hand_on.snapshot()[0].revisions) == (1, 1)


def test_late_spans_that_change_nothing_are_not() -> None:
    pile, window = Pile(), Awaited()
    hand_on, _ = made(pile)

    hand_on([revision(*received(message(2), service="planner"))], window)

    assert (pile.made, window.published_ids) == (0, [])


def test_what_another_processor_has_explained_is_not_revised_by_this_one() -> None:
    pile, window = Pile(), Awaited()
    hand_on, _ = made(pile)

    hand_on([revision(*received(message(3), scope=OWN_SCOPE))], window)

    assert (pile.made, window.published_ids) == (0, [])


@pytest.mark.usefixtures("_every_trace_is_large")
def test_a_large_trace_is_revised_beside_as_well() -> None:
    pile, blocked, window = Pile(), Blocked(), Awaited()
    hand_on, _ = made(pile, explain=blocked)

    hand_on([revision()], window)
    assert blocked.begun.wait(WAIT_S)
    hand_on([revision()], window)
    assert (pile.made, window.published_ids) == (0, [])
    blocked.go_on.set()

    def is_published() -> bool:
        hand_on((), window)
        return bool(window.published_ids)

    until(is_published)

    assert (hand_on.snapshot()[0].revisions, len(window.published_ids)) == (1, 1)
    assert pile.made == hand_on.snapshot()[0].added > 0


@pytest.mark.usefixtures("_every_trace_is_large")
def test_the_end_waits_for_a_large_revision() -> None:
    pile = Pile()
    hand_on, _ = made(pile)

    hand_on([revision()], Awaited())
    hand_on.finish()

    assert (hand_on.snapshot()[0].revisions, hand_on.large_bytes) == (1, 0)
