"""Holds the processor to every case file of a folder: `pytest tests/cases --cases DIR`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from difflib import unified_diff
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from llmlat_processor.model import AlignedTrace, Span
from llmlat_processor.pipeline import process
from tests.cases.case_format import EXACT, Case, read_case
from tests.cases.case_spans import spans_of
from tests.cases.claims import Claim, claims_of
from tests.cases.outcome import Outcome
from tests.cases.variants import Standing, Variant, standing_of, variants_of

OUR_FILES = Path(__file__).parent / "paths"

# Files that the processor isn't held to, because nothing computes offsets of clocks yet.
NOT_YET = {
    "clock_child_longer_than_call",
    "clock_one_way_upper_bound_only",
    "clock_quantisation_tolerance",
    "clock_single_pair_interval",
    "clock_streaming_chunks_tighten_lower_bound",
    "clock_three_domain_negative_cycle",
    "clock_two_pairs_tighten",
    "clock_zero_default_milestone",
}

# Every order of a trace this small is tried; of a larger one, there and back.
ALL_ORDERS_UP_TO = 4
BOTH_ORDERS_UP_TO = 1_000


def cases_in(folder: Path) -> list[Case]:
    return [read_case(path) for path in sorted(folder.glob("*.json"))]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "variant" in metafunc.fixturenames:
        cases = cases_in(metafunc.config.getoption("--cases"))
        variants = [variant for case in cases for variant in variants_of(case)]
        metafunc.parametrize("variant", variants, ids=[variant.name for variant in variants])


def test_case(variant: Variant) -> None:
    claims = list(claims_of(variant.case, variant.case.expected))
    assert claims, "a case that claims nothing"
    for spans in _orders(spans_of(variant.case)):
        outcome = Outcome(variant.case, process(spans, variant.assumptions))
        differences = "\n".join(line for claim in claims for line in _difference(claim, outcome))
        assert not differences, f"{variant.name}\n{differences}"


def _orders(spans: Sequence[Span]) -> Iterator[Sequence[Span]]:
    if len(spans) <= ALL_ORDERS_UP_TO:
        yield from permutations(spans)
    else:
        yield spans
        if len(spans) <= BOTH_ORDERS_UP_TO:
            yield spans[::-1]


def _difference(claim: Claim, outcome: Outcome) -> Iterator[str]:
    """Unified diff between what the file says (-) and what was found (+)."""
    found = claim.found(outcome)
    if found != claim.said:
        yield f"{claim.about}:"
        _, _, _, *lines = unified_diff(claim.said, found, n=100, lineterm="")
        yield from (f"    {line}" for line in lines)


def test_every_file_has_its_standing() -> None:
    counts = Counter(standing_of(case) for case in cases_in(OUR_FILES))
    assert counts == {
        Standing.HELD: 50,
        Standing.JAEGER: 10,
        Standing.DATA: 31,
        Standing.NOT_YET: len(NOT_YET),
    }


def test_files_not_held_yet_are_these() -> None:
    found = {case.name for case in cases_in(OUR_FILES) if standing_of(case) is Standing.NOT_YET}
    assert found == NOT_YET


def test_an_aligned_trace_has_no_offsets_yet() -> None:
    """When it has, the files above and every `offset` and `interval` are to be held."""
    assert not [field.name for field in fields(AlignedTrace) if "offset" in field.name]


@pytest.mark.parametrize("key", ["amuont", "ttft_sections"])
def test_a_claim_that_nobody_checks_is_refused(key: str) -> None:
    case = Case("c", "call", "ms", spans=[], expected={key: 1})
    with pytest.raises(ValueError, match=key):
        list(claims_of(case, case.expected))


WRONG_CLAIMS: list[tuple[str, Any]] = [
    ("e2e", [{"of": "c", "label": "work", "amount": 1000}]),
    ("ttft", {"null": "not_streamed"}),
    ("total", 999),
    ("totals", {"decode": 1000}),
    ("ttft_total", 419),
    ("dominant_phase", "queue"),
    ("findings", [{"kind": "stream_held", "of": "c"}]),
    ("complete", False),
    ("retry_waste", 1),
    ("slack", {"e": 1}),
    ("overlap", {"work": 1}),
    ("edges", {"c > e": "explicit"}),
    ("what_if", [{"of": "e", "phase": "prefill", "factor": 0.5, "saves": 1, "bound": [0, 1]}]),
]


@pytest.mark.parametrize(("key", "value"), WRONG_CLAIMS)
def test_a_wrong_claim_is_seen(key: str, value: Any) -> None:
    case = replace(read_case(OUR_FILES / "call_client_engine_streamed.json"), expected={key: value})
    outcome = Outcome(case, process(spans_of(case), EXACT))
    for claim in claims_of(case, case.expected):
        assert list(_difference(claim, outcome))


def test_a_file_that_is_no_case_is_named(tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text('{"name": "broken", "family": "call"}')
    with pytest.raises(ValueError, match=r"broken\.json: no key 'unit'"):
        read_case(file)
