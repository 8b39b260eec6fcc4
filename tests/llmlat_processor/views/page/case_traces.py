"""Every trace that the case files hold, other tools' files included, large ones cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.cases.case_format import Case, read_case
from tests.cases.test_cases import OUR_FILES
from tests.cases.variants import Variant, variants_of

LARGEST: Final = 200
"""Spans; what a file of a hundred thousand shows, its first ones show too."""


def case_traces() -> list[Variant]:
    """Variants of every file, and the file as it is where the processor is not held to it."""
    found = []
    for path in sorted(OUR_FILES.glob("*.json")):
        case = read_case(path)
        found += [*variants_of(case)] or [Variant(case.name, _converted(case))]
    cut = (replace(one, case=replace(one.case, spans=one.case.spans[:LARGEST])) for one in found)
    return [one for one in cut if one.case.spans]  # files of clocks alone have none


def _converted(case: Case) -> Case:
    """Another tool's file; one of them writes events as bare stamps, which say nothing to us."""
    spans = [
        {key: value for key, value in span.items() if key != "events" or isinstance(value[0], dict)}
        for span in case.spans
    ]
    return replace(case, spans=spans)
