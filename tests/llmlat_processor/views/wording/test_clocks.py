"""The clocks of a trace in words: whose they are, what is known of them, what contradicts what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmlat_processor.model import ExplainedTrace, Interval, Message, Offset
from llmlat_processor.pipeline import process
from llmlat_processor.views.wording import ClockMap, against_caller, granted
from llmlat_semconv import attributes as names
from llmlat_semconv.values import FindingKind
from tests.llmlat_processor import clocked
from tests.llmlat_processor.adviser import MS, adviser_spans, resource, span


def where(explained: ExplainedTrace) -> list[str]:
    return [clock.where() for clock in ClockMap(explained).clocks]


def test_every_way_of_knowing_an_offset_has_words() -> None:
    assert where(clocked.many()) == [
        "the root's clock",
        "not bounded: contradicts itself",
        "-5 ms .. +12 ms",
        "at most +12.4 ms",
        "at least -3.00 ms",
        "not bounded: no messages",
    ]


def test_an_offset_that_a_contradiction_elsewhere_has_cut_off_says_so() -> None:
    known = clocked.clocks({clocked.GPU: clocked.between(None, None)})
    assert where(clocked.adviser(known=known)) == [
        "the root's clock",
        "not bounded: nothing leads to it",
    ]


def test_one_clock_is_no_map() -> None:
    assert ClockMap(clocked.one_clock()).clocks == ()
    assert ClockMap(process([span(1, 0, "root", 0, 1)])).clocks == ()


def test_people_read_the_wall_clocks_offset() -> None:
    """The other one counts from when each host was started."""
    own, wall = clocked.between(-86_400_000, -86_399_990), clocked.between(1, 11)
    known = clocked.clocks({clocked.GPU: own})
    offsets = {**known.offsets, clocked.GPU: Offset(clocked.GPU, own, wall, 2)}
    assert where(clocked.adviser(known=replace(known, offsets=offsets)))[1] == "+1 ms .. +11 ms"


def test_a_clock_names_its_services_and_its_host() -> None:
    root, engine = ClockMap(clocked.adviser()).clocks
    assert (root.services, root.host, root.is_reference) == (("adviser",), "laptop", True)
    assert (engine.services, engine.host, engine.is_reference) == (("vllm",), "gpu-1", False)
    assert (root.width_ns, engine.width_ns) == (None, 80 * MS)


def test_a_hosts_name_is_preferred_to_its_id() -> None:
    where = resource("vllm", "gpu-1")
    where.attributes = {**where.attributes, names.HOST_NAME: "gpu.example"}
    explained = process([*adviser_spans(), span(50, 1, "x", 0, 1, where)])
    known = clocked.clocks({clocked.GPU: clocked.between(0, 1)})
    first = ClockMap(clocked.with_clocks(explained, known)).clocks[1]
    assert first.host == "gpu.example"


def test_a_finding_concerns_the_clocks_of_its_proof() -> None:
    found = [clock.found for clock in ClockMap(clocked.adviser(clocked.contradiction())).clocks]
    assert found == [(FindingKind.INFEASIBLE_OFFSET,)] * 2


def test_a_finding_without_a_proof_concerns_the_clock_of_its_span() -> None:
    twice = (clocked.apparent(), clocked.apparent())
    found = [clock.found for clock in ClockMap(clocked.adviser(*twice)).clocks]
    assert found == [(), (FindingKind.APPARENT_NEGATIVE_NETWORK,)]


def test_a_finding_of_another_kind_concerns_no_clock() -> None:
    other = replace(clocked.apparent(), kind=FindingKind.OUTLIVED_PARENT)
    assert [clock.found for clock in ClockMap(clocked.adviser(other)).clocks] == [(), ()]


# ── Proofs ───────────────────────────────────────────────────────────────────────────────────────


def test_of_two_clocks_both_messages_bound_one_offset() -> None:
    finding = clocked.contradiction()
    limits = ClockMap(clocked.adviser(finding)).limits(finding)
    assert [(one.of, one.than, one.bound) for one in limits] == [
        ("vllm", "adviser", "at most +6.750102 s"),
        ("vllm", "adviser", "at least +6.874798 s"),
    ]


def test_round_three_clocks_each_message_bounds_an_offset_of_its_own() -> None:
    third = replace_ends(clocked.request(7_000), clocked.GPU, "edge")
    finding = replace(
        clocked.contradiction(FindingKind.OFFSET_CYCLE),
        proof=(clocked.request(7_000), third, replace_ends(third, "edge", clocked.LAPTOP)),
    )
    limits = ClockMap(clocked.adviser(finding)).limits(finding)
    assert [(one.of, one.than) for one in limits] == [
        ("vllm", "adviser"),
        ("edge", "vllm"),
        ("adviser", "edge"),
    ]
    assert {one.bound for one in limits} == {"at most +6.750102 s"}


def replace_ends(message: Message, sender: str, receiver: str) -> Message:
    return message._replace(sender=sender, receiver=receiver)


def test_limits_are_of_wall_clocks_too() -> None:
    """The engine's monotonic clock shows 1 s where its wall clock shows the time of day."""
    explained = clocked.adviser(clocked.contradiction())
    aligned = explained.aligned
    number = aligned.domains.index(clocked.GPU)
    starts = [*aligned.starts_ns]
    starts[number] = 1_000 * MS
    proof = (
        clocked.request(7_000)._replace(arrived_ns=1_000 * MS),
        clocked.answer(7_700)._replace(left_ns=1_700 * MS),
    )
    finding = replace(clocked.contradiction(), proof=proof)
    shifted = replace(explained, aligned=replace(aligned, starts_ns=starts))
    bounds = [one.bound for one in ClockMap(shifted).limits(finding)]
    assert bounds == ["at most +6.750102 s", "at least +6.874798 s"]


