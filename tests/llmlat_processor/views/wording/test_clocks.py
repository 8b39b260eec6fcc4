"""The clocks of a trace in words: whose they are, what is known of them, what contradicts what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmlat_processor.model import ExplainedTrace, Finding, Interval, Message, Offset
from llmlat_processor.pipeline import process
from llmlat_processor.views.wording import ClockMap, by_weight, meaning, size
from llmlat_processor.views.wording.clocks import against_caller
from llmlat_semconv import attributes as names
from llmlat_semconv.values import FindingKind
from tests.llmlat_processor import clocked
from tests.llmlat_processor.adviser import MS, START_NS, adviser_spans, resource, span

S = 1_000 * MS


def together(finding: Finding) -> str:
    return ClockMap(clocked.adviser(finding)).together(finding)


def where(explained: ExplainedTrace) -> list[str]:
    return [clock.where() for clock in ClockMap(explained).clocks]


def test_every_way_of_knowing_an_offset_has_words() -> None:
    assert where(clocked.many()) == [
        "the root's clock",
        "not bounded: contradictory",
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
        ("vllm", "adviser", "at most 6.751 s ahead of"),
        ("vllm", "adviser", "at least 6.874 s ahead of"),
    ]


def test_of_two_clocks_it_is_that_which_is_not_the_roots() -> None:
    finding = clocked.contradiction()
    turned = replace(finding, proof=finding.proof[::-1])
    limits = ClockMap(clocked.adviser(turned)).limits(turned)
    assert [(one.of, one.than, one.bound) for one in limits] == [
        ("vllm", "adviser", "at least 6.874 s ahead of"),
        ("vllm", "adviser", "at most 6.751 s ahead of"),
    ]


@pytest.mark.parametrize("lacking_ns", [1, 7, 130, 10**6, 125 * 10**6])
def test_limits_are_rounded_so_that_they_still_exclude_each_other(lacking_ns: int) -> None:
    ask, answer = clocked.request(7_000), clocked.answer(7_700)
    short_ns = ask.limit_ns + answer.limit_ns + lacking_ns
    proof = (ask._replace(arrived_ns=ask.arrived_ns - short_ns), answer)
    finding = replace(clocked.contradiction(), proof=proof)
    most, least = (
        float(one.bound.split()[2]) for one in ClockMap(clocked.adviser(finding)).limits(finding)
    )
    assert most < least


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
    assert {one.bound for one in limits} == {"at most 6.750102000 s ahead of"}


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
    assert bounds == ["at most 6.751 s ahead of", "at least 6.874 s ahead of"]


def test_services_of_one_name_are_told_apart_by_their_hosts() -> None:
    finding = clocked.contradiction()
    spans = [*adviser_spans(), span(50, 1, "x", 0, 1, resource("vllm", "gpu-2"))]
    known = clocked.clocks({host: clocked.between(0, 1) for host in ("gpu-1", "gpu-2")})
    clocks = ClockMap(clocked.with_clocks(process(spans), known, finding))
    assert clocks.limits(finding)[0].of == "vllm on gpu-1"
    assert clocks.name("unheard of") == "unheard of"


def test_services_of_one_name_without_hosts_are_told_apart_by_what_they_did() -> None:
    spans = adviser_spans()
    for number, host in enumerate(("one", "two")):
        where = resource("replica", host)
        where.attributes = {}
        spans.append(span(50 + number, 1, f"step {host}", 0, 1, where))
    known = clocked.clocks({host: clocked.between(0, 1) for host in ("one", "two")})
    clocks = ClockMap(clocked.with_clocks(process(spans), known))
    assert [(clock.host, clock.within) for clock in clocks.clocks[1:]] == [
        ("", "step one"),
        ("", "step two"),
    ]
    assert clocks.name("two") == "replica in step two"


def test_names_are_made_fit_for_where_they_are_written() -> None:
    finding = clocked.contradiction()
    clocks = ClockMap(clocked.adviser(finding), str.upper)
    assert [one.of for one in clocks.limits(finding)] == ["VLLM", "VLLM"]


def test_a_contradiction_says_what_it_comes_to_and_what_was_granted() -> None:
    assert together(clocked.contradiction()) == (
        "both cannot be true: 125 ms are missing, though 5.30 ms were granted: "
        "resolution of stamps 4.00 µs, servers' tails 5.00 ms, drift 300 µs"
    )


def test_a_contradiction_says_that_nothing_was_granted() -> None:
    bare = [
        message._replace(epsilon_ns=0, tail_ns=0, drift_ns=0)
        for message in clocked.contradiction().proof
    ]
    said = together(replace(clocked.contradiction(), proof=tuple(bare)))
    assert said == "both cannot be true: 130 ms are missing, with nothing granted"


def test_round_three_clocks_all_of_them_cannot_be_true() -> None:
    finding = clocked.contradiction(FindingKind.OFFSET_CYCLE)
    said = together(replace(finding, proof=(*finding.proof, clocked.request(0))))
    assert said.startswith("all 3 cannot be true: ")


#   app     ──ask──────────answer──        the engine's clock 7 s ahead, later 1 s more or less
def test_a_step_says_which_way_the_clock_went() -> None:
    ask, answer = clocked.request(7_000), clocked.answer(7_700)
    later = answer._replace(left_ns=answer.left_ns + S, arrived_ns=answer.arrived_ns + 10 * MS)
    ahead_of = replace(clocked.contradiction(FindingKind.CLOCK_STEP), proof=(ask, later))
    assert together(ahead_of).startswith("between them vllm moved ahead by at least ")

    before = later._replace(left_ns=START_NS + 6_900 * MS, arrived_ns=START_NS + 20 * MS)
    back = replace(clocked.contradiction(FindingKind.CLOCK_STEP), proof=(ask, before))
    assert together(back).startswith("between them vllm moved back by at least ")


def test_a_step_that_both_clocks_order_otherwise_went_who_knows_where() -> None:
    ask, answer = clocked.request(7_000), clocked.answer(7_700)
    finding = replace(
        clocked.contradiction(FindingKind.CLOCK_STEP),
        proof=(ask, answer._replace(arrived_ns=ask.left_ns - 1)),
    )
    assert together(finding).startswith("between them vllm moved by at least ")


@pytest.mark.parametrize(("amount_ms", "way"), [(2_000, "ahead"), (-2_000, "back")])
def test_a_wall_clock_that_was_set_says_how_far_and_which_way(amount_ms: int, way: str) -> None:
    step = replace(clocked.apparent(), kind=FindingKind.CLOCK_STEP, interval=None)
    step = replace(step, amount_ns=amount_ms * MS)
    assert meaning(step).endswith(f"its process's steady clock it was set {way} by 2.00 s")
    assert size(step) == "2.00 s"


def test_how_much_there_is_of_a_finding() -> None:
    assert size(replace(clocked.apparent(), amount_ns=None)) == ""
    assert size(clocked.contradiction()) == "125 ms"
    assert size(clocked.contradiction(FindingKind.NEGATIVE_TRANSIT)) == "-125 ms"


def test_what_nothing_explains_stands_first_and_then_the_worst() -> None:
    small = replace(clocked.apparent(), amount_ns=MS)
    other = replace(clocked.apparent(), kind=FindingKind.MISSING_PARENT, amount_ns=None)
    findings = [small, clocked.apparent(), other, clocked.contradiction()]
    assert by_weight(findings) == [
        (2, other),
        (3, clocked.contradiction()),
        (1, clocked.apparent()),
        (0, small),
    ]


def test_one_call_contradicts_itself_by_durations() -> None:
    finding = replace(
        clocked.contradiction(FindingKind.NEGATIVE_TRANSIT), amount_ns=-130 * MS, epsilon_ns=5 * MS
    )
    assert together(finding) == (
        "the callee took 130 ms longer than its caller waited, and 5.00 ms were granted"
    )


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (None, ""),
        (clocked.between(None, None), ""),
        (clocked.between(1, 2), "1 ms to 2 ms ahead of"),
        (clocked.between(-2, -1), "1 ms to 2 ms behind"),
    ],
)
def test_an_interval_of_a_finding_is_against_its_caller(known: Interval | None, said: str) -> None:
    finding = replace(clocked.apparent(), interval=known)
    assert against_caller(finding) == said
    assert meaning(finding).endswith(f"explain it: the callee's is {said} the caller's") == bool(
        said
    )
