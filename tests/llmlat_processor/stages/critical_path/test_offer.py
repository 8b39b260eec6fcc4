"""What a peer reported: a callee without a span, bounds that give way, and the consumer."""

from __future__ import annotations

import pytest

from llmlat_semconv.phases import Phase
from tests.cases.case_format import Json
from tests.llmlat_processor.stages.critical_path.callers import CALLER, served
from tests.llmlat_processor.stages.spans import (
    amounts,
    chat,
    explained,
    findings,
    phase,
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


def test_an_engines_account_replaces_what_a_gateway_says_of_its_upstream() -> None:
    both = explained(*reporting(upstream=78, queue=20, prefill=25, decode=30))
    engine_alone = explained(*reporting(queue=20, prefill=25, decode=30))
    for path in ("e2e", "ttft"):
        assert amounts(both, path) == amounts(engine_alone, path)


def asked_whole(**reported: float) -> list[Json]:
    """A call that was not streamed."""
    return [
        chat("c", None, 0, 100, reported=reported),
        phase(Phase.SEND, "c", 0, 10),
        phase(Phase.WAIT, "c", 10, 90),
        phase(Phase.FINALIZE, "c", 90, 100),
    ]


@pytest.mark.parametrize(
    ("reported", "waiting"),
    [
        ({"tokenize": 2, "queue": 20}, ["tokenize 2", "queue 20", "wait 58"]),
        ({"upstream": 70}, ["upstream 70", "transit 10"]),
        (
            {"upstream": 70, "tokenize": 2, "queue": 20},
            ["tokenize 2", "queue 20", "upstream 48", "transit 10"],
        ),
        ({"upstream": 15, "tokenize": 2, "queue": 20}, ["tokenize 2", "queue 20", "wait 58"]),
        (
            {"admission": 3, "upstream": 70, "prefill": 25, "decode": 40},
            ["admission 3", "prefill 25", "decode 40", "transit 12"],
        ),
        (
            {"queue": 20, "kv_transfer": 5, "prefill": 25, "decode": 30, "preempted": 4},
            ["queue 15", "kv_transfer 5", "prefill 25", "decode 26", "preempted 4", "transit 5"],
        ),
    ],
    ids=[
        "engine, its queue only",
        "gateway, which waited for all of it",
        "both",
        "both, at odds",
        "both, the engine wholly",
        "phases in phases are not counted twice",
    ],
)
def test_what_is_reported_of_a_whole_response(
    reported: dict[str, float], waiting: list[str]
) -> None:
    found = explained(*asked_whole(**reported))
    assert amounts(found) == ["c send 10", *(f"c {each}" for each in waiting), "c finalize 10"]
    assert findings(found) == []


def test_the_head_of_a_stream_is_no_output_and_what_follows_it_is_no_transit() -> None:
    found = explained({**CALLER[0], "reported": {"upstream": 5}, "consumer": 12}, *CALLER[1:])
    before = ["c send 10", "c upstream 5", "c wait 45"]
    assert amounts(found) == [*before, "c stream 18", "c consumer 12", "c finalize 10"]
    assert amounts(found, "ttft") == before


def test_a_queue_that_is_all_that_is_known_is_a_part_of_the_waiting() -> None:
    found = explained(*reporting(queue=70))
    assert amounts(found) == ["c send 10", "c queue 50", "c stream 30", "c finalize 10"]
    assert amounts(found, "ttft") == ["c send 10", "c queue 50"]


def test_a_part_may_reach_past_a_chunk_that_only_names_the_role() -> None:
    found = explained(
        chat("c", None, 0, 100, reported={"queue": 20, "prefill": 30}),
        phase(Phase.SEND, "c", 0, 10),
        phase(Phase.WAIT, "c", 10, 40),
        phase(Phase.FIRST_CONTENT, "c", 40, 70),
        phase(Phase.STREAM, "c", 70, 100),
    )
    assert amounts(found) == [
        "c send 10",
        "c queue 20",
        "c prefill 30",
        "c first_content 10",
        "c stream 30",
    ]


def test_a_part_that_does_not_fit_is_said() -> None:
    found = explained(*asked_whole(tokenize=2, queue=90))
    assert amounts(found) == ["c send 10", "c wait 80", "c finalize 10"]
    assert [line.split()[0] for line in findings(found)] == ["negative_transit"]
