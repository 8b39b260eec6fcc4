"""Clocks: which domain stamps for an operation, and where its own clock puts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from llmlat_processor.model import AlignedTrace, Assumptions, Resource
from llmlat_processor.stages.align_clocks import align_clocks
from llmlat_processor.stages.align_clocks.placement import MIN_STAMPS
from llmlat_processor.stages.assemble import assemble
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from tests.cases.case_format import EPOCH_NS, EXACT, Json
from tests.cases.case_spans import name_of
from tests.llmlat_processor.stages.spans import MS, phase, row, spans

DETECTED = replace(EXACT, resolution_ns=None)


def aligned(*rows: Json, assumptions: Assumptions = EXACT) -> AlignedTrace:
    return align_clocks(assemble(spans(*rows), assumptions))


def starts_ms(trace: AlignedTrace, origin_ns: int = EPOCH_NS) -> dict[str, float]:
    """Where each operation was placed, in milliseconds after an instant of its clock."""
    operations = trace.trace.operations
    return {
        name_of(span.span_id): (start - origin_ns) / MS
        for span, start in zip(operations, trace.starts_ns, strict=True)
    }


def domains(trace: AlignedTrace) -> dict[str, str]:
    operations = trace.trace.operations
    return {
        name_of(span.span_id): domain
        for span, domain in zip(operations, trace.domains, strict=True)
    }


def monotonic(at_ms: Any, domain: str | None = None) -> Mapping[str, Any]:
    """Attributes of a span that read the monotonic clock at its start."""
    said = {names.LLMLAT_CLOCK_MONOTONIC_START: at_ms if at_ms is True else at_ms * MS}
    return said | ({names.LLMLAT_CLOCK_DOMAIN_ID: domain} if domain else {})


# ── Placement ────────────────────────────────────────────────────────────────────────────────────


def test_without_a_monotonic_clock_wall_stamps_place_a_span() -> None:
    trace = aligned(row("R", None, 0, 10), row("a", "R", 3, 5), phase(Phase.QUEUE, "a", 4, 5))
    assert starts_ms(trace) == {"R": 0, "a": 3}
    assert trace.phase_starts_ns == {1: [EPOCH_NS + 4 * MS]}


#   wall        0        10       20             steps back by 5 between a and b
#   a           ├────────┤
#   b                 ├────────┤                 wall says that b began before a had ended
#   monotonic   100      110      120
@pytest.mark.parametrize("where", ["on the spans", "on the resource"])
def test_a_stepped_wall_clock_bends_nothing(where: str) -> None:
    key = "D" if where == "on the spans" else None
    place = {} if key else {"domain": "D"}
    trace = aligned(
        row("R", None, 0, 15, attributes=monotonic(100, key), **place),
        row("a", "R", 0, 10, attributes=monotonic(100, key), **place),
        row("b", "R", 5, 15, attributes=monotonic(110, key), **place),
    )
    assert starts_ms(trace, 0) == {"R": 100, "a": 100, "b": 110}
    assert set(trace.domains) == {"D"}


def test_wall_spans_of_a_process_are_placed_through_its_anchor() -> None:
    """Somebody else's instrumentation beside ours: R read 100 ms at wall 0, so wall 3 is 103."""
    trace = aligned(
        row("R", None, 0, 20, attributes=monotonic(100, "D")),
        row("other", "R", 3, 5),
        phase(Phase.QUEUE, "other", 4, 5),
    )
    assert starts_ms(trace, 0) == {"R": 100, "other": 103}
    assert trace.phase_starts_ns == {1: [104 * MS]}
    assert domains(trace) == {"R": "D", "other": "D"}


def test_the_anchor_holds_for_its_own_process_only() -> None:
    trace = aligned(
        row("R", None, 0, 20, attributes=monotonic(100, "D")),
        row("elsewhere", "R", 3, 5, host="other"),
    )
    assert starts_ms(trace)["elsewhere"] == 3
    assert domains(trace) == {"R": "D", "elsewhere": "other"}


def test_spans_of_one_domain_are_placed_on_one_scale() -> None:
    """Two processes of one host; only one of them has spans that read the monotonic clock."""
    trace = aligned(
        row("R", None, 0, 20, process="p", domain="D", attributes=monotonic(100)),
        row("other", "R", 3, 5, process="q", domain="D"),
    )
    assert domains(trace) == {"R": "D", "other": "D"}
    assert starts_ms(trace, 0) == {"R": 100, "other": 103}


