"""The caller's waiting: what it lends beside its envelopes to a callee that was at work."""

from __future__ import annotations

import pytest

from llmlat_semconv.phases import Phase
from tests.cases.case_format import Json
from tests.llmlat_processor.stages.critical_path.callers import CALLER, served
from tests.llmlat_processor.stages.spans import (
    amounts,
    engine,
    explained,
    findings,
)


def test_a_callee_that_began_while_the_body_was_being_sent_takes_that_out_of_send() -> None:
    """On two clocks no more than is needed to fit."""
    found = explained(*CALLER, *served(25, 30, 30))
    assert amounts(found) == [
        "c send 5",
        "e queue 25",
        "e prefill 30",
        "e decode 30",
        "c finalize 10",
    ]
    assert amounts(found, "ttft") == ["c send 5", "e queue 25", "e prefill 30"]


def test_on_one_clock_the_overlap_with_send_is_what_the_clock_shows() -> None:
    one_clock = {"host": "one", "process": "engine"}
    found = explained(*CALLER, *served(20, 25, 30, ahead=6, **one_clock))
    assert amounts(found) == [
        "c send 6",
        "e queue 20",
        "e prefill 25",
        "e decode 30",
        "c transit 9",
        "c finalize 10",
    ]


def test_so_it_is_where_send_has_a_length_and_no_place() -> None:
    """`wait` begins where it ends. The way to the first content needs what the whole does not."""
    caller, _, *rest = CALLER
    one_clock = {"host": "one", "process": "engine"}
    short = {**caller, "phases": {Phase.SEND.value: 10}}
    found = explained(short, *rest, *served(20, 33, 20, ahead=6, **one_clock))
    assert amounts(found) == [
        "c send 6",
        "e queue 20",
        "e prefill 33",
        "e decode 20",
        "c transit 11",
        "c finalize 10",
    ]
    assert amounts(found, "ttft") == ["c send 6", "e queue 20", "e prefill 33", "c transit 1"]


def test_more_than_all_of_send_cannot_be_taken() -> None:
    found = explained(*CALLER, *served(30, 30, 31))
    assert findings(found) == ["negative_transit of e -11"]


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (engine("e", "c", 0, 85), ["c send 10", "e work 85", "c finalize 5"]),
        (engine("e", "c", 0, 95), ["c send 5", "e work 95"]),
    ],
    ids=["in finalize", "in finalize, then in send"],
)
def test_a_last_output_that_is_the_last_byte_may_come_while_the_caller_finalizes(
    server: Json, expected: list[str]
) -> None:
    assert amounts(explained(*CALLER, server)) == expected


def test_the_end_of_decode_is_no_last_byte_and_takes_nothing_out_of_finalize() -> None:
    found = explained(*CALLER, *served(25, 30, 36))
    assert findings(found) == ["negative_transit of e -11"]
