"""Reports from users of other tools about clocks, each with its whole kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

import llmlat_otel
from llmlat_otel.testing import ManualClock, recorded
from llmlat_processor.model import ExplainedTrace, Resource, Span
from llmlat_processor.pipeline import process
from llmlat_processor.wire import decode
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import FindingKind
from tests.cases.case_format import EPOCH_NS, EXACT, Json
from tests.cases.outcome import Outcome
from tests.llmlat_processor.stages.spans import (
    MS,
    amounts,
    chat,
    engine,
    explained,
    findings,
    link,
    outcome_of,
    phase,
    row,
    span_named,
    spans,
)

SECOND = 1_000
"""In milliseconds, as rows count."""


def intervals(outcome: Outcome) -> list[str]:
    """`kind of span in low..high` of what has an interval, sorted."""
    about = {(f.kind.value, f.of.decode()) for f in outcome.explained.findings if f.interval}
    return outcome.findings(frozenset(), frozenset(about))


# ── CK-01: a server that lies outside its client ─────────────────────────────────────────────────

#   A   c  0 ├──────────────────┤ 100
#   B   s          60 ├────────────────┤ 140
LASTING: Mapping[str, Mapping[str, Any]] = {
    "a unary call": {"kind": "client", "rpc": True},
    "a GenAI operation": {"kind": "client", "op": "chat"},
    "a tool's": {"op": "execute_tool"},
    "ours": {"kind": "client", "boundary": "client"},
}
ENDING_ANYWHERE: Mapping[str, Mapping[str, Any]] = {
    "HTTP, which may end at the headers": {"kind": "client"},
    "nobody knows what": {},
}


def call(client: Mapping[str, Any], start: float, end: float, host: str = "B") -> list[Json]:
    """A call of 100 with its server, under a root on the caller's clock."""
    return [
        row("R", None, -10 * SECOND, 10 * SECOND, host="A"),
        row("c", "R", 0, 100, host="A", **client),
        row("s", "c", start, end, host=host, kind="server"),
    ]


@pytest.mark.parametrize("client", LASTING.values(), ids=LASTING)
@pytest.mark.parametrize(("start", "end"), [(60, 140), (-60, 20), (300, 380), (-900, -820)])
def test_ck_01_a_server_outside_its_call_is_shown_where_it_was_with_what_could_explain_it(
    client: Mapping[str, Any], start: int, end: int
) -> None:
    found = explained(*call(client, start, end))
    assert intervals(found) == [f"apparent_negative_network of s in {end - 100}..{start}"]
    assert found.offset("c->s") == f"{end - 100}..{start}"
    server = span_named(found, "s")
    assert server.start_ns == EPOCH_NS + start * MS
    assert server.end_ns == EPOCH_NS + end * MS


@pytest.mark.parametrize("client", ENDING_ANYWHERE.values(), ids=ENDING_ANYWHERE)
@pytest.mark.parametrize(("start", "end"), [(60, 140), (-60, 20)])
def test_ck_01_where_a_call_may_end_before_its_answer_only_its_start_bounds_the_clocks(
    client: Mapping[str, Any], start: int, end: int
) -> None:
    found = explained(*call(client, start, end))
    assert intervals(found) == [f"apparent_negative_network of s in ?..{start}"]
    assert found.offset("c->s") == f"?..{start}"


def test_ck_01_nothing_that_was_received_is_rewritten() -> None:
    made = spans(*call(LASTING["a unary call"], 60, 140))
    before = [(span.start_ns, span.end_ns, span.raw) for span in made]
    found = outcome_of(made).explained
    assert [(span.start_ns, span.end_ns, span.raw) for span in made] == before
    assert {id(span) for span in found.trace.spans} == {id(span) for span in made}


@pytest.mark.parametrize("client", LASTING.values(), ids=LASTING)
def test_ck_01_on_one_clock_the_same_stamps_are_no_matter_of_clocks(
    client: Mapping[str, Any],
) -> None:
    found = explained(*call(client, 60, 140, host="A"))
    assert FindingKind.APPARENT_NEGATIVE_NETWORK not in kinds(found.explained)
    assert found.offsets() == []


def kinds(found: ExplainedTrace) -> set[FindingKind]:
    return {finding.kind for finding in found.findings}


# ── CK-03: what nobody waits for ─────────────────────────────────────────────────────────────────