def test_a_monotonic_reading_without_a_domain_places_nothing() -> None:
    said = monotonic(100)
    trace = aligned(row("R", None, 0, 20, attributes=said), row("a", "R", 3, 5))
    assert starts_ms(trace) == {"R": 0, "a": 3}


@pytest.mark.parametrize("reading", ["100", 100.0, True, None], ids=repr)
def test_a_monotonic_reading_that_is_no_integer_places_nothing(reading: Any) -> None:
    said = {names.LLMLAT_CLOCK_DOMAIN_ID: "D", names.LLMLAT_CLOCK_MONOTONIC_START: reading}
    assert starts_ms(aligned(row("R", None, 0, 20, attributes=said))) == {"R": 0}


# ── Domains ──────────────────────────────────────────────────────────────────────────────────────


def test_a_span_may_name_its_domain_where_the_resource_does_not() -> None:
    said = {names.LLMLAT_CLOCK_DOMAIN_ID: "D"}
    assert domains(aligned(row("R", None, 0, 9, attributes=said))) == {"R": "D"}


def test_otherwise_a_span_has_the_domain_of_its_resource() -> None:
    trace = aligned(row("R", None, 0, 9, host="A"), row("a", "R", 1, 2, host="B"))
    assert domains(trace) == {"R": "A", "a": "B"}


@pytest.mark.parametrize("domain", [7, True, "", ["D"]], ids=repr)
def test_a_domain_that_is_no_text_is_none(domain: Any) -> None:
    said = {names.LLMLAT_CLOCK_DOMAIN_ID: domain}
    assert domains(aligned(row("R", None, 0, 9, host="A", attributes=said))) == {"R": "A"}


ANONYMOUS = Resource({}, service="s", process="hash", domain="hash", weak=True)


#   c1, c2  ─┬──────┬──
#   hash     └ s1   └ s2     one resource, perhaps two replicas of it
#               └ x     └ y
def test_what_is_called_apart_of_one_anonymous_resource_may_have_two_clocks() -> None:
    trace = aligned(
        row("R", None, 0, 9, host="A"),
        row("s1", "R", 1, 4, resource=ANONYMOUS),
        row("x", "s1", 2, 3, resource=ANONYMOUS),
        row("s2", "R", 5, 8, resource=ANONYMOUS),
        row("y", "s2", 6, 7, resource=ANONYMOUS),
    )
    found = domains(trace)
    assert (found["x"], found["y"]) == (found["s1"], found["s2"])
    assert len({found["R"], found["s1"], found["s2"]}) == 3


def test_an_anonymous_resource_that_calls_itself_may_have_two_clocks() -> None:
    trace = aligned(
        row("R", None, 0, 9, resource=ANONYMOUS),
        row("c", "R", 1, 8, resource=ANONYMOUS, kind="client"),
        row("s", "c", 2, 7, resource=ANONYMOUS, kind="server"),
        row("x", "s", 3, 4, resource=ANONYMOUS),
    )
    found = domains(trace)
    assert found["R"] == found["c"] == "hash"
    assert found["s"] == found["x"] != "hash"


def test_a_resource_that_names_its_host_has_one_clock_however_often_it_is_called() -> None:
    trace = aligned(
        row("R", None, 0, 9, host="A"),
        row("s1", "R", 1, 4, host="B"),
        row("s2", "R", 5, 8, host="B"),
    )
    assert domains(trace) == {"R": "A", "s1": "B", "s2": "B"}


# ── Resolution ───────────────────────────────────────────────────────────────────────────────────


def stamped(count: int, step_ns: int) -> list[Json]:
    """One operation per two stamps, `count` distinct stamps in all, `step_ns` apart."""
    stamps = [EPOCH_NS + step_ns * i for i in range(count)]
    root = row("R", None, 0, 1, start_ns=stamps[0], end_ns=stamps[-1])
    pairs = enumerate(pairwise(stamps))
    return [root, *(row(f"s{i}", "R", 0, 1, start_ns=a, end_ns=b) for i, (a, b) in pairs)]


@pytest.mark.parametrize(
    ("step_ns", "resolution_ns"),
    [
        (1, 1),
        (999, 1),
        (1_000, 1_000),
        (7_000, 1_000),
        (1_000_000, 1_000_000),
        (10**9, 1_000_000),
    ],
)
def test_the_resolution_is_the_largest_step_that_divides_every_stamp(
    step_ns: int, resolution_ns: int
) -> None:
    trace = aligned(*stamped(MIN_STAMPS, step_ns), assumptions=DETECTED)
    assert set(trace.resolutions_ns.values()) == {resolution_ns}


