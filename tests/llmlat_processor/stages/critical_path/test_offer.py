"""What a peer reported: a callee without a span, bounds that give way, and the consumer."""

from __future__ import annotations

import pytest

from tests.cases.case_format import Json
from tests.llmlat_processor.stages.critical_path.callers import CALLER, served
from tests.llmlat_processor.stages.spans import (
    amounts,
    explained,
    findings,
)


def reporting(**reported: float) -> list[Json]:
    return [{**CALLER[0], "reported": reported, "bounded": ["queue"]}, *CALLER[1:]]


def test_a_report_is_a_callee_in_the_order_of_the_contract_under_the_callers_id() -> None:
    found = explained(*reporting(decode=30, prefill=25, queue=20))
    assert amounts(found) == [
        "c send 10",
        "c queue 20",
        "c prefill 25",
        "c decode 30",
        "c transit 5",
        "c finalize 10",
    ]
    assert amounts(found, "ttft") == ["c send 10", "c queue 20", "c prefill 25", "c transit 5"]
    evidence = [section.evidence.value for section in found.sections("e2e", None)]
    assert evidence[1:5] == ["bounded", "reported", "reported", "derived"]


@pytest.mark.parametrize(
    ("bound", "queue"), [(25, "c queue 25"), (45, "c queue 25"), (9, "c queue 9")]
)
def test_a_bounded_duration_is_cut_to_what_fits(bound: float, queue: str) -> None:
    found = explained(*reporting(queue=bound, prefill=25, decode=30))
    assert queue in amounts(found)
    assert findings(found) == []


def test_a_bounded_duration_for_which_no_room_is_left_is_gone() -> None:
    found = explained(*reporting(queue=15, prefill=45, decode=35))
    assert amounts(found) == ["c send 10", "c prefill 45", "c decode 35", "c finalize 10"]


def test_a_report_that_does_not_fit_even_without_its_bounds_is_said() -> None:
    found = explained(*reporting(queue=15, prefill=75, decode=35))
    assert amounts(found) == ["c send 10", "c wait 50", "c stream 30", "c finalize 10"]
    assert [line.split()[0] for line in findings(found)] == ["negative_transit"]


def test_surplus_is_the_consumers_first_and_no_more_than_it_took() -> None:
    slow = {**CALLER[0], "consumer": 12}
    for decode, consumed in ((20, "c consumer 12"), (25, "c consumer 10")):
        found = explained(slow, *CALLER[1:], *served(20, 25, decode))
        assert consumed in amounts(found)
    assert not any("consumer" in line for line in amounts(found, "ttft"))


def test_without_a_callee_stream_splits_into_waiting_at_the_pull_and_the_consumer() -> None:
    found = explained({**CALLER[0], "consumer": 12}, *CALLER[1:])
    assert amounts(found) == [
        "c send 10",
        "c wait 50",
        "c stream 18",
        "c consumer 12",
        "c finalize 10",
    ]
