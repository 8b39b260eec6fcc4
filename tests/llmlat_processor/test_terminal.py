"""Pictures of built traces, compared as a whole, and what holds for every picture."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from llmlat_processor.model import (
    CLIENT,
    PARENT_IS_REMOTE,
    SERVER,
    Alternative,
    Assumptions,
    CriticalPaths,
    ExplainedTrace,
    Finding,
    Resource,
    Span,
)
from llmlat_processor.pipeline import process
from llmlat_processor.views.terminal import render
from llmlat_processor.views.terminal.theme import ASCII, UNICODE, Page, duration
from llmlat_processor.views.terminal.waterfall import draw_waterfall
from llmlat_processor.views.waterfall.placement import Placement
from llmlat_processor.views.waterfall.rows import rows_of
from llmlat_processor.views.wording import ABSENCES, PLAIN_WORDS, Answer, percent
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import FindingKind, TtftAbsence
from tests.llmlat_processor import clocked
from tests.llmlat_processor.adviser import APP, ENGINE, MS, adviser_spans, phase, resource, span

PICTURES = Path(__file__).parent / "pictures"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def drawn(
    explained: ExplainedTrace,
    width: int = 80,
    *,
    unicode: bool = True,
    everything: bool = False,
    answers: Sequence[Answer] = (),
    colour: bool = False,
) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        _environ={},
    )
    asked = {paths.root: answers for paths in explained.paths.roots}
    picture = render(explained, width, answers=asked, unicode=unicode, everything=everything)
    console.print(picture)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def adviser() -> ExplainedTrace:
    return process(adviser_spans())


def damaged() -> ExplainedTrace:
    """The root never came; a child runs backwards; an engine worked longer than it was asked."""
    return process(
        [
            span(2, 1, "chat gemma", 0, 100, kind=CLIENT),
            phase(3, 2, Phase.WAIT, 0, 100),
            span(4, 2, "engine chat", 0, 900, ENGINE, kind=SERVER),
            span(5, 1, "parse", 120, 110),
        ]
    )


def several_clocks() -> ExplainedTrace:
    """Every way of knowing an offset, a contradiction, and another path that the clocks allow."""
    return clocked.ambiguous(clocked.many(), Alternative(clocked.CHAT, clocked.OTHER))


def answered() -> list[Answer]:
    return [
        Answer("queue=0.5", 125 * MS, 125 * MS, 125 * MS, 1875 * MS),
        Answer("tool:get_orders=0.5", 130 * MS, 0, 130 * MS, 1870 * MS),
        Answer("decode=+20ms", -20 * MS, -20 * MS, -20 * MS, 2020 * MS),
    ]


PICTURED: dict[str, Callable[[], str]] = {
    "adviser_80": lambda: drawn(adviser()),
    "adviser_80_ascii": lambda: drawn(adviser(), unicode=False),
    "adviser_140": lambda: drawn(adviser(), 140),
    "adviser_50": lambda: drawn(adviser(), 50),
    "adviser_what_if": lambda: drawn(adviser(), answers=answered()),
    "damaged_80": lambda: drawn(damaged()),
    "clocks_80": lambda: drawn(several_clocks()),
    "clocks_50_ascii": lambda: drawn(several_clocks(), 50, unicode=False),
}


@pytest.mark.parametrize("name", PICTURED)
def test_picture(name: str) -> None:
    assert PICTURED[name]() == (PICTURES / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [45, 60, 80, 100, 200])
@pytest.mark.parametrize("unicode", [True, False])
def test_no_line_is_wider_than_asked(width: int, unicode: bool) -> None:
    for line in drawn(adviser(), width, unicode=unicode).splitlines():
        assert cell_len(line) <= width


def test_the_waterfall_fits_forty_columns() -> None:
    explained = adviser()
    placed = Placement(explained, explained.paths.roots[0])
    page = Page(40, UNICODE, everything=False)

    _marks, _bars, _blank, *rows = draw_waterfall(placed, rows_of(placed, None), page)

    assert max(row.cell_len for row in rows) == 40


def test_ascii_is_ascii() -> None:
    hostile = [*adviser_spans(), span(40, 1, "naïve 模型", 5, 9, resource("größe", "laptop"))]

    assert drawn(process(hostile), unicode=False).isascii()


def test_without_colour_the_picture_says_the_same() -> None:
    """Colour repeats what a glyph says, so taking it away takes nothing."""
    coloured = drawn(adviser(), colour=True)

    assert coloured != drawn(adviser())
    assert ESCAPE.sub("", coloured) == drawn(adviser())


def test_names_from_the_wire_cannot_steer_the_terminal() -> None:
    hostile = span(40, 1, "evil\x1b[2J\r\n[bold red]name[/]", 5, 9)

    picture = drawn(process([*adviser_spans(), hostile]), 140)

    assert "\x1b" not in picture
    assert "evil?[2J??[bold red]name[/]" in picture


def test_wide_characters_keep_the_columns() -> None:
    picture = drawn(process([span(1, 0, "模型" * 30, 0, 100), span(2, 1, "b", 0, 50)]))

    rows = [line for line in picture.splitlines() if "█" in line or "░" in line][1:3]
    assert len({cell_len(row[: row.index(" ms") + 3]) for row in rows}) == 1


def test_an_operation_of_another_clock_without_a_section_has_no_place() -> None:
    """Its raw stamps happen to lie inside the root, and are not drawn all the same."""
    elsewhere = span(40, 1, "audit", 500, 700, resource("auditor", "other-host"))

    (row,) = [
        line
        for line in drawn(process([*adviser_spans(), elsewhere])).splitlines()
        if "audit" in line and "other clock" in line
    ]
    assert "200 ms" in row
    assert "░" not in row
    assert "█" not in row


def test_a_weak_domain_is_one_clock_only_until_a_remote_hop() -> None:
    weak = Resource({}, service="svc", process="p", domain="hash", weak=True)
    spans = [
        span(1, 0, "root", 0, 100, weak),
        span(2, 1, "near", 0, 10, weak),
        span(3, 1, "far", 50, 60, weak),
    ]
    spans[2].flags = PARENT_IS_REMOTE
    explained = process(spans)
    placed = Placement(explained, explained.paths.roots[0])

    assert [one.name for one in explained.trace.operations] == ["root", "near", "far"]
    assert [bool(placed.own_stretch(index)) for index in range(3)] == [True, True, False]


def test_what_lies_outside_the_root_is_an_arrow_at_its_edge() -> None:
    late = span(2, 1, "flush", 90, 300)
    early = span(3, 1, "warm up", -50, 20)
    lines = drawn(process([span(1, 0, "root", 0, 100), late, early])).splitlines()

    assert any("flush" in line and line.endswith("»") for line in lines)
    assert any("warm up" in line and "«" in line for line in lines)


def test_a_failed_operation_says_so() -> None:
    failed = span(2, 1, "chat", 0, 50, is_error=True)

    assert "chat  failed" in drawn(process([span(1, 0, "root", 0, 100), failed]))


def test_operations_over_the_limit_are_counted_and_those_on_a_path_stay() -> None:
    fan = [span(n, 1, f"leaf {n}", 0, 10) for n in range(2, 200)]
    spans = [span(1, 0, "root", 0, 100), *fan, span(500, 1, "last", 90, 99)]

    picture = drawn(process(spans))

    assert "not drawn: 140 operations, off the paths or short" in picture
    assert "└ last" in picture
    assert "not drawn" not in drawn(process(spans), everything=True)
    assert "leaf 199" in drawn(process(spans), everything=True)


def test_phases_too_short_to_see_are_counted() -> None:
    spans = [span(1, 0, "chat", 0, 1000, kind=CLIENT), phase(2, 1, Phase.SEND, 0, 1)]

    assert "not drawn: 1 phases under 0.5 % of the whole" in drawn(process(spans))
    assert "send" in drawn(process(spans), everything=True)


@pytest.mark.parametrize("everything", [True, False])
def test_a_trace_deeper_than_the_stack_is_drawn(everything: bool) -> None:
    chain = [span(n, n - 1, f"level {n}", 0, 100) for n in range(1, 3000)]

    assert "level 14" in drawn(process(chain), everything=everything)


def test_more_sections_than_are_shown_are_added_up() -> None:
    steps = [span(n, 1, f"step {n}", 10 * n, 10 * n + 10) for n in range(2, 32)]

    picture = drawn(process([span(1, 0, "root", 0, 320), *steps]))

    assert "not shown: 11 shorter sections, together 110 ms" in picture


def test_every_root_has_its_own_picture() -> None:
    picture = drawn(process([span(1, 0, "one", 0, 100), span(2, 0, "two", 0, 250)]))

    assert picture.count("The path to the end") == 2


def test_a_root_without_duration_is_drawn() -> None:
    assert "The path to the end: 0" in drawn(process([span(1, 0, "instant", 0, 0)]))


def test_a_trace_without_a_root_says_that_nothing_can_be_placed() -> None:
    backwards = Finding(FindingKind.NEGATIVE_DURATION, (1).to_bytes(8, "big"), -100 * MS)
    rootless = replace(adviser(), paths=CriticalPaths((), ()), findings=(backwards,))

    assert "No operation of this trace can be placed." in drawn(rootless)
    assert "negative_duration -100 ms  invoke_agent adviser (adviser)" in drawn(rootless)


def test_a_path_that_counts_on_another_clock_has_no_tick() -> None:
    explained = adviser()
    (paths,) = explained.paths.roots
    assert paths.ttft is not None
    elsewhere = next(one for one in explained.trace.operations if one.resource is ENGINE)
    moved = replace(paths, ttft=replace(paths.ttft, root=elsewhere))
    other = replace(explained, paths=CriticalPaths((moved,), ()))

    assert "▼" not in drawn(other)
    assert "first useful content, counted from engine chat: 620 ms" in drawn(other)


def test_retry_waste_stands_in_the_ledger_where_attempts_are_visible() -> None:
    explained = adviser()
    (paths,) = explained.paths.roots
    retried = replace(paths, ledger=replace(paths.ledger, retry_waste_ns=120 * MS))

    assert "retry waste" not in drawn(explained)
    assert "retry waste 120 ms" in drawn(replace(explained, paths=CriticalPaths((retried,), ())))


def test_findings_over_the_limit_are_counted() -> None:
    many = tuple(Finding(FindingKind.LATE_SPAN, bytes([n] * 8)) for n in range(20))
    explained = replace(adviser(), findings=many)

    assert "and 8 more" in drawn(explained)
    assert drawn(explained, everything=True).count("late_span") == 20


def test_assumptions_are_stated() -> None:
    exact = process(adviser_spans(), Assumptions(tail_ns=0, resolution_ns=1))

    assert "go on for 0 after its last output; stamps are exact to 1 ns" in drawn(exact, 120)


def test_every_finding_and_every_absence_has_plain_words() -> None:
    assert set(PLAIN_WORDS) == set(FindingKind)
    assert set(ABSENCES) == set(TtftAbsence)


@pytest.mark.parametrize("reason", TtftAbsence)
def test_an_absent_path_says_why(reason: TtftAbsence) -> None:
    explained = adviser()
    (paths,) = explained.paths.roots
    absent = replace(paths, ttft=None, ttft_absence=reason, ttft_self_times_ns={})
    other = replace(explained, paths=CriticalPaths((absent,), ()))

    assert f"No path to a first useful content: {ABSENCES[reason]}." in drawn(other)
    assert "◆" not in drawn(other)


@pytest.mark.parametrize(
    ("value_ns", "said"),
    [
        (0, "0"),
        (999, "999 ns"),
        (1_500, "1.50 µs"),
        (12_340_000, "12.3 ms"),
        (999_000_000, "999 ms"),
        (999_499_999, "999 ms"),
        (999_500_000, "1.00 s"),
        (999_999, "1.00 ms"),
        (1_550_000_000, "1.55 s"),
        (75_000_000_000, "75.0 s"),
        (-5_000_000, "-5.00 ms"),
    ],
)
def test_a_duration_has_three_digits_and_a_unit(value_ns: int, said: str) -> None:
    assert duration(value_ns, UNICODE) == said
    assert duration(value_ns, ASCII) == said.replace("µ", "u")


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [(0, 0, "0 %"), (0, 9, "0 %"), (1, 1000, "< 1 %"), (1, 2, "50 %"), (3, 3, "100 %")],
)
def test_a_share_is_a_percentage(part: int, whole: int, said: str) -> None:
    assert percent(part, whole) == said


def test_spans_of_the_adviser_are_the_ones_of_one_process_and_an_engine() -> None:
    services: dict[Resource, list[Span]] = {}
    for one in adviser_spans():
        services.setdefault(one.resource, []).append(one)

    assert set(services) == {APP, ENGINE}
