"""Jaeger's clock skew adjuster, rebuilt, says what its own tests say; and what we say instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest

from llmlat_processor.model import ExplainedTrace, Interval
from llmlat_processor.offsets import between
from llmlat_processor.pipeline import process
from llmlat_semconv.values import FindingKind
from tests.cases.case_format import EXACT, Case, Json, read_case
from tests.cases.case_spans import name_of, spans_of
from tests.compat.jaeger_skew import (
    DUPLICATE,
    Adjusted,
    SkewSpan,
    adjusted,
    disabled,
    exceeded,
    missing_parent,
    moved_by,
)

FILES = sorted(Path(__file__).parents[1].glob("cases/paths/*.json"))
EVERY = [case for case in map(read_case, FILES) if case.family == "clock_skew_upstream"]
CASES = [case for case in EVERY if case.expected["algorithm"] == "jaeger_clockskew"]
NO_LIMIT = 10**15

# The files say in a few words what Jaeger says in its own.
WARNINGS = {
    None: None,
    "missing parent; skew adjustment skipped": missing_parent("99"),
    "duplicate span IDs": DUPLICATE,
    "delta 35 exceeds max 10: not applied": exceeded(10, 35),
    "delta -45 exceeds max 10: not applied": exceeded(10, -45),
    "disabled; calculated delta 35": disabled(35),
}


def skew_spans(rows: Sequence[Json]) -> list[SkewSpan]:
    return [
        SkewSpan(
            row["id"],
            row["parent"],
            row["start"],
            row["end"],
            row["host"],
            [each for each in row.get("events", ()) if isinstance(each, int)],
        )
        for row in rows
    ]


def every(cases: Sequence[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


# ── Jaeger ───────────────────────────────────────────────────────────────────────────────────────


@every(CASES)
def test_jaeger_moves_what_its_own_tests_say_in_any_order(case: Case) -> None:
    expected = case.expected
    for spans in permutations(skew_spans(case.spans)):
        shown = adjusted(spans, expected["max_adjust"])
        assert {each.span.id: each.start for each in shown} == expected["adjusted_start"]
        assert all(each.end - each.start == each.span.end - each.span.start for each in shown)
        for name, events in expected.get("adjusted_events", {}).items():
            assert [each.events for each in shown if each.span.id == name] == [events]
        said = [w for each in shown for w in each.warnings if each.start == each.span.start]
        assert said == [w for w in [WARNINGS[expected["warning"]]] if w]
        moved = [each for each in shown if each.start != each.span.start]
        assert all(e.warnings == [moved_by(e.start - e.span.start)] for e in moved)


def test_cases_were_found() -> None:
    assert (len(CASES), len(EVERY)) == (11, 17)


def test_jaeger_moves_all_of_a_host_but_compares_the_next_host_with_what_it_moved() -> None:
    """First b is put into the middle of a, and c into the middle of where b is then.

    a   10 ├──────────────────┤ 110
    b    0 ├────────┤ 50               by 35, to 35..85
    c    5 ├───┤ 25                    by 45, to 50..70
    """
    shown = adjusted(
        [
            SkewSpan("1", None, 10, 110, "a"),
            SkewSpan("2", "1", 0, 50, "b"),
            SkewSpan("3", "2", 5, 25, "c"),
        ],
        NO_LIMIT,
    )
    assert [(each.start, each.delta) for each in shown] == [(10, 0), (35, 35), (50, 45)]


def test_jaeger_compares_every_child_of_a_host_that_nobody_names() -> None:
    spans = [SkewSpan("1", None, 10, 110), SkewSpan("2", "1", 0, 50)]
    assert [each.start for each in adjusted(spans, NO_LIMIT)] == [10, 35]


def test_jaeger_leaves_a_circle_of_parents_alone_and_knows_no_recursion() -> None:
    circle = [SkewSpan("1", "2", 0, 10, "a"), SkewSpan("2", "1", 20, 25, "b")]
    assert [each.delta for each in adjusted(circle, NO_LIMIT)] == [0, 0]
    chain = [SkewSpan(str(i), str(i - 1) if i else None, 0, 9, str(i % 2)) for i in range(3_000)]
    assert len(adjusted(chain, NO_LIMIT)) == 3_000


# ── Ours ─────────────────────────────────────────────────────────────────────────────────────────


def call(client: tuple[int, int], server: tuple[int, int], **keys: Any) -> list[Json]:
    """A unary call from host a to host b, under a root on a that lasts long."""
    root = {"id": "R", "parent": None, "start": -1_000, "end": 9_000, "host": "a"}
    c = {"id": "c", "parent": "R", "start": client[0], "end": client[1], "host": "a"}
    s = {"id": "s", "parent": "c", "start": server[0], "end": server[1], "host": "b"}
    return [root, {**c, "kind": "client", "rpc": True}, {**s, "kind": "server", **keys}]


def explained(rows: Sequence[Json]) -> ExplainedTrace:
    return process(spans_of(Case("skew", "call", "ms", spans=rows)), EXACT)


def shown_by_jaeger(rows: Sequence[Json]) -> dict[str, Adjusted]:
    return {each.span.id: each for each in adjusted(skew_spans(rows), NO_LIMIT)}


def findings(rows: Sequence[Json]) -> list[str]:
    return sorted(f"{f.kind.value} of {name_of(f.of)}" for f in explained(rows).findings)


def interval(rows: Sequence[Json], one: str = "a", other: str = "b") -> tuple[Any, Any]:
    found: Interval = between(explained(rows).aligned.clocks, one, other)
    low, high = (None if end is None else end / 10**6 for end in found)
    return low, high


def without_events(case: Case) -> list[Json]:
    return [{key: value for key, value in row.items() if key != "events"} for row in case.spans]


@every(EVERY)
def test_we_move_no_stamp_whatever_the_clocks_say(case: Case) -> None:
    received = spans_of(Case(case.name, "call", case.unit, spans=without_events(case)))
    before = [(span.start_ns, span.end_ns, span.raw) for span in received]
    found = process(received, EXACT)
    assert [(span.start_ns, span.end_ns, span.raw) for span in received] == before
    assert {id(span) for span in found.trace.spans} <= {id(span) for span in received}


@every([case for case in EVERY if case.expected["algorithm"] != "kibana_skew"])
def test_where_jaeger_would_move_a_span_its_guess_is_one_of_the_offsets_that_we_leave_open(
    case: Case,
) -> None:
    rows = without_events(case)
    hosts = {row["id"]: row["host"] for row in rows}
    for name, each in shown_by_jaeger(rows).items():
        parent = each.span.parent
        if each.delta and parent in hosts and hosts[parent] != hosts[name]:
            low, high = interval(rows, hosts[parent], hosts[name])
            assert low is None
            assert -each.delta <= high


#   a   p             100 ├──────────────────┤ 150
#   b   t        80 ├──────┤ 110                        the clock of b is 20 behind or more
#   b   t2                       140 ├──────────┤ 170
def test_jaeger_gives_one_host_two_offsets_at_once_and_we_give_it_one_that_fits_all() -> None:
    (case,) = [case for case in EVERY if case.name == "kibana_skew_only_forward"]
    rows = without_events(case)
    shown = shown_by_jaeger(rows)
    assert (shown["t"].delta, shown["t2"].delta) == (30, -30)
    assert interval(rows) == (None, -20)


def calls() -> Iterator[list[Json]]:
    """A server 40 long that lies before its client, over its start, over its end, and after it."""
    for start, client in product((-500, -70, -39, 61, 80, 130, 5_000), ((0, 100), (20, 61))):
        yield call(client, (start, start + 40))


@pytest.mark.parametrize("rows", list(calls()))
def test_jaeger_s_guess_is_the_middle_of_what_is_possible_and_we_say_the_whole(
    rows: list[Json],
) -> None:
    c, s = rows[1], rows[2]
    low, high = interval(rows)
    assert (low, high) == (s["end"] - c["end"], s["start"] - c["start"])
    guess = -shown_by_jaeger(rows)["s"].delta
    assert low <= guess <= high
    assert abs(2 * guess - (low + high)) <= 1, "rounded to whole units"
    assert findings(rows) == ["apparent_negative_network of s"]


def test_a_server_that_fits_is_moved_by_neither_but_we_say_how_far_the_clock_could_be_off() -> None:
    rows = call((0, 100), (30, 90))
    assert shown_by_jaeger(rows)["s"].delta == 0
    assert interval(rows) == (-10, 30)
    assert findings(rows) == []


#   a  ├────────┤ 10                  it hands something over and does not wait
#   b               12 ├──────┤ 20
@pytest.mark.parametrize("start", [12, -30], ids=["after it", "seemingly before it"])
def test_jaeger_forces_a_message_s_consumer_into_its_producer_and_we_do_not_flag_it(
    start: int,
) -> None:
    rows = call((0, 10), (start, start + 8), kind="consumer")
    rows[1] = {key: value for key, value in rows[1].items() if key != "rpc"} | {"kind": "producer"}
    assert shown_by_jaeger(rows)["s"].start == 1
    assert findings(rows) == []
    assert interval(rows) == (None, start)


def test_on_one_host_a_child_before_its_parent_is_no_skew_to_either_but_we_say_it() -> None:
    rows: list[Json] = [
        {"id": "p", "parent": None, "start": 10, "end": 110, "host": "a"},
        {"id": "c", "parent": "p", "start": 0, "end": 50, "host": "a"},
    ]
    shown = shown_by_jaeger(rows)["c"]
    assert (shown.delta, shown.warnings) == (0, [])
    assert findings(rows) == ["same_domain_order of c"]


def test_jaeger_lines_up_a_server_that_took_longer_than_its_call_and_we_say_it_cannot_be() -> None:
    rows = call((10, 110), (0, 120))
    assert shown_by_jaeger(rows)["s"].start == 10
    (finding,) = explained(rows).findings
    assert (finding.kind, finding.amount_ns) == (FindingKind.NEGATIVE_TRANSIT, -20 * 10**6)


#   a           ├──────────────────────────┤      a browser, its clock an hour ahead
#   b    ├──┤  ├────┤  ├──┤
def test_jaeger_puts_each_child_of_a_skewed_parent_elsewhere_and_we_keep_them_in_their_order() -> (
    None
):
    hour = 3_600_000
    root = {"id": "R", "parent": None, "start": hour, "end": hour + 1_000, "host": "a"}
    server = {"parent": "R", "host": "b", "kind": "server"}
    times = enumerate([(100, 200), (250, 450), (500, 600)])
    rows: list[Json] = [
        root,
        *({**server, "id": f"s{i}", "start": start, "end": end} for i, (start, end) in times),
    ]
    shown = shown_by_jaeger(rows)
    assert [shown[f"s{i}"].start - hour for i in range(3)] == [450, 400, 450]
    found = explained(rows).aligned
    placed = {
        name_of(span.span_id): start
        for span, start in zip(found.trace.operations, found.starts_ns, strict=True)
    }
    assert placed["s0"] < placed["s1"] < placed["s2"]
