"""Lines of JSON in, timelines and defects out: a defect is named, never turned into a number."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from llmlat_processor.profile import STAMPS, Timeline

# Stamps past this are no times: 2**63 nanoseconds, the largest that OTLP's own clocks can say.
LIMIT_MS: Final = Decimal(2**63) / 1_000_000


@dataclass(frozen=True, slots=True)
class Defect:
    """Why one record was refused.

    Attributes:
        line: 1-based number of the line.
        request_id: the request, or None where the line does not say.
        problem: what is wrong, for a person.
    """

    line: int
    request_id: str | None
    problem: str


@dataclass(frozen=True, slots=True)
class Records:
    """What a file of timelines holds: a profile is made only where `defects` is empty."""

    timelines: tuple[Timeline, ...]
    defects: tuple[Defect, ...]


def read_records(lines: Iterable[str | bytes]) -> Records:
    """Read one JSON object a line; blank lines are passed over, every defect is listed."""
    timelines: list[Timeline] = []
    defects: list[Defect] = []
    first_seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        read = _read_line(line)
        request_id, problems = read.request_id, list(read.problems)
        if request_id is not None and first_seen.setdefault(request_id, number) != number:
            problems.append(f"request_id was already given on line {first_seen[request_id]}")
        defects.extend(Defect(number, request_id, problem) for problem in problems)
        if read.timeline is not None and not problems:
            timelines.append(read.timeline)
    return Records(tuple(timelines), tuple(defects))


@dataclass(frozen=True, slots=True)
class _Line:
    request_id: str | None
    problems: Sequence[str]
    timeline: Timeline | None = None


def _read_line(line: str | bytes) -> _Line:
    try:
        record = json.loads(
            line, parse_float=Decimal, parse_constant=Decimal, object_pairs_hook=_unique
        )
    except RecursionError:
        return _Line(None, ["not JSON that can be read: nested too deeply"])
    except (ValueError, ArithmeticError) as error:  # the latter: an exponent beyond bounds
        return _Line(None, [f"not JSON that can be read: {error}"])
    if not isinstance(record, Mapping):
        return _Line(None, [f"a timeline is a JSON object, not {_kind(record)}"])
    return _read_record(record)


def _read_record(record: Mapping[str, object]) -> _Line:
    problems: list[str] = []
    request_id = _request_id(record, problems)
    prompt_tokens = _count(record, "prompt_tokens", problems)
    output_tokens = _count(record, "output_tokens", problems)
    stamps = [_stamp_ns(record, f"{name}_ms", problems) for name in STAMPS]
    problems += _disorder(stamps)
    if problems or request_id is None or prompt_tokens is None or output_tokens is None:
        return _Line(request_id, problems)
    known = tuple(stamp for stamp in stamps if stamp is not None)
    return _Line(request_id, [], Timeline(request_id, prompt_tokens, output_tokens, known))


def _unique(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Refuse an object that says one thing twice: the standard library keeps the last silently."""
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice} is given twice")
    return record


def _request_id(record: Mapping[str, object], problems: list[str]) -> str | None:
    value = record.get("request_id")
    if isinstance(value, str) and value:
        return value
    if "request_id" not in record:
        problems.append("request_id is missing")
    else:
        problems.append(f"request_id must be a non-empty string, not {_kind(value)}")
    return None


def _count(record: Mapping[str, object], name: str, problems: list[str]) -> int | None:
    value = record.get(name)
    if name not in record:
        problems.append(f"{name} is missing")
    elif isinstance(value, bool) or not isinstance(value, int):
        problems.append(f"{name} must be an integer, not {_kind(value)}")
    elif value < 1:
        problems.append(f"{name} must be at least 1, not {value}")
    else:
        return value
    return None


def _stamp_ns(record: Mapping[str, object], name: str, problems: list[str]) -> int | None:
    """Milliseconds as written, to the nearest nanosecond; decimal, so that 0.1 ms is 0.1 ms.

    Rounding comes before the comparison of stamps: 30.000000000000004 before 30.0 is the float
    arithmetic of whoever wrote the record, not a clock that ran backwards.
    """
    value = record.get(name)
    if name not in record:
        problems.append(f"{name} is missing")
    elif isinstance(value, bool) or not isinstance(value, int | Decimal):
        problems.append(f"{name} must be a number of milliseconds, not {_kind(value)}")
    elif not Decimal(value).is_finite():
        problems.append(f"{name} must be finite, not {value}")
    elif abs(Decimal(value)) > LIMIT_MS:
        problems.append(f"{name} is no time: its magnitude is over 2**63 nanoseconds")
    else:
        return int((Decimal(value) * 1_000_000).to_integral_value())
    return None


def _disorder(stamps: Sequence[int | None]) -> list[str]:
    """Compare each stamp with the last one before it that could be read."""
    problems: list[str] = []
    before: tuple[str, int] | None = None
    for name, stamp in zip(STAMPS, stamps, strict=True):
        if stamp is None:
            continue
        if before is not None and stamp < before[1]:
            late = Decimal(before[1] - stamp) / 1_000_000
            problems.append(f"{name}_ms is {late.normalize():f} ms before {before[0]}_ms")
        before = (name, stamp)
    return problems


def _kind(value: object) -> str:
    """Name a JSON value without repeating it: it may be long, or nobody's business."""
    names = {type(None): "null", bool: "a boolean", int: "an integer", str: "a string"}
    names |= {Decimal: "a fraction", list: "an array", dict: "an object"}
    if value == "":
        return "an empty string"
    return names.get(type(value), "something else")
