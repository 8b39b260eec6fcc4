"""A decoding loop: whatever it picks, its phases meet and its tokens are those of its rows."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmlat_otel.core.decoding import Decoding, Loop, Picks
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from tests.llmlat_otel.instrumentors.fake_transformers import Rows

CRITERIA = object()


class Round(NamedTuple):
    """How long a round takes until it asks, and from there on; others may be asked as well."""

    picking: int
    answering: int
    asks_others: bool


ROUNDS = st.builds(Round, st.integers(0, 10**12), st.integers(0, 10**12), st.booleans())
BATCHES = st.lists(st.integers(1, 6), min_size=1, max_size=5)


@st.composite
def runs(draw):
    """The tokens that each row gets, and a round for each of the longest."""
    lengths = draw(BATCHES)
    return lengths, draw(st.lists(ROUNDS, min_size=max(lengths), max_size=max(lengths)))


def loop(rows, *, is_on_host=True, picks=Picks.TOKENS):
    return Loop(picks, rows, 10, CRITERIA, is_on_host, 10, 0)


def run(decoding, lengths, rounds, now_ns):
    """Go round until all are done; what each round said when it asked, and when it was answered."""
    decoding.went_round(now_ns, is_last=False)
    stamps = []
    for number, each in enumerate(rounds, 1):
        asked_ns = now_ns + each.picking
        now_ns = asked_ns + each.answering
        if each.asks_others:
            decoding.asked(object(), 99, asked_ns - 1)
            decoding.answered(object(), Rows([True] * len(lengths)))
        decoding.asked(CRITERIA, 10 + number, asked_ns)
        decoding.answered(CRITERIA, Rows(number >= length for length in lengths))
        decoding.went_round(now_ns, is_last=False)
        stamps.append((asked_ns, now_ns))
    return stamps


@given(runs(), st.booleans())
def test_tokens_are_those_of_each_row_and_phases_meet(case, is_on_host):
    lengths, rounds = case
    decoding = Decoding(loop(len(lengths), is_on_host=is_on_host), 1_000)
    stamps = run(decoding, lengths, rounds, 1_000)
    assert decoding.tokens_after_the_first() == sum(lengths) - len(lengths)
    facts = decoding.facts()
    assert facts[names.LLMLAT_DECODE_STEPS] == len(rounds) - 1
    assert facts[names.LLMLAT_PREFILL_COMPUTED_TOKENS] == 10 * len(lengths)
    first_ns, last_ns = (stamps[place][0 if is_on_host else 1] for place in (0, -1))
    assert decoding.first_ns == first_ns
    found = {each.phase: each for each in decoding.phases(None)}
    edges = {Phase.PREFILL: (1_000, first_ns), Phase.DECODE: (first_ns, last_ns)}
    lasting = {phase: edge for phase, edge in edges.items() if edge[0] < edge[1]}
    assert {phase: (each.start_ns, each.end_ns) for phase, each in found.items()} == lasting
    assert not any(each.truncated for each in found.values())


@given(runs(), st.integers(0, 5), st.integers(1, 10**12))
def test_what_was_picked_before_it_was_given_up_is_counted(case, most, later):
    lengths, rounds = case
    rounds = rounds[:most]
    decoding = Decoding(loop(len(lengths)), 1_000)
    stamps = run(decoding, lengths, rounds, 1_000)
    end_ns = later + (stamps[-1][1] if stamps else 1_000)
    decoding.given_up()
    found = decoding.phases(end_ns)
    assert (found[0].start_ns, found[-1].end_ns) == (1_000, end_ns)
    assert sum(each.end_ns - each.start_ns for each in found) == end_ns - 1_000
    assert [each.truncated for each in found] == [False] * (len(found) - 1) + [True]
    picked = sum(min(length, len(rounds)) for length in lengths)
    expected = picked - len(lengths) if rounds else None
    assert decoding.tokens_after_the_first() == expected


def test_it_counts_no_token_of_which_nobody_told():
    decoding = Decoding(loop(1), 0)
    for at_ns in (0, 30, 60):
        decoding.went_round(at_ns, is_last=False)
    assert decoding.tokens_after_the_first() is None
    assert decoding.facts()[names.LLMLAT_DECODE_STEPS] == 1


@pytest.mark.parametrize("picks", [Picks.BEAMS, Picks.DRAFTED])
def test_only_a_draft_s_last_answer_is_of_what_was_picked(picks):
    decoding = Decoding(loop(1, picks=picks), 0)
    decoding.went_round(1, is_last=False)
    decoding.asked(CRITERIA, 15, 10)
    decoding.asked(CRITERIA, 13, 20)
    decoding.went_round(30, is_last=False)
    is_drafted = picks is Picks.DRAFTED
    assert decoding.first_ns == (30 if is_drafted else 20)
    assert decoding.tokens_after_the_first() == (2 if is_drafted else None)


def test_a_draft_that_was_given_up_has_picked_nothing():
    decoding = Decoding(loop(1, picks=Picks.DRAFTED), 0)
    decoding.went_round(1, is_last=False)
    decoding.asked(CRITERIA, 15, 10)
    decoding.given_up()
    assert decoding.first_ns is None
    assert decoding.tokens_after_the_first() is None


@pytest.mark.parametrize("criteria", [CRITERIA, object()])
def test_it_is_stopped_by_its_own_criteria_only(criteria):
    decoding = Decoding(loop(1), 0)
    decoding.stopped(criteria)
    assert decoding.is_stopped is (criteria is CRITERIA)
