"""The page and the terminal show the numbers of `--json`, for every case file and variant."""

from __future__ import annotations

import io
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import pytest
from rich.console import Console

from llmlat_processor.model import Alternative, ExplainedTrace
from llmlat_processor.pipeline import process
from llmlat_processor.stages.critical_path.schedules import schedules
from llmlat_processor.views.document import document
from llmlat_processor.views.page import Told, page
from llmlat_processor.views.terminal import render
from tests.cases.case_spans import spans_of
from tests.cases.variants import Variant
from tests.llmlat_processor import clocked
from tests.llmlat_processor.views.page.case_traces import case_traces
from tests.llmlat_processor.views.page.read_back import flat, read_page

WIDTH = 400

CONTRADICTIONS = ("infeasible_offset", "offset_cycle", "clock_step")
"""By how much clocks contradict each other has no sign for people."""


@pytest.mark.parametrize("variant", case_traces(), ids=lambda variant: variant.name)
def test_page_and_terminal_show_the_numbers_of_the_document(variant: Variant) -> None:
    explained = process(spans_of(variant.case), variant.assumptions)
    assert_same(explained)


def test_page_and_terminal_show_what_is_known_of_the_clocks() -> None:
    """Every way of knowing an offset, a proof, other paths, and a clock that tells its monotonic.

    Finding.interval, both kinds of offset and the alternatives of both paths are in it.
    """
    other = Alternative(clocked.CHAT, clocked.OTHER)
    unknown = Alternative(clocked.CHAT, b"unheard!")
    assert_same(clocked.ambiguous(clocked.many(), other, unknown))


def assert_same(explained: ExplainedTrace) -> None:
    written = with_several_clocks(under_roots(document(explained)))
    assert in_page(explained) == {
        key: {value} for key, value in flat(written) if not key.endswith(".parent_id") and value
    }
    lines = in_terminal(explained)
    for line in expected_lines(written):
        assert any(shown.startswith(line) for shown in lines), line
    for operation in filter(None, written["operations"]):
        length = figure(operation["duration_ns"])
        assert any(operation["name"] in line and f" {length}" in line for line in lines)


def under_roots(written: Any) -> Any:
    """The document without operations below no root, such as an orphan beside one: not drawn."""
    roots = {root["span_id"] for root in written["roots"]}
    above = {one["span_id"]: one["parent_id"] for one in written["operations"]}

    def has_root(span_id: str | None) -> bool:
        seen: set[str] = set()
        while span_id is not None and span_id not in roots | seen:
            seen.add(span_id)
            span_id = above.get(span_id)
        return span_id in roots

    kept = [one if has_root(one["span_id"]) else None for one in written["operations"]]
    return {**written, "operations": kept}


def with_several_clocks(written: Any) -> Any:
    """The document without its clocks where there is only one: nothing is said of that."""
    several = len(written["clocks"]["domains"]) > 1
    return written if several else {key: written[key] for key in written if key != "clocks"}


def in_page(explained: ExplainedTrace) -> dict[str, set[str]]:
    found = read_page(page([Told(explained, schedules(explained.aligned))]))
    return {key: values for key, values in found.items() if values != {""}}


def in_terminal(explained: ExplainedTrace) -> list[str]:
    """The picture's lines, each run of blanks as one."""
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None, _environ={})
    console.print(render(explained, WIDTH, everything=True))
    assert isinstance(console.file, io.StringIO)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


def expected_lines(written: Any) -> Iterator[str]:
    """How lines begin that say the document's numbers."""
    for finding in written["findings"]:
        size = finding["amount_ns"]
        if finding["kind"] in CONTRADICTIONS:
            size = abs(size)
        yield f"▲ {finding['kind']}{'' if size is None else f' {figure(size)}'} "
    for one in written["first_contents"]:
        sizes = (figure(one[key]) for key in ("server_ns", "client_ns", "transit_ns"))
        yield first_content(written, one, *sizes)
    for root in written["roots"]:
        yield f"● The path to the end: {figure(root['e2e']['duration_ns'])}"
        yield from sections(root["e2e"])
        if root["ttft"] is not None:
            length = figure(root["ttft"]["duration_ns"])
            yield f"◆ The path to the first useful content: {length}"
            yield from sections(root["ttft"])
        amounts = {key.removesuffix("_ns"): size for key, size in root["ledger"].items()}
        said = [
            f"{key.replace('_', ' ')} {figure(size)}"
            for key, size in amounts.items()
            if size is not None
        ]
        yield " · ".join(said)


def first_content(written: Any, one: Any, server: str, client: str, transit: str) -> str:
    named = {each["span_id"]: each for each in filter(None, written["operations"])}
    call, callee = named[one["call"]], named[one["callee"]]
    return (
        f"{call['name']}: {callee['service']} {server} · {call['service']} {client} · "
        f"both ways between them {transit}"
    )


def sections(path: Any) -> Iterator[str]:
    whole = path["duration_ns"]
    for section in path["sections"]:
        bound = "≤ " if section["evidence"] == "bounded" else ""
        size = section["duration_ns"]
        share = Decimal(100) * size / whole
        part = "< 1 %" if share < 1 else f"{share.quantize(Decimal(1), ROUND_HALF_EVEN)} %"
        yield (
            f"+{figure(section['start_ns'])} {section['label']} {section['service']} "
            f"{bound}{figure(size)} {part}"
        )


def figure(value_ns: int) -> str:
    """Three digits and a unit, by another way than the views take."""
    if value_ns < 0:
        return f"-{figure(-value_ns)}"
    if value_ns < 1_000:
        return f"{value_ns} ns" if value_ns else "0"
    unit = ["s", "ms", "µs"][max(0, 3 - (len(str(value_ns)) - 1) // 3)]
    value = Decimal(value_ns / {"s": 10**9, "ms": 10**6, "µs": 10**3}[unit])
    places = Decimal("0.01") if value < 10 else Decimal("0.1") if value < 100 else Decimal(1)
    written = value.quantize(places, ROUND_HALF_EVEN)
    if written == 1_000 and unit != "s":
        return f"1.00 {'s' if unit == 'ms' else 'ms'}"
    return f"{written} {unit}"