def test_services_of_one_name_are_told_apart_by_their_hosts() -> None:
    finding = clocked.contradiction()
    spans = [*adviser_spans(), span(50, 1, "x", 0, 1, resource("vllm", "gpu-2"))]
    known = clocked.clocks({host: clocked.between(0, 1) for host in ("gpu-1", "gpu-2")})
    clocks = ClockMap(clocked.with_clocks(process(spans), known, finding))
    assert clocks.limits(finding)[0].of == "vllm on gpu-1"
    assert clocks.name("unheard of") == "unheard of"


def test_a_contradiction_says_what_it_comes_to_and_what_was_granted() -> None:
    assert granted(clocked.contradiction()) == (
        "125 ms are missing, though 5.30 ms were granted: "
        "resolution 4.00 µs, tail 5.00 ms, drift 300 µs"
    )


def test_a_contradiction_says_that_nothing_was_granted() -> None:
    bare = [
        message._replace(epsilon_ns=0, tail_ns=0, drift_ns=0)
        for message in clocked.contradiction().proof
    ]
    said = granted(replace(clocked.contradiction(), proof=tuple(bare)))
    assert said == "130 ms are missing, with nothing granted"


def test_one_call_contradicts_itself_by_durations() -> None:
    finding = replace(
        clocked.contradiction(FindingKind.NEGATIVE_TRANSIT), amount_ns=-130 * MS, epsilon_ns=5 * MS
    )
    assert granted(finding) == (
        "the callee took 130 ms longer than its caller waited, and 5.00 ms were granted"
    )


@pytest.mark.parametrize(
    ("known", "said"),
    [(None, ""), (clocked.between(None, None), ""), (clocked.between(1, 2), "+1 ms .. +2 ms")],
)
def test_an_interval_of_a_finding_is_against_its_caller(known: Interval | None, said: str) -> None:
    assert against_caller(replace(clocked.apparent(), interval=known)) == said
