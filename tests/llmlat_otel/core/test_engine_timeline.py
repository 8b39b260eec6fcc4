"""The timeline of an engine request: by hand as pictures, and invariants of every one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmlat_otel.core.engine_timeline import Mark, Outputs, phases_of
from llmlat_semconv.phases import Phase

Q, S, P, K, L = Mark.QUEUED, Mark.SCHEDULED, Mark.EVICTED, Mark.KV_ASKED, Mark.KV_PRESENT
NOTHING = Outputs(None, None)
S_NS = 1_000_000_000


def told(stamps, outputs=NOTHING, given_up_ns=None):
    """The phases as `name start-end`, a star behind what was cut short."""
    return [
        f"{each.phase.value} {each.start_ns}-{each.end_ns}{'*' * each.truncated}"
        for each in phases_of(stamps, outputs, given_up_ns)
    ]


# Requests that came to their end


def test_a_request_waits_is_read_and_answered():
    assert told([(Q, 10), (S, 20)], Outputs(30, 90)) == [
        "queue 10-20",
        "prefill 20-30",
        "decode 30-90",
    ]


def test_one_token_is_no_decode():
    assert told([(Q, 10), (S, 20)], Outputs(30, 30)) == ["queue 10-20", "prefill 20-30"]


def test_an_eviction_before_the_first_token_cuts_the_prefill():
    stamps = [(Q, 10), (S, 20), (P, 30), (S, 50)]
    assert told(stamps, Outputs(60, 90)) == [
        "queue 10-20",
        "prefill 20-30",
        "preempted 30-50",
        "prefill 50-60",
        "decode 60-90",
    ]


def test_an_eviction_after_the_first_token_lies_within_decode():
    stamps = [(Q, 10), (S, 20), (P, 40), (S, 60), (P, 70), (S, 75)]
    assert told(stamps, Outputs(30, 90)) == [
        "queue 10-20",
        "prefill 20-30",
        "decode 30-90",
        "preempted 40-60",
        "preempted 70-75",
    ]


def test_a_token_that_was_on_its_way_as_its_request_was_evicted():
    stamps = [(Q, 10), (S, 20), (P, 40), (S, 60)]
    assert told(stamps, Outputs(45, 90)) == [
        "queue 10-20",
        "prefill 20-40",
        "preempted 40-60",
        "decode 60-90",
    ]


def test_an_eviction_at_the_very_first_token_lies_within_decode_too():
    assert told([(Q, 10), (S, 20), (P, 30), (S, 50)], Outputs(30, 90)) == [
        "queue 10-20",
        "prefill 20-30",
        "decode 30-90",
        "preempted 30-50",
    ]


def test_a_transfer_lies_within_queue():
    stamps = [(Q, 10), (K, 12), (L, 18), (S, 20)]
    assert told(stamps, Outputs(30, 30)) == ["queue 10-20", "kv_transfer 12-18", "prefill 20-30"]


def test_en_02_a_second_queueing_never_overwrites_the_first():
    stamps = [(Q, 1 * S_NS), (S, 2 * S_NS), (Q, 50 * S_NS), (S, 51 * S_NS)]
    phases = phases_of(stamps, Outputs(60 * S_NS, 60 * S_NS))
    queues = [each for each in phases if each.phase is Phase.QUEUE]
    assert [(each.start_ns // S_NS, each.end_ns // S_NS) for each in queues] == [(1, 2), (50, 51)]
    assert sum(each.end_ns - each.start_ns for each in queues) == 2 * S_NS


def test_a_stamp_from_before_the_one_before_it_is_moved_up():
    assert told([(Q, 20), (S, 15), (P, 40), (S, 30)], Outputs(50, 50)) == [
        "prefill 20-40",
        "prefill 40-50",
    ]


# Requests that were given up


def test_en_01_a_stage_that_was_never_reached_is_absent_and_the_one_before_it_ends_with_the_abort():
    stamps = [(Q, 100 * S_NS), (S, 0)]
    (queue,) = phases_of(stamps, Outputs(0, 0), 103 * S_NS)
    assert (queue.phase, queue.truncated) == (Phase.QUEUE, True)
    assert queue.end_ns - queue.start_ns == 3 * S_NS


GIVEN_UP = {
    "in the queue": ([(Q, 10)], NOTHING, ["queue 10-80*"]),
    "as its cache comes": ([(Q, 10), (K, 20)], NOTHING, ["queue 10-80*", "kv_transfer 20-80*"]),
    "in prefill": ([(Q, 10), (S, 20)], NOTHING, ["queue 10-20", "prefill 20-80*"]),
    "evicted from prefill": (
        [(Q, 10), (S, 20), (P, 30)],
        NOTHING,
        ["queue 10-20", "prefill 20-30", "preempted 30-80*"],
    ),
    "in decode": (
        [(Q, 10), (S, 20)],
        Outputs(30, 50),
        ["queue 10-20", "prefill 20-30", "decode 30-80*"],
    ),
    "evicted from decode": (
        [(Q, 10), (S, 20), (P, 60)],
        Outputs(30, 50),
        ["queue 10-20", "prefill 20-30", "decode 30-80*", "preempted 60-80*"],
    ),
}


@pytest.mark.parametrize(("stamps", "outputs", "right"), GIVEN_UP.values(), ids=GIVEN_UP)
def test_what_a_request_was_in_ends_cut_short_as_it_is_given_up(stamps, outputs, right):
    assert told(stamps, outputs, 80) == right


@pytest.mark.parametrize(("stamps", "outputs"), [each[:2] for each in GIVEN_UP.values()])
def test_what_has_no_end_is_left_out(stamps, outputs):
    cut = {line for line in told(stamps, outputs, 80) if line.endswith("*")}
    assert cut
    whole = told(stamps, outputs)
    assert not any(line.endswith("*") for line in whole)
    assert len(whole) <= len(told(stamps, outputs, 80))


def test_nothing_is_said_of_nothing():
    assert told([]) == told([], NOTHING, 80) == told([], Outputs(30, 90)) == []


# Every timeline

instants = st.integers(1, 60)
stamped = st.lists(st.tuples(st.sampled_from(list(Mark)), instants), max_size=12)
states = st.lists(st.tuples(st.sampled_from([Q, S, P]), instants), max_size=12)


@st.composite
def outputs_of(draw):
    if not draw(st.booleans()):
        return NOTHING
    first, last = sorted((draw(instants), draw(instants)))
    return Outputs(first, last)


ends = st.none() | st.integers(61, 80)


def top(phases):
    """Those that lie in no other."""
    return [each for each in phases if each.phase not in {Phase.KV_TRANSFER, Phase.PREEMPTED}] + [
        each for each in phases if each.phase is Phase.PREEMPTED and not _is_in_decode(each, phases)
    ]


def _is_in_decode(inner, phases):
    return any(
        each.phase is Phase.DECODE
        and each.start_ns <= inner.start_ns
        and inner.end_ns <= each.end_ns
        for each in phases
    )


@given(states, outputs_of(), ends)
def test_no_two_overlap_but_evictions_within_decode(stamps, outputs, given_up_ns):
    phases = sorted(top(phases_of(stamps, outputs, given_up_ns)), key=lambda each: each.start_ns)
    assert all(one.end_ns <= other.start_ns for one, other in pairwise(phases))


@given(stamped, outputs_of(), ends)
def test_none_is_empty_or_negative_and_all_lie_within_what_was_stamped(
    stamps, outputs, given_up_ns
):
    phases = phases_of(stamps, outputs, given_up_ns)
    known = [at_ns for _, at_ns in stamps] + [each for each in (*outputs, given_up_ns) if each]
    for each in phases:
        assert each.start_ns < each.end_ns
        assert min(known) <= each.start_ns
        assert each.end_ns <= max(known)


@given(stamped, outputs_of(), ends)
def test_they_come_in_the_order_of_their_starts(stamps, outputs, given_up_ns):
    starts = [each.start_ns for each in phases_of(stamps, outputs, given_up_ns)]
    assert starts == sorted(starts)


@given(stamped, outputs_of())
def test_only_what_was_given_up_is_cut(stamps, outputs):
    assert not any(each.truncated for each in phases_of(stamps, outputs))


@given(states, outputs_of(), st.integers(61, 80))
def test_from_the_first_stamp_to_the_end_all_is_accounted_for(stamps, outputs, given_up_ns):
    in_order = sorted(stamps, key=lambda each: each[1])
    phases = top(phases_of(in_order, outputs, given_up_ns))
    lengths = sum(each.end_ns - each.start_ns for each in phases)
    assert lengths == (given_up_ns - in_order[0][1] if in_order else 0)


@given(stamped, outputs_of(), ends, st.sampled_from(list(Mark)), st.integers(0, 12))
def test_a_stamp_of_0_says_nothing(stamps, outputs, given_up_ns, mark, place):
    with_zero = [*stamps[:place], (mark, 0), *stamps[place:]]
    without = phases_of(stamps, outputs, given_up_ns)
    assert phases_of(with_zero, outputs, given_up_ns) == without


@given(states, outputs_of(), ends)
def test_decode_is_there_only_once_a_token_is(stamps, outputs, given_up_ns):
    phases = phases_of(stamps, outputs, given_up_ns)
    decodes = [each for each in phases if each.phase is Phase.DECODE]
    first_ns = outputs.first_ns
    assert not decodes or (first_ns is not None and decodes[0].start_ns >= first_ns)
