"""Holds the processor to every case file of a folder: `pytest tests/cases --cases DIR`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import unified_diff
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from llmlat_processor.model import Span
from llmlat_processor.pipeline import process
from tests.cases.case_format import EXACT, Case, read_case
from tests.cases.case_spans import spans_of
from tests.cases.claim import Claim
from tests.cases.claims import claims_of
from tests.cases.outcome import Outcome
from tests.cases.variants import Standing, Variant, standing_of, variants_of

OUR_FILES = Path(__file__).parent / "paths"

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
    assert counts == {Standing.HELD: 58, Standing.JAEGER: 21, Standing.DATA: 20}


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
    ("violations", [{"kind": "negative_transit", "pair": "e"}]),
    ("verdict", "apparent_negative_network"),
    ("offset", {"c->e": [10, 51]}),
    ("offset", {"A->B": [None, 50]}),
    ("offset", {}),
    ("offset_interval", [11, 50]),
    ("residual_transit", 41),
    ("jaeger_point", 1),
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
    assert any(list(_difference(claim, outcome)) for claim in claims_of(case, case.expected))


@pytest.mark.parametrize("interval", [[89, 120], [90, None], [None, 120]])
def test_a_wrong_interval_of_a_finding_is_seen(interval: list[float | None]) -> None:
    case = read_case(OUR_FILES / "call_client_gateway_engine.json")
    first, second = case.expected["findings"]
    case = replace(case, expected={"findings": [{**first, "interval": interval}, second]})
    outcome = Outcome(case, process(spans_of(case), EXACT))
    (claim,) = claims_of(case, case.expected)
    assert list(_difference(claim, outcome))


def test_a_file_that_is_no_case_is_named(tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    file.write_text('{"name": "broken", "family": "call"}')
    with pytest.raises(ValueError, match=r"broken\.json: no key 'unit'"):
        read_case(file)
