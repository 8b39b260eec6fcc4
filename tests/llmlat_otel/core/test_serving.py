"""What a request that is served says of itself: its phases, and how long it held events."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as some

from llmlat_otel.core.recording import PhaseInterval
from llmlat_otel.core.serving import Served, request_heard, request_underway, serving
from llmlat_semconv.phases import Phase


def forwarded(*, admitted=3, begun=5, events=(10, 20), ended=20):
    served = Served(1)
    if admitted is not None:
        served.admitted(admitted)
    served.upstream_begins(begun)
    for at_ns in events:
        served.upstream_event(at_ns)
    if ended is not None:
        served.upstream_ended(ended)
    return served


def up(served):
    return [(each.phase.value, each.start_ns, each.end_ns) for each in served.before_the_answer()]


def down(served, end_ns=30, *, is_truncated=False):
    found = served.after_the_answer(end_ns, is_truncated=is_truncated)
    return [(each.phase.value, each.start_ns, each.end_ns) for each in found]


def test_the_phases_of_a_gateway_run_from_edge_to_edge():
    served = forwarded()
    assert up(served) == [("admission", 1, 3), ("route", 3, 5)]
    assert down(served) == [("relay", 20, 30)]


def test_a_retry_and_a_fallback_are_one_choice_of_upstream_and_the_last_answer_counts():
    served = forwarded()
    served.upstream_begins(22)
    assert down(served) == [], "the second answer is not there yet"
    served.upstream_event(25)
    served.upstream_ended(25)
    assert up(served) == [("admission", 1, 3), ("route", 3, 5)]
    assert down(served) == [("relay", 25, 30)]


def test_of_calls_side_by_side_the_last_to_end_counts():
    served = Served(1)
    served.admitted(2)
    for at_ns in (4, 5):
        served.upstream_begins(at_ns)
    served.upstream_ended(8)
    served.upstream_event(9)
    assert down(served) == [], "one goes on"
    served.upstream_ended(9)
    assert up(served)[1] == ("route", 2, 4)
    assert down(served) == [("relay", 9, 30)]


@pytest.mark.parametrize(
    ("admitted", "begun", "phases"),
    [
        (None, 5, []),
        (3, 3, [("admission", 1, 3)]),
        (1, 5, [("route", 1, 5)]),
        (7, 5, [("admission", 1, 7)]),
    ],
    ids=["nobody saw it admitted", "no route", "no admission", "asked on the way in"],
)
def test_a_phase_without_both_its_edges_is_absent(admitted, begun, phases):
    assert up(forwarded(admitted=admitted, begun=begun)) == phases


def test_a_request_that_asks_no_model_has_no_phases():
    served = Served(1)
    served.admitted(3)
    assert (served.is_gateways, up(served), down(served)) == (False, [], [])


def test_a_request_with_an_operation_of_the_applications_is_no_gateways():
    served = forwarded()
    assert served.is_gateways
    served.is_apps_own()
    assert not served.is_gateways


def test_the_last_door_admits_unless_the_application_says_so_itself():
    served = Served(1)
    served.admitted(2)
    served.admitted(4)
    served.timed(PhaseInterval(Phase.ADMISSION, 1, 3, 0, truncated=False))
    served.admitted(6)
    served.upstream_begins(9)
    assert up(served) == [("route", 3, 9)]


@pytest.mark.parametrize("phase", [Phase.ROUTE, Phase.RELAY])
def test_a_phase_that_the_application_times_is_not_written_twice(phase):
    served = forwarded()
    served.timed(PhaseInterval(phase, 1, 3, 0, truncated=False))
    assert phase.value not in {name for name, *_ in up(served) + down(served)}


def test_an_event_is_held_until_the_bytes_that_were_handed_over_after_it_are_sent():
    served = Served(0)
    served.upstream_event(10)
    served.upstream_event(12)
    first = served.sends()
    served.upstream_event(15)  # while the first two are being sent
    served.sent(first, 20)
    assert served.hold_ns == (10 + 8, 10)
    served.sent(served.sends(), 40)
    assert served.hold_ns == (18 + 25, 25)


def test_the_answer_of_an_upstream_that_was_given_up_was_not_held():
    """What it said is read, and never sent down: another one is asked."""
    served = Served(0)
    served.upstream_begins(1)
    served.upstream_event(10)
    served.upstream_begins(500)
    served.upstream_event(510)
    served.sent(served.sends(), 520)
    assert served.hold_ns == (10, 10)


def test_a_rival_that_is_told_of_last_does_not_take_the_relay_away():
    served = Served(0)
    served.upstream_begins(1)
    served.upstream_begins(2)
    served.upstream_event(50)
    served.upstream_event(60)
    served.upstream_ended(60)
    served.upstream_ended(50)
    (relay,) = down(served, 90)
    assert (relay[0], relay[1]) == ("relay", 60)


def test_what_is_never_sent_on_was_not_held():
    served = Served(0)
    served.sent(served.sends(), 5)
    served.upstream_event(10)
    assert served.hold_ns is None


def test_nothing_is_noted_of_a_request_that_is_over():
    served = forwarded(ended=None)
    served.is_over = True
    served.upstream_begins(40)
    served.upstream_event(41)
    served.upstream_ended(42)
    served.admitted(43)
    served.timed(PhaseInterval(Phase.RELAY, 1, 3, 0, truncated=False))
    assert (up(served), down(served)) == ([("admission", 1, 3), ("route", 3, 5)], [])
    assert served.sends() == (2, 30, 10)


def test_a_path_is_told_below_what_it_is_mounted_at():
    served = Served(0)
    assert served.route is None
    served.mounted("/tenants/{id}")
    served.mounted("/v1")
    served.routed("/chat")
    assert served.route == "/tenants/{id}/v1/chat"


def test_a_request_is_under_way_until_it_is_over():
    async def main():
        served = Served(0)
        serving.set(served)
        assert request_underway() is served
        served.is_over = True
        assert request_underway() is None

    asyncio.run(main())


def test_what_nobody_hears_is_not_told():
    async def main():
        served = Served(0, is_heard=False)
        serving.set(served)
        assert (request_underway(), request_heard()) == (served, None)
        served.is_heard = True
        assert request_heard() is served
        served.is_over = True
        assert request_heard() is None

    asyncio.run(main())


@given(some.lists(some.tuples(some.integers(0, 5), some.integers(0, 5), some.booleans())))
def test_the_hold_is_that_of_each_event_by_itself(steps):
    served, now_ns, waiting, holds = Served(0), 1, [], []
    for wait_ns, send_ns, is_sent in steps:
        now_ns += wait_ns
        served.upstream_event(now_ns)
        waiting.append(now_ns)
        if is_sent:
            handed_over = served.sends()
            now_ns += send_ns
            served.sent(handed_over, now_ns)
            holds += [now_ns - each for each in waiting]
            waiting.clear()
    assert served.hold_ns == ((sum(holds), max(holds)) if holds else None)


def test_the_last_byte_is_the_bodys_and_not_what_says_that_it_was_the_last():
    served = forwarded()
    waiting = served.sends()
    served.sent(waiting, 24)
    assert down(served) == [("relay", 20, 24)]
    assert down(served, is_truncated=True) == [("relay", 20, 30)], "it was given up later"
