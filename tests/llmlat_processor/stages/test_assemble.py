"""Assembly: one span per identity, phases apart, damage set aside, a parent for whoever has one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations

import pytest

from llmlat_processor.model import CLIENT, SERVER, Assumptions, Span, Trace
from llmlat_processor.stages.assemble import ABSENT_NAME, assemble
from llmlat_processor.written import OWN_SCOPE
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import FindingKind
from tests.cases.case_format import EPOCH_NS, EXACT, Json
from tests.cases.case_spans import name_of
from tests.llmlat_processor.stages.spans import MS, findings_of, phase, row, spans

HOUR_MS = 3_600_000
YEAR_1970_MS = -EPOCH_NS // MS


def assembled(*rows: Json, assumptions: Assumptions = EXACT) -> Trace:
    return assemble(spans(*rows), assumptions)


def family(trace: Trace) -> dict[str, str | None]:
    """The parent of each operation."""
    ids = [name_of(span.span_id) for span in trace.operations]
    return {
        name: ids[above] if above >= 0 else None
        for name, above in zip(ids, trace.parents, strict=True)
    }


def roots(trace: Trace) -> list[str]:
    return [name_of(trace.operations[position].span_id) for position in trace.roots]


def phases(trace: Trace) -> dict[str, list[str]]:
    """The phase spans of each operation that has some."""
    return {
        name_of(trace.operations[position].span_id): [name_of(span.span_id) for span in labels]
        for position, labels in trace.phases.items()
    }


ROOT = row("R", None, 0, 100)


# ── One span per identity ────────────────────────────────────────────────────────────────────────


def test_of_duplicates_the_one_with_more_attributes_stays() -> None:
    poor = row("a", "R", 1, 2, raw=b"z")
    rich = row("a", "R", 1, 3, raw=b"a", attributes={names.SERVER_ADDRESS: "x"})
    for copies in permutations((poor, rich)):
        trace = assembled(ROOT, *copies)
        assert [span.raw for span in trace.operations[1:]] == [b"a"]
        assert findings_of(trace.findings) == ["duplicate_span of a"]


def test_of_duplicates_with_as_many_attributes_the_greater_bytes_stay() -> None:
    copies = [row("a", "R", 1, end, raw=raw) for end, raw in ((2, b"1"), (3, b"3"), (4, b"2"))]
    for order in permutations(copies):
        assert [span.raw for span in assembled(ROOT, *order).operations[1:]] == [b"3"]


def test_a_span_that_merely_came_twice_is_no_finding() -> None:
    trace = assembled(ROOT, ROOT, row("a", "R", 1, 2), row("a", "R", 1, 2))
    assert family(trace) == {"R": None, "a": "R"}
    assert trace.findings == ()


def test_two_kinds_under_one_id_are_two_spans() -> None:
    trace = assembled(ROOT, row("a", "R", 1, 9, kind="client"), row("a", "R", 2, 8, kind="server"))
    assert len(trace.operations) == 3
    assert trace.findings == ()


#   R       ├──────────────────────────┤
#   a          ├── CLIENT ─────────┤         one id, as Zipkin's B3 shares it
#   a            ├── SERVER ────┤
#   below          ├──────┤                  a child of that id
SHARED = (
    ROOT,
    row("a", "R", 10, 90, kind="client"),
    row("a", "R", 20, 80, kind="server"),
    row("below", "a", 30, 60),
)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_children_of_a_shared_id_go_under_the_server_and_that_under_the_client(
    order: Sequence[int],
) -> None:
    trace = assembled(*(SHARED[i] for i in order))
    kinds = [span.kind for span in trace.operations]
    client, server = kinds.index(CLIENT), kinds.index(SERVER)
    below = next(i for i, span in enumerate(trace.operations) if span.span_id == b"below")
    assert trace.parents[below] == server
    assert trace.parents[server] == client
    assert trace.parents[client] == 0


# ── Phases are no operations ─────────────────────────────────────────────────────────────────────


def test_a_phase_span_labels_its_parent() -> None:
    trace = assembled(ROOT, phase(Phase.QUEUE, "R", 1, 5))
    assert family(trace) == {"R": None}
    assert phases(trace) == {"R": ["R.queue"]}


def test_a_phase_under_a_phase_labels_the_operation_above_both() -> None:
    inner = row("kv", "R.queue", 2, 3, phase="kv_transfer")
    trace = assembled(ROOT, phase(Phase.QUEUE, "R", 1, 5), inner)
    assert phases(trace) == {"R": ["R.queue", "kv"]}


def test_an_operation_under_phases_hangs_under_the_operation_above_them() -> None:
    inner = row("kv", "R.queue", 2, 4, phase="kv_transfer")
    trace = assembled(ROOT, phase(Phase.QUEUE, "R", 1, 5), inner, row("a", "kv", 2, 3))
    assert family(trace) == {"R": None, "a": "R"}


def test_a_phase_whose_operation_never_came_is_said() -> None:
    trace = assembled(ROOT, phase(Phase.QUEUE, "gone", 1, 5))
    assert phases(trace) == {}
    assert findings_of(trace.findings) == ["missing_parent of gone.queue"]
    assert not trace.complete


def test_phases_in_a_circle_label_nothing() -> None:
    circle = [row("p", "q", 1, 2, phase="queue"), row("q", "p", 1, 2, phase="queue")]
    trace = assembled(ROOT, *circle, row("a", "p", 1, 2))
    assert family(trace) == {"R": None, "a": None}
    assert phases(trace) == {}


# ── Our own spans ────────────────────────────────────────────────────────────────────────────────


def test_what_the_processor_emitted_itself_is_ignored() -> None:
    trace = assembled(ROOT, row("lane", "R", 0, 50, scope=OWN_SCOPE))
    assert family(trace) == {"R": None}
    assert trace.findings == ()


@pytest.mark.parametrize(
    "broken",
    [
        [row("lane", "R", 9, 5, scope=OWN_SCOPE)],
        [row("lane", "R", 1, 5, scope=OWN_SCOPE), row("lane", "R", 1, 6, scope=OWN_SCOPE)],
        [row("lane", "gone", 1, 5, scope=OWN_SCOPE)],
    ],
    ids=["ends before it starts", "came twice with different ends", "without a parent"],
)
def test_nothing_is_found_wrong_with_the_processors_own_spans(broken: list[Json]) -> None:
    trace = assembled(ROOT, *broken)
    assert trace.findings == ()
    assert trace.complete


# ── Damage ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        (5, 3, "negative_duration of x -2"),
        (YEAR_1970_MS + 1, 3, "epoch_garbage of x"),
        (YEAR_1970_MS + 1, YEAR_1970_MS + 2, "epoch_garbage of x"),
        (YEAR_1970_MS, 3, "unset_milestone of x"),
        (3, YEAR_1970_MS, "unset_milestone of x"),
        (1, HOUR_MS + 1_001, "epoch_garbage of x"),
        (HOUR_MS + 1_001, HOUR_MS + 1_002, "epoch_garbage of x"),
    ],
    ids=[
        "end before start",
        "start in 1970",
        "all in 1970",
        "start is 0",
        "end is 0",
        "end over an hour past receipt",
        "all over an hour past receipt",
    ],
)
def test_a_damaged_span_is_set_aside_and_its_children_climb_up(
    start: float, end: float, said: str
) -> None:
    received_a_second_later = replace(EXACT, received_ns=EPOCH_NS + 1_000 * MS)
    trace = assembled(
        ROOT,
        row("x", "R", start, end),
        row("a", "x", 1, 2),
        assumptions=received_a_second_later,
    )
    assert family(trace) == {"R": None, "a": "R"}
    assert findings_of(trace.findings) == [said]
    assert trace.dropped_children == {0}


@pytest.mark.parametrize("end", [1_000, HOUR_MS + 1_000])
def test_a_stamp_within_an_hour_of_receipt_is_a_time(end: float) -> None:
    received = replace(EXACT, received_ns=EPOCH_NS + 1_000 * MS)
    assert assembled(row("R", None, 0, end), assumptions=received).findings == ()


def test_without_a_time_of_receipt_nothing_is_too_late() -> None:
    assert assembled(row("R", None, 0, 100 * HOUR_MS)).findings == ()


def test_children_of_several_damaged_spans_climb_past_all_of_them() -> None:
    trace = assembled(ROOT, row("x", "R", 5, 3), row("y", "x", 5, 4), row("a", "y", 1, 2))
    assert family(trace) == {"R": None, "a": "R"}


def test_phases_of_a_damaged_operation_label_nobody_elses_time() -> None:
    """An agent above a damaged chat did not itself wait for a response."""
    trace = assembled(ROOT, row("x", "R", 5, 3), phase(Phase.WAIT, "x", 3, 4))
    assert phases(trace) == {}


def test_a_damaged_phase_takes_nothing_from_its_operation() -> None:
    trace = assembled(ROOT, phase(Phase.QUEUE, "R", 5, 3))
    assert phases(trace) == {}
    assert trace.dropped_children == frozenset()


def test_a_damaged_orphan_takes_nothing_from_anybody() -> None:
    trace = assembled(ROOT, row("z", "R", 90, 95), row("x", "gone", 5, 3))
    assert trace.dropped_children == frozenset()


def test_two_damaged_spans_under_one_id_are_both_set_aside() -> None:
    both = [row("x", "R", 8, 3, kind="client"), row("x", "R", 7, 2, kind="server")]
    trace = assembled(ROOT, *both)
    assert family(trace) == {"R": None}
    assert findings_of(trace.findings) == ["negative_duration of x -5"] * 2


def test_nothing_but_damage_is_a_trace_without_roots() -> None:
    trace = assembled(row("x", None, 5, 3))
    assert (trace.operations, trace.roots) == ((), ())
    assert [span.span_id for span in trace.spans] == [b"x"]


def test_no_spans_are_an_empty_trace() -> None:
    trace = assemble([], EXACT)
    assert (trace.trace_id, trace.spans, trace.roots, trace.complete) == (b"", (), (), True)


# ── Roots and orphans ────────────────────────────────────────────────────────────────────────────


def test_an_orphan_beside_a_root_hangs_nowhere() -> None:
    trace = assembled(ROOT, row("a", "gone", 1, 2))
    assert roots(trace) == ["R"]
    assert family(trace) == {"R": None, "a": None}
    assert findings_of(trace.findings) == ["missing_parent of a"]
    assert not trace.complete


def test_every_span_without_a_parent_id_is_a_root() -> None:
    trace = assembled(ROOT, row("S", None, 50, 60))
    assert roots(trace) == ["R", "S"]
    assert trace.complete


#   gone          ├╌╌╌╌╌╌╌╌╌╌╌╌┤         stands in, from the first start to the last end
#   a             ├──────┤
#   b                 ├────────┤
#   lost                ├╌╌╌┤            another absent id, another root
#   c                   ├───┤
ORPHANS = (row("b", "gone", 20, 40), row("a", "gone", 10, 30), row("c", "lost", 25, 28))


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_without_a_root_orphans_hang_under_a_provisional_one_per_absent_id(
    order: Sequence[int],
) -> None:
    trace = assembled(*(ORPHANS[i] for i in order))
    assert roots(trace) == ["gone", "lost"]
    assert family(trace) == {"a": "gone", "b": "gone", "c": "lost", "gone": None, "lost": None}
    stand_in = trace.operations[trace.roots[0]]
    assert (stand_in.name, stand_in.parent_id) == (ABSENT_NAME, b"")
    assert (stand_in.start_ns, stand_in.end_ns) == (EPOCH_NS + 10 * MS, EPOCH_NS + 40 * MS)
    assert findings_of(trace.findings) == [f"missing_parent of {name}" for name in "abc"]
    assert not trace.complete


def test_a_provisional_root_is_not_among_the_spans_received() -> None:
    assert [span.span_id for span in assembled(ORPHANS[0]).spans] == [b"b"]


def test_orphans_of_two_clocks_do_not_stretch_their_provisional_root() -> None:
    """The other clock is 100 s ahead: nobody was at work for 100 s."""
    trace = assembled(row("a", "gone", 0, 10), row("b", "gone", 100_000, 100_010, host="other"))
    lengths = [trace.operations[root].duration_ns for root in trace.roots]
    assert lengths == [10 * MS] * len(lengths)


def test_children_of_a_damaged_root_hang_under_a_provisional_one_with_its_id() -> None:
    trace = assembled(row("R", None, 9, 3), row("a", "R", 1, 2))
    assert roots(trace) == ["R"]
    assert family(trace) == {"a": "R", "R": None}
    assert findings_of(trace.findings) == ["missing_parent of a", "negative_duration of R -6"]


# ── Spans that are their own ancestors ───────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row("a", "a", 1, 2)], ["dependency_cycle of a"]),
        ([row("a", "b", 1, 2), row("b", "a", 1, 2)], ["dependency_cycle of a"]),
        (
            [row("b", "c", 1, 2), row("c", "b", 1, 2), row("below", "c", 1, 2)],
            ["dependency_cycle of b"],
        ),
        (
            [row("a", "a", 1, 2), row("b", "b", 1, 2)],
            ["dependency_cycle of a", "dependency_cycle of b"],
        ),
    ],
    ids=["of itself", "of each other", "with a child below the circle", "two circles"],
)
def test_operations_in_a_circle_hang_nowhere_and_the_good_root_answers(
    rows: list[Json], said: list[str]
) -> None:
    for order in permutations([ROOT, *rows]):
        trace = assembled(*order)
        assert roots(trace) == ["R"]
        assert findings_of(trace.findings) == said
        assert not trace.complete


def test_a_circle_names_all_of_its_members_as_witnesses() -> None:
    trace = assembled(ROOT, row("b", "c", 1, 2), row("c", "a", 1, 2), row("a", "b", 1, 2))
    (finding,) = trace.findings
    assert (finding.kind, finding.witnesses) == (
        FindingKind.DEPENDENCY_CYCLE,
        (b"a", b"b", b"c"),
    )


# ── Order ────────────────────────────────────────────────────────────────────────────────────────

MESS = (
    *SHARED,
    phase(Phase.QUEUE, "R", 1, 5),
    row("x", "R", 9, 3),
    row("orphan", "gone", 1, 2),
    row("loop", "loop", 1, 2),
)


def _everything(trace: Trace) -> object:
    return (trace.parents, trace.roots, trace.findings, trace.dropped_children, phases(trace))


@pytest.mark.parametrize(
    "shuffled",
    [lambda s: s[::-1], lambda s: s[3:] + s[:3], lambda s: s + s, lambda s: sorted(s, key=repr)],
    ids=["backward", "rotated", "all twice", "by id"],
)
def test_order_and_repetition_make_no_difference(
    shuffled: Callable[[list[Span]], list[Span]],
) -> None:
    made = spans(*MESS)
    expected = assemble(made, EXACT)
    trace = assemble(shuffled(made), EXACT)
    assert trace.operations == expected.operations
    assert _everything(trace) == _everything(expected)


def test_copies_that_differ_only_in_where_they_came_from_settle_alike_in_any_order() -> None:
    """The bytes of a span say nothing of its resource, so a relay can make such copies."""
    copies = spans(row("a", None, 1, 2, raw=b"a"), row("a", None, 1, 2, raw=b"a", host="other"))
    kept = {assemble(order, EXACT).operations[0].resource.domain for order in permutations(copies)}
    assert len(kept) == 1