#   A   a  0 ├────┤ 10
#   B   b            12 ├─────┤ 20        it follows a
FOLLOWER = row("b", "R", 12, 20, host="B")
NOT_WAITED_FOR: Mapping[str, tuple[Sequence[Json], Sequence[Json], str]] = {
    "a span that follows by a link": (
        [row("R", None, 0, 50, host="A"), row("a", "R", 0, 10, host="A"), FOLLOWER],
        [link("b", "a")],
        "?..2",
    ),
    "a message's consumer": (
        [
            row("a", None, 0, 10, host="A", kind="producer"),
            {**FOLLOWER, "parent": "a", "kind": "consumer"},
        ],
        [],
        "?..12",
    ),
    "a consumer of a plain span": (
        [row("a", None, 0, 10, host="A"), {**FOLLOWER, "parent": "a", "async": True}],
        [],
        "?..12",
    ),
}


@pytest.mark.parametrize(("rows", "links", "offset"), NOT_WAITED_FOR.values(), ids=NOT_WAITED_FOR)
def test_ck_03_what_follows_or_is_sent_off_is_no_skew(
    rows: Sequence[Json], links: Sequence[Json], offset: str
) -> None:
    found = explained(*rows, links=links)
    assert FindingKind.APPARENT_NEGATIVE_NETWORK not in kinds(found.explained)
    assert findings(found) == []
    assert found.offset("a->b") == offset


@pytest.mark.parametrize("ahead", [-5 * SECOND, 5 * SECOND])
def test_ck_03_a_consumer_whose_clock_is_off_is_bounded_and_not_flagged(ahead: int) -> None:
    sender = row("a", None, 0, 10, host="A", kind="producer")
    receiver = row("b", "a", 12 + ahead, 20 + ahead, host="B", kind="consumer")
    found = explained(sender, receiver)
    assert findings(found) == []
    assert found.offset("a->b") == f"?..{12 + ahead}"


# ── CK-04: one clock that is far off ─────────────────────────────────────────────────────────────

#   browser   R   ├──────────────────────────────────┤      its clock is 100 to 300 s ahead
#   server    s0..s2   ├────┤   ├──────────┤   ├───┤
TIMES = [(100, 200), (250, 450), (500, 600)]


def browser(ahead_s: int, **keys: Any) -> list[Json]:
    """Three calls of a browser, which all go to one host."""
    ahead = ahead_s * SECOND
    root = row("R", None, ahead, ahead + 1_000, host="browser")
    rows = [root]
    for i, (start, end) in enumerate(TIMES):
        client = row(f"c{i}", "R", ahead + start - 20, ahead + end + 30, host="browser", **keys)
        rows += [client, row(f"s{i}", f"c{i}", start, end, host="server", kind="server")]
    return rows


@pytest.mark.parametrize("ahead_s", [100, 300, -100])
def test_ck_04_the_offset_is_put_between_the_odd_host_and_all_others(ahead_s: int) -> None:
    found = explained(*browser(ahead_s, kind="client", rpc=True))
    ahead = ahead_s * SECOND
    assert found.offsets() == [("server", f"{-ahead - 30}..{-ahead + 20}")]
    assert intervals(found) == [
        f"apparent_negative_network of s{i} in {-ahead - 30}..{-ahead + 20}" for i in range(3)
    ]


