"""Notes: what travels with a request, as text and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmlat_otel.core.engine_timeline import Mark
from llmlat_otel.instrumentors.vllm import notes
from llmlat_otel.instrumentors.vllm.notes import ARRIVAL, ASKED, MARKS, STEPS, Notes, read


def marks(*stamps):
    text = ""
    for mark, at_ns in stamps:
        text = notes.with_mark(text, mark, at_ns)
    return text


def test_what_is_told_is_read():
    told = {
        "traceparent": "00-1-2-01",
        ARRIVAL: notes.arrival("domain", 3, 8),
        MARKS: marks((Mark.QUEUED, 1000), (Mark.SCHEDULED, 2500)),
        STEPS: notes.steps([64, 64, 7], 3, 8),
    }
    assert told[MARKS] == "q1000,s2500"
    stamps = ((Mark.QUEUED, 1000), (Mark.SCHEDULED, 2500))
    assert read(told) == Notes("domain", 3, 8, stamps, (64, 64, 7), 3, 8)


NOTHING = {
    "no headers": None,
    "none of ours": {"traceparent": "00-1-2-01"},
    "asked, and not told": {ARRIVAL: ASKED},
    "not of ours": {ARRIVAL: "a;b", MARKS: "x1", STEPS: "1"},
    "not numbers": {ARRIVAL: "d;1;x", MARKS: "q,s1", STEPS: "1,x;2;3"},
    "empty": {ARRIVAL: "", MARKS: "", STEPS: ""},
}


@pytest.mark.parametrize("headers", NOTHING.values(), ids=NOTHING)
def test_what_is_no_note_is_left_out(headers):
    assert read(headers) == Notes()


def test_one_that_cannot_be_read_takes_none_of_the_others_along():
    told = {ARRIVAL: "?", MARKS: "q1", STEPS: ";0;2"}
    assert read(told) == Notes(stamps=((Mark.QUEUED, 1),), chunk_count=0, batch_max=2)


def test_a_mark_like_the_one_before_says_nothing_new():
    assert marks((Mark.SCHEDULED, 1), (Mark.SCHEDULED, 2)) == "s1"


def test_what_has_begun_is_ended_although_there_is_no_room_for_more():
    evicted = [(mark, at) for at in range(2, 200, 2) for mark in (Mark.EVICTED, Mark.SCHEDULED)]
    text = marks((Mark.QUEUED, 1), (Mark.SCHEDULED, 1), *evicted)
    stamps = read({MARKS: text}).stamps
    assert stamps[-2:] == ((Mark.EVICTED, 64), (Mark.SCHEDULED, 64))


@given(st.lists(st.tuples(st.sampled_from(list(Mark)), st.integers(1, 2**63)), max_size=300))
def test_marks_are_read_as_they_were_made_and_stay_short(stamps):
    text = marks(*stamps)
    found = read({MARKS: text}).stamps
    changes = [
        each
        for each, before in zip(stamps, [None, *stamps], strict=False)
        if before is None or each[0] is not before[0]
    ]
    assert list(found[: notes.MARKS_MAX]) == changes[: notes.MARKS_MAX]
    assert len(text) < 3_000


@given(st.dictionaries(st.sampled_from([ARRIVAL, MARKS, STEPS, "x"]), st.text()))
def test_whatever_comes_back_is_read_without_an_error(headers):
    assert isinstance(read(headers), Notes)
