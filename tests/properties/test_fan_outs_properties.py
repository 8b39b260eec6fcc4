"""What a collapse lets go changes no path, and no time during which something was at work."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.model import CLIENT, INTERNAL, Event, Resource, Span
from llmlat_processor.pipeline import process
from llmlat_processor.window.fan_outs import SMALLEST, surplus
from llmlat_semconv import attributes as names
from llmlat_semconv import events
from tests.cases.case_format import EPOCH_NS
from tests.properties.canonical import sections

APP = Resource({}, service="app", process="app", domain="host", weak=False)
UNIT_NS = 1_234_567
ROOT, PARENT = 1, 2
LENGTH = 400


def span(number: int, parent: int, start: int, end: int, **more: Any) -> Span:
    return Span(
        b"trace".ljust(16),
        number.to_bytes(8, "big"),
        parent.to_bytes(8, "big") if parent else b"",
        more.pop("name", f"span {number}"),
        more.pop("kind", INTERNAL),
        EPOCH_NS + start * UNIT_NS,
        EPOCH_NS + end * UNIT_NS,
        APP,
        **more,
    )


@st.composite
def _fan_outs(draw: st.DrawFn) -> list[Span]:
    """A parent with many leaves of a few kinds, and some children that are no leaves."""
    spans = [span(ROOT, 0, 0, LENGTH + 9), span(PARENT, ROOT, 3, LENGTH)]
    number = 10
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(3, LENGTH - 30))
        said = draw(st.sampled_from(({}, {names.GEN_AI_OPERATION_NAME: "execute_tool"})))
        spans.append(span(number, PARENT, start, start + 30, attributes=said))
        spans.append(span(number + 1, number, start + 5, start + draw(st.integers(6, 30))))
        number += 2
    for kind in range(draw(st.integers(1, 3))):
        longest = draw(st.integers(1, 60))
        for _ in range(draw(st.integers(SMALLEST, 60))):
            start = draw(st.integers(3, LENGTH - longest))
            end = start + draw(st.integers(0, longest))
            called = draw(st.sampled_from((CLIENT, INTERNAL))) if kind else CLIENT
            spans.append(span(number, PARENT, start, end, name=f"leaf {kind}", kind=called))
            number += 1
    return spans


@given(_fan_outs(), st.sets(st.sampled_from((ROOT, PARENT))), st.booleans())
def test_the_paths_through_what_stays_are_the_paths_through_all_of_it(
    spans: list[Span], not_there_yet: set[int], foresees: bool
) -> None:
    known = [s for s in spans if int.from_bytes(s.span_id, "big") not in not_there_yet]
    gone = surplus(known, foresees=foresees)

    (whole,) = process(spans).paths.roots
    (rest,) = process([one for one in spans if one not in gone]).paths.roots

    assert sections(rest.e2e) == sections(whole.e2e)
    assert rest.ledger.busy_ns == whole.ledger.busy_ns


@given(_fan_outs(), st.randoms(use_true_random=False))
def test_what_goes_depends_on_no_order(spans: list[Span], random: Any) -> None:
    expected = surplus(spans)
    random.shuffle(spans)
    assert surplus(spans) == expected


@given(st.lists(st.integers(5, 60), min_size=400, max_size=400), st.integers(2, 20))
def test_the_path_of_a_pool_of_workers_can_be_foreseen_while_it_works(
    lengths: list[int], workers: int
) -> None:
    """All of it at once, and as much as has ended at any time, which is the way it comes."""
    free = [3] * workers
    leaves = []
    for number, length in enumerate(lengths, start=10):
        worker = free.index(min(free))
        leaves.append(span(number, PARENT, free[worker], free[worker] + length, name="job"))
        free[worker] += length + 1
    leaves.sort(key=lambda leaf: leaf.end_ns)
    ends = [span(PARENT, ROOT, 3, max(free)), span(ROOT, 0, 0, max(free) + 9)]
    held: list[Span] = []
    for leaf in leaves:
        held.append(leaf)
        if len(held) == 200:
            gone = surplus(held)
            held = [one for one in held if one not in gone]
            if len(held) > 150:
                return  # two workers need each of their jobs, nearly

    (whole,) = process([*leaves, *ends]).paths.roots
    (rest,) = process([*held, *ends]).paths.roots

    assert sections(rest.e2e) == sections(whole.e2e)
    assert rest.ledger.busy_ns == whole.ledger.busy_ns


def test_a_pool_of_workers_is_left_with_what_one_of_them_did() -> None:
    jobs = [(start, start + 40) for start in range(3, 350)]
    leaves = [span(n, PARENT, *job, name="job") for n, job in enumerate(jobs, start=10)]
    ends = [span(ROOT, 0, 0, 409), span(PARENT, ROOT, 3, 400)]

    gone = surplus([*ends, *leaves], foresees=False)

    assert len(gone) > 0.9 * len(leaves)


def test_what_is_one_after_the_other_all_stays() -> None:
    leaves = [span(n, PARENT, 3 * n, 3 * n + 2, name="job") for n in range(10, 110)]
    assert surplus(leaves) == set()


def test_leaves_of_which_something_is_said_all_stay() -> None:
    leaves = [span(n, PARENT, 5, 10, name="job") for n in range(10, 50)]
    awaited = leaves[3].span_id.hex()
    joined = Event(events.LLMLAT_JOIN, EPOCH_NS, {names.LLMLAT_JOIN_SPAN_IDS: (awaited,)})
    child = span(99, 14, 6, 7)

    spans = [span(PARENT, ROOT, 3, 400, events=[joined]), *leaves, child]
    gone = surplus(spans, {leaves[5].span_id}, foresees=False)

    assert gone == set(leaves) - {leaves[0], leaves[3], leaves[4], leaves[5]}
