"""Lines of JSON become timelines, or defects that name the line, the request and the field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llmlat_processor.profile import STAMPS
from llmlat_processor.timelines.demo import defective_lines
from llmlat_processor.timelines.records import Defect, read_records
from llmlat_processor.timelines.report import refusal_document, refusal_text


def record(**changed: Any) -> dict[str, Any]:
    stamps = {f"{name}_ms": position * 1.5 for position, name in enumerate(STAMPS)}
    return {"request_id": "r1", "prompt_tokens": 4, "output_tokens": 2, **stamps} | changed


def line(**changed: Any) -> str:
    return json.dumps(record(**changed))


def problems(*lines: str | bytes) -> list[str]:
    return [defect.problem for defect in read_records(lines).defects]


def test_a_good_line_is_a_timeline_in_nanoseconds() -> None:
    records = read_records([line()])

    assert records.defects == ()
    assert records.timelines[0].stamps_ns == tuple(1_500_000 * i for i in range(8))


def test_stamps_are_read_as_decimals() -> None:
    """As a float, a wall-clock stamp in ms is good to a quarter of a microsecond only."""
    stamps = {f"{name}_ms": f"176442000000{i}.123457" for i, name in enumerate(STAMPS)}
    text = json.dumps(record(**stamps)).replace('"1764', "1764").replace('123457"', "123457")

    assert read_records([text]).timelines[0].stamps_ns[0] == 1_764_420_000_000_123_457


def test_blank_lines_count_but_say_nothing() -> None:
    records = read_records(["", line(), "  \n", line(request_id="r2", prompt_tokens=0)])

    assert len(records.timelines) == 1
    assert [defect.line for defect in records.defects] == [4]


def test_a_record_may_carry_more_than_it_must() -> None:
    assert read_records([line(model="gemma", tags=[1, {"a": None}])]).defects == ()


def test_the_float_arithmetic_of_the_writer_is_no_disorder() -> None:
    stamps = {f"{name}_ms": 30.0 for name in STAMPS} | {"queue_enter_ms": 30.000000000000004}

    assert problems(line(**stamps)) == []


def test_prefill_that_ends_before_it_starts_is_refused() -> None:
    assert read_records(defective_lines()).defects == (
        Defect(1, "demo-skewed", "prefill_end_ms is 5 ms before prefill_start_ms"),
    )


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"request_id": ""}, "request_id must be a non-empty string, not an empty string"),
        ({"request_id": 7}, "request_id must be a non-empty string, not an integer"),
        ({"prompt_tokens": 0}, "prompt_tokens must be at least 1, not 0"),
        ({"output_tokens": -3}, "output_tokens must be at least 1, not -3"),
        ({"output_tokens": True}, "output_tokens must be an integer, not a boolean"),
        ({"output_tokens": 2.0}, "output_tokens must be an integer, not a fraction"),
        ({"output_tokens": "2"}, "output_tokens must be an integer, not a string"),
        ({"prompt_tokens": None}, "prompt_tokens must be an integer, not null"),
        ({"queue_enter_ms": float("nan")}, "queue_enter_ms must be finite, not NaN"),
        ({"queue_enter_ms": float("inf")}, "queue_enter_ms must be finite, not Infinity"),
        ({"queue_enter_ms": float("-inf")}, "queue_enter_ms must be finite, not -Infinity"),
        ({"queue_enter_ms": "3"}, "queue_enter_ms must be a number of milliseconds, not a string"),
        (
            {"queue_enter_ms": True},
            "queue_enter_ms must be a number of milliseconds, not a boolean",
        ),
        ({"queue_enter_ms": []}, "queue_enter_ms must be a number of milliseconds, not an array"),
        ({"last_token_client_ms": 1e20}, "last_token_client_ms is no time: its magnitude is over"),
        ({"first_token_client_ms": 7.0}, "first_token_client_ms is 0.5 ms before first_token_serv"),
    ],
)
def test_a_wrong_value_is_named(changed: dict[str, Any], problem: str) -> None:
    (found,) = problems(line(**changed))

    assert found.startswith(problem)


@pytest.mark.parametrize("field", [*record()])
def test_a_missing_field_is_named(field: str) -> None:
    text = json.dumps({name: value for name, value in record().items() if name != field})

    assert problems(text) == [f"{field} is missing"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not JSON that can be read"),
        (b'{"request_id": "\xff"}', "not JSON that can be read"),
        ('{"prompt_tokens": 1e99999999999999999999}', "not JSON that can be read"),
        ('{"prompt_tokens": ' + "9" * 5000 + "}", "not JSON that can be read"),
        ("[" * 100_000, "not JSON that can be read: nested too deeply"),
        ("[]", "a timeline is a JSON object, not an array"),
        ("null", "a timeline is a JSON object, not null"),
        ('{"a": 1, "a": 2}', "not JSON that can be read: a is given twice"),
    ],
)
def test_a_line_that_is_no_record_is_refused(text: str | bytes, problem: str) -> None:
    assert problems(text)[0].startswith(problem)


def test_every_problem_of_every_record_is_listed() -> None:
    defects = read_records(
        [line(prompt_tokens=0, output_tokens=0), line(request_id="r2", client_send_ms=None)]
    ).defects

    assert [(defect.line, defect.request_id) for defect in defects] == [
        (1, "r1"),
        (1, "r1"),
        (2, "r2"),
    ]


def test_a_disorder_is_found_across_a_stamp_that_cannot_be_read() -> None:
    assert problems(line(prefill_start_ms=None, prefill_end_ms=1.0)) == [
        "prefill_start_ms must be a number of milliseconds, not null",
        "prefill_end_ms is 2 ms before queue_enter_ms",
    ]


def test_a_request_given_twice_is_refused_where_it_comes_again() -> None:
    records = read_records([line(), line(request_id="r2"), line()])

    assert records.defects == (Defect(3, "r1", "request_id was already given on line 1"),)


def test_refusal_names_file_line_and_request() -> None:
    defects = read_records(["[", line(prompt_tokens=0)]).defects

    assert refusal_text(defects, "log.jsonl").splitlines() == [
        "log.jsonl:1: request unknown: not JSON that can be read: "
        "Expecting value: line 1 column 2 (char 1)",
        "log.jsonl:2: request 'r1': prompt_tokens must be at least 1, not 0",
        "log.jsonl: refused, 2 problems; a defective record is never turned into a number",
    ]
    assert refusal_document(defects, "log.jsonl") == {
        "refused": [
            {
                "file": "log.jsonl",
                "line": 1,
                "request_id": None,
                "problem": "not JSON that can be read: Expecting value: line 1 column 2 (char 1)",
            },
            {
                "file": "log.jsonl",
                "line": 2,
                "request_id": "r1",
                "problem": "prompt_tokens must be at least 1, not 0",
            },
        ]
    }