@pytest.mark.parametrize("keys", [{"kind": "client", "rpc": True}, {"kind": "client"}])
@pytest.mark.parametrize("ahead_s", [100, 300, -100])
def test_ck_04_the_server_s_spans_keep_their_order_and_what_lies_between_them(
    ahead_s: int, keys: Mapping[str, Any]
) -> None:
    found = explained(*browser(ahead_s, **keys))
    aligned = found.explained.aligned
    starts = {
        span.span_id.decode(): start
        for span, start in zip(aligned.trace.operations, aligned.starts_ns, strict=True)
    }
    gaps = [(starts[f"s{i}"] - starts["s0"]) // MS for i in range(3)]
    assert gaps == [start - TIMES[0][0] for start, _ in TIMES]
    assert amounts(found) == amounts(explained(*browser(0, **keys)))


def test_ck_04_calls_without_a_client_span_are_bounded_too_and_stay_in_their_order() -> None:
    ahead = 100 * SECOND
    root = row("R", None, ahead, ahead + 1_000, host="browser")
    servers = [
        row(f"s{i}", "R", start, end, host="server", kind="server")
        for i, (start, end) in enumerate(TIMES)
    ]
    found = explained(root, *servers)
    assert found.offset("R->s0") == f"?..{TIMES[0][0] - ahead}"
    assert kinds(found.explained) <= {FindingKind.APPARENT_NEGATIVE_NETWORK}


def test_ck_04_hosts_that_agree_are_not_drawn_into_it() -> None:
    """The server calls a database, whose clock is right; only the browser's is not."""
    rows = browser(300, kind="client", rpc=True)
    query = row("q", "s1", 260, 440, host="server", kind="client", rpc=True)
    database = row("d", "q", 270, 430, host="database", kind="server")
    found = explained(*rows, query, database)
    assert found.offset("q->d") == "-10..10"
    assert "apparent_negative_network of d" not in findings(found)


# ── CK-06: two spans, one on each side ───────────────────────────────────────────────────────────


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_ck_06_a_client_and_its_server_are_a_pair_though_each_has_a_span_of_its_own(
    order: Sequence[int],
) -> None:
    rows = call({"kind": "client", "rpc": True}, 600, 680)
    found = explained(*(rows[i] for i in order))
    assert found.offset("c->s") == "580..600"
    assert intervals(found) == ["apparent_negative_network of s in 580..600"]


def test_ck_06_so_are_two_that_share_one_id() -> None:
    """Zipkin's form: the server's span has the client's id, and its parent."""
    rows = call({"kind": "client", "rpc": True}, 600, 680)
    rows[2] = {**rows[2], "id": "c", "parent": "R"}
    found = explained(*rows).explained
    offset = found.aligned.clocks.offsets["B"].interval
    assert offset == (580 * MS, 600 * MS)


@pytest.mark.parametrize("orphan", ["the client", "the root"])
def test_ck_06_a_trace_without_its_root_or_with_several_is_bounded_as_well(orphan: str) -> None:
    rows = call({"kind": "client", "rpc": True}, 600, 680)[1:]
    beside = [row("other", None, 0, 10, host="A")] if orphan == "the client" else []
    found = explained(*rows, *beside)
    assert found.offset("c->s") == "580..600"


# ── CK-07, GW-07: readings of another clock in place of a time ───────────────────────────────────

YEAR_NS = 365 * 86_400 * 10**9
NOW_NS = EPOCH_NS + 50 * MS
GARBAGE: Mapping[str, tuple[int, int]] = {
    "CK-07: perf_counter, then a time": (5_200_000_000_000, NOW_NS),
    "GW-07: a monotonic clock, twice": (44_511_913_730_532, 44_512_365_817_635),
    "a time, then perf_counter": (NOW_NS, 5_200_000_000_000),
    "seconds": (NOW_NS // 10**9, NOW_NS // 10**9 + 1),
    "milliseconds": (NOW_NS // 10**6, NOW_NS // 10**6 + 30),
    "microseconds": (NOW_NS // 10**3, NOW_NS // 10**3 + 30_000),
    "a time, then milliseconds": (NOW_NS, NOW_NS // 10**6),
    "a time that is still to come": (NOW_NS + 7_200 * 10**9, NOW_NS + 7_201 * 10**9),
}
PLACES: Mapping[str, Callable[[Mapping[str, int]], list[Json]]] = {
    "a leaf": lambda at: [row("x", "R", 0, 1, host="A", **at)],
    "a client of a good server": lambda at: [
        row("x", "R", 0, 1, host="A", kind="client", rpc=True, **at),
        row("under", "x", 40, 60, host="B", kind="server"),
    ],
    "the server of a good client": lambda at: [
        row("above", "R", 20, 80, host="A", kind="client", rpc=True),
        row("x", "above", 0, 1, host="B", kind="server", **at),
    ],
    "an engine": lambda at: [
        chat("above", "R", 20, 80, host="A"),
        engine("x", "above", 0, 1, **at),
        phase(Phase.QUEUE, "x", 0, 1),
    ],
    "a caller on a third clock": lambda at: [
        row("x", "R", 0, 1, host="C", kind="client", rpc=True, **at),
        row("under", "x", 40, 60, host="B", kind="server"),
    ],
}


def with_garbage(place: str, stamps: tuple[int, int], *more: Json) -> tuple[list[Span], Outcome]:
    """A root of 100 with a span that has these stamps; received a second after it ended."""
    rows = PLACES[place](dict(zip(("start_ns", "end_ns"), stamps, strict=True)))
    made = spans(row("R", None, 0, 100, host="A"), *rows, *more)
    received = replace(EXACT, received_ns=EPOCH_NS + SECOND * MS)
    return made, outcome_of(made, received)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("stamps", GARBAGE.values(), ids=GARBAGE)
def test_what_is_no_time_of_day_is_left_out_of_the_path_its_bounds_and_all_clocks(
    stamps: tuple[int, int], place: str
) -> None:
    made, found = with_garbage(place, stamps)
    assert FindingKind.EPOCH_GARBAGE in kinds(found.explained)
    assert found.total("e2e", None) == "100"
    assert not found.is_on_a_path("x")
    clocks = found.explained.aligned.clocks
    assert b"x" not in {end for m in clocks.messages for end in (m.left, m.arrived)}
    ends = [end for offset in clocks.offsets.values() for end in offset.interval]
    assert all(end is None or abs(end) < YEAR_NS for end in ends)
    kept = next(span for span in made if span.span_id == b"x")
    assert (kept.start_ns, kept.end_ns) == stamps
    assert kept in found.explained.trace.spans, "it is sent on as it came"


def test_gw_07_the_duration_of_such_a_span_is_its_own_and_stays() -> None:
    _, found = with_garbage("a leaf", GARBAGE["GW-07: a monotonic clock, twice"])
    kept = next(span for span in found.explained.trace.spans if span.span_id == b"x")
    assert kept.duration_ns == 452_087_103
    assert findings(found) == ["epoch_garbage of x"]


@pytest.mark.parametrize("stamps", GARBAGE.values(), ids=GARBAGE)
def test_a_root_that_is_no_time_of_day_takes_none_of_its_siblings_along(
    stamps: tuple[int, int],
) -> None:
    bad = row("bad", None, 0, 1, host="A", start_ns=stamps[0], end_ns=stamps[1])
    _, found = with_garbage("a leaf", stamps, bad, row("under", "bad", 5, 9, host="A"))
    assert [root.root.span_id for root in found.explained.paths.roots] == [b"R"]
    assert found.total("e2e", "R") == "100"


def test_ck_07_a_good_server_below_a_bad_client_still_bounds_its_clock_by_what_is_above() -> None:
    _, found = with_garbage("a client of a good server", (5_200_000_000_000, NOW_NS))
    assert found.offset("R->under") == "?..40"


# ── CK-09: a clock that is stepped within a span ─────────────────────────────────────────────────


def recorded_with_a_step(step_ns: int) -> ExplainedTrace:
    """An agent with two tools of 300 ms each; the wall clock steps in the middle of the first."""
    clock = ManualClock()
    with recorded(clock=clock) as record, llmlat_otel.agent("adviser"):
        with llmlat_otel.tool("stepped"):
            clock.advance(100 * MS)
            clock.step_wall(step_ns)
            clock.advance(200 * MS)
        with llmlat_otel.tool("after"):
            clock.advance(300 * MS)
    return process(decode(encode_spans(record.spans).SerializeToString()).spans, EXACT)


@pytest.mark.parametrize("step_s", [-2, 2, -3_600])
def test_ck_09_a_step_of_the_wall_clock_changes_no_duration_and_no_path(step_s: int) -> None:
    found = recorded_with_a_step(step_s * 10**9)
    durations = {span.name.split()[-1]: span.duration_ns // MS for span in found.trace.operations}
    assert durations == {"adviser": 600, "stepped": 300, "after": 300}
    (root,) = found.paths.roots
    sections = [(s.span.name.split()[-1], s.duration_ns // MS) for s in root.e2e.sections]
    assert sections == [("stepped", 300), ("after", 300)]
    assert kinds(found) == {FindingKind.CLOCK_STEP}


def test_ck_09_without_a_step_there_is_nothing_to_say() -> None:
    assert kinds(recorded_with_a_step(0)) == set()


def test_ck_09_a_start_and_an_end_of_two_clocks_are_said_and_not_repaired() -> None:
    """Somebody else's span, which ends before it started: the end was read after the step."""
    found = explained(row("R", None, 0, 5_000), row("x", "R", 1_000, 1_000 - 2_000 + 300))
    assert findings(found) == ["negative_duration of x -1700"]
    assert amounts(found) == ["R unobserved 5000"]


def test_ck_09_a_host_that_is_only_a_hash_of_its_resource_proves_nothing_of_another() -> None:
    """Two spans of one anonymous resource may be two replicas: their clocks may be two."""
    anonymous = Resource({}, service="s", process="hash", domain="hash", weak=True)
    rows = call({"kind": "client", "rpc": True}, 600, 680)
    rows[2] = {**rows[2], "resource": anonymous}
    again = row("c2", "R", 200, 300, host="A", kind="client", rpc=True)
    other = row("s2", "c2", -900, -820, kind="server", resource=anonymous)
    found = explained(*rows, again, other)
    assert not kinds(found.explained) & {FindingKind.INFEASIBLE_OFFSET, FindingKind.CLOCK_STEP}