def test_a_resolution_is_believed_from_32_distinct_stamps_on() -> None:
    few = aligned(*stamped(31, 1_000_000), assumptions=DETECTED)
    many = aligned(*stamped(32, 1_000_000), assumptions=DETECTED)
    assert [*few.resolutions_ns.values(), *many.resolutions_ns.values()] == [1, 1_000_000]


def test_the_same_stamps_again_are_no_further_evidence() -> None:
    stamps = stamped(31, 1_000_000)
    again = [{**raw, "id": f"{raw['id']} again", "parent": "R"} for raw in stamps]
    trace = aligned(*stamps, *again, assumptions=DETECTED)
    assert set(trace.resolutions_ns.values()) == {1}


def test_each_domain_has_its_own_resolution() -> None:
    coarse = [{**raw, "host": "A"} for raw in stamped(40, 1_000_000)]
    fine = [
        {**raw, "id": f"f{raw['id']}", "parent": "R", "host": "B"} for raw in stamped(40, 1_001)
    ]
    trace = aligned(*coarse, *fine, assumptions=DETECTED)
    assert trace.resolutions_ns == {"A": 1_000_000, "B": 1}


@pytest.mark.parametrize(
    ("declared", "resolution_ns"),
    [(1_000, 1_000), (1, 1), (0, 1), (-5, 1), (True, 1), ("1000", 1), (10**9 + 1, 1)],
)
def test_a_resource_may_declare_the_resolution_of_its_stamps(
    declared: Any, resolution_ns: int
) -> None:
    said = {names.LLMLAT_CLOCK_DOMAIN_RESOLUTION: declared}
    coarse = Resource(said, service="s", process="p", domain="A", weak=False)
    trace = aligned(
        row("R", None, 0, 9, host="A"), row("a", "R", 1, 2, resource=coarse), assumptions=DETECTED
    )
    assert trace.resolutions_ns == {"A": resolution_ns}


def test_a_declared_resolution_needs_no_evidence() -> None:
    assumptions = replace(EXACT, resolution_ns=15_000_000)
    trace = aligned(
        row("R", None, 0, 9, host="A"), row("a", "R", 1, 2, host="B"), assumptions=assumptions
    )
    assert trace.resolutions_ns == {"A": 15_000_000, "B": 15_000_000}


def test_an_empty_trace_has_no_domains() -> None:
    trace = aligned()
    assert (list(trace.starts_ns), list(trace.domains), dict(trace.resolutions_ns)) == ([], [], {})


def test_few_coarse_stamps_are_not_believed_but_granted() -> None:
    """Another clock may be that coarse as well: nothing is impossible by less than it shows."""
    trace = aligned(
        row("R", None, 0, 100, host="A", kind="client", rpc=True),
        row("s", "R", 10.001, 90.007, host="B", kind="server"),
        assumptions=DETECTED,
    )
    assert {m.epsilon_ns for m in trace.clocks.messages} == {MS + 1_000}
    assert set(trace.resolutions_ns.values()) == {1}


def test_starts_of_one_clock_and_lengths_of_another_are_as_coarse_as_the_starts() -> None:
    """OpenTelemetry's JavaScript SDK: Date.now() and what performance.now() counted since."""
    trace = aligned(
        row("R", None, 0, 100.123456, host="A", kind="client"),
        row("s", "R", 10.000001, 90.000002, host="B", kind="server"),
        assumptions=DETECTED,
    )
    assert [m.epsilon_ns for m in trace.clocks.messages] == [MS + 1]


#   wall        0 ──── 10 │ 5,020 ──── 5,030        stepped by 5,000 after a
#   monotonic   100    110   120        130
#   other                     └ 5,022                and so it is at 122
def test_of_several_anchors_the_nearest_before_places_a_span() -> None:
    trace = aligned(
        row("R", None, 0, 6_000, attributes=monotonic(100, "D")),
        row("a", "R", 0, 10, attributes=monotonic(100, "D")),
        row("b", "R", 5_020, 5_030, attributes=monotonic(120, "D")),
        row("other", "R", 5_022, 5_025),
        assumptions=DETECTED,
    )
    assert starts_ms(trace, 0)["other"] == 122
    assert trace.resolutions_ns == {"D": 50_000}


def test_operations_that_are_their_own_ancestors_are_told_apart_in_time() -> None:
    circles = [
        row(f"{name}{number}", f"{other}{number}", 1, 2, resource=ANONYMOUS)
        for number in range(2_000)
        for name, other in (("a", "b"), ("b", "a"))
    ]
    trace = aligned(row("R", None, 0, 9, resource=ANONYMOUS), *circles)
    assert trace.domains[0] == "hash"
