"""Reports from users of other tools about engines, each with its whole kind."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from llmlat_processor.breaks import Breaks
from llmlat_processor.metrics.derived import Derived
from llmlat_processor.model import ExplainedTrace, Span
from llmlat_processor.model.families import Distribution
from llmlat_processor.pipeline import process
from llmlat_semconv import attributes as names
from llmlat_semconv.metrics import LLMLAT_CRITICAL_PATH_PHASE_DURATION
from llmlat_semconv.phases import Phase, finding_attribute
from llmlat_semconv.values import FindingKind, SectionLabel
from tests.cases.case_format import EXACT, Json
from tests.llmlat_processor.native import (
    DECODE,
    FIRST_OUTPUT,
    PREFILL,
    QUEUE,
    REQUEST,
    REQUEST_ID,
    llm_request,
    sglang,
    stage,
)
from tests.llmlat_processor.stages.spans import (
    amounts,
    chat,
    engine,
    explained,
    findings,
    phase,
    row,
    spans,
)

# ── EN-01: a stage that was never reached ────────────────────────────────────────────────────────

# Stamps {queued 100.0, scheduled 0, first token 0, last token 0, finished 103.0}, subtracted.
UNREACHED: Mapping[str, tuple[dict[str, float], list[str], list[str]]] = {
    "its stamp is 0 at the end": (
        {QUEUE: -100_000, PREFILL: 0, DECODE: 0},
        ["llm_request unobserved 3000"],  # it took no time in decode, where it never was
        ["negative_duration of llm_request -100000", "unset_milestone of llm_request"],
    ),
    "its stamp is 0 at the start": (
        {QUEUE: 3_000, PREFILL: 100_000},
        ["llm_request queue 3000"],
        ["phase_overflow of llm_request 97000"],
    ),
    "nobody says it": ({QUEUE: 3_000}, ["llm_request queue 3000"], []),
}


@pytest.mark.parametrize(("said", "path", "found"), UNREACHED.values(), ids=UNREACHED)
def test_en_01_a_stage_that_was_never_reached_is_absent_and_that_is_said(
    said: dict[str, float], path: list[str], found: list[str]
) -> None:
    outcome = explained(llm_request(None, 0, 3_000, said=said))
    assert amounts(outcome) == path
    assert findings(outcome) == found


# ── EN-02: a stamp that was overwritten ──────────────────────────────────────────────────────────


def test_en_02_a_negative_queue_is_left_out_and_the_rest_stands() -> None:
    said = {QUEUE: -48_000, PREFILL: 100, DECODE: 400}
    outcome = explained(llm_request(None, 0, 600, said=said))
    assert amounts(outcome) == [
        "llm_request prefill 100",
        "llm_request decode 400",
        "llm_request unobserved 100",
    ]
    assert findings(outcome) == ["negative_duration of llm_request -48000"]


# ── EN-03: retracted, and in the queue again ─────────────────────────────────────────────────────

#   wait ├─┤                2        put into a batch at 2, retracted at 5, in a batch again at 9
#   run    ├──┤    ├──┤     3 + 3
RETRACTED = [{"name": "retract", "at": 5}]
WAYS = {
    "while it computed the prompt": (
        [
            stage("prefill_waiting", 0, 2),
            stage("prefill_forward", 2, 12),
            stage("chunked_prefill", 2, 5, "prefill_forward"),
            {**stage("chunk 2", 9, 12, "prefill_forward"), "name": "chunked_prefill"},
        ],
        ["queue 2", "prefill 3", "preempted 4", "prefill 3"],
    ),
    "after its first token": (
        [
            stage("prefill_waiting", 0, 2),
            stage("prefill_forward", 2, 3),
            stage("decode_forward", 3, 12),
            stage("decode_waiting", 9, 10),
        ],
        ["queue 2", "prefill 1", "decode 2", "preempted 4", "decode 3"],
    ),
}


@pytest.mark.parametrize(("stages", "path"), WAYS.values(), ids=WAYS)
def test_en_03_what_was_retracted_has_queued_twice_and_never_for_less_than_nothing(
    stages: list[Json], path: list[str]
) -> None:
    outcome = explained(*sglang(None, 0, 12, RETRACTED), *stages)
    assert amounts(outcome) == [f"{REQUEST} {line}" for line in path]
    assert findings(outcome) == []


# ── EN-05: it is in the queue before its peer is there ───────────────────────────────────────────


def test_en_05_a_stage_that_ends_before_it_begins_is_told_and_takes_no_time() -> None:
    stages = [stage("decode_transferred", 14, 10), stage("decode_waiting", 10, 16)]
    outcome = explained(*sglang(None, 0, 30, name="decode Req 1a2b"), *stages)
    assert findings(outcome) == ["negative_duration of decode_transferred -4"]
    assert amounts(outcome) == [
        " Req 1a2b unobserved 10",
        " Req 1a2b queue 6",
        " Req 1a2b unobserved 14",
    ]


@pytest.mark.parametrize("before", [0, 3])
def test_en_05_stages_that_overlap_are_never_counted_twice(before: int) -> None:
    stages = [stage("decode_transferred", 6, 14), stage("decode_waiting", 14 - before, 20)]
    outcome = explained(*sglang(None, 0, 20, name="decode Req 1a2b"), *stages)
    assert amounts(outcome) == [
        " Req 1a2b unobserved 6",
        " Req 1a2b kv_transfer 8",
        " Req 1a2b queue 6",
    ]


# ── EN-08: one stamp for both ends ───────────────────────────────────────────────────────────────


def test_en_08_a_prefill_of_nothing_is_doubted_and_counts_in_no_mean() -> None:
    said = {FIRST_OUTPUT: 0, QUEUE: 1, PREFILL: 0, DECODE: 30}
    derived = Derived(100)
    for _ in range(100):
        outcome = explained(llm_request(None, 0, 40, said=said))
        assert findings(outcome) == ["unset_milestone of llm_request"] * 2
        derived.observe(outcome.explained)
    assert _counted(derived) == {SectionLabel.QUEUE, SectionLabel.DECODE, SectionLabel.UNOBSERVED}


def test_en_08_so_is_one_that_a_peer_reports() -> None:
    call = chat("c", None, 0, 100, stream=True, reported={"prefill": 0, "decode": 40})
    outcome = explained(call, phase(Phase.WAIT, "c", 0, 60), phase(Phase.STREAM, "c", 60, 100))
    assert findings(outcome) == ["unset_milestone of c"]
    assert amounts(outcome) == ["c decode 40", "c transit 60"]


def _counted(derived: Derived) -> set[str]:
    """The labels that there is a distribution of."""
    (family,) = (
        one for one in derived.families(1) if one.metric is LLMLAT_CRITICAL_PATH_PHASE_DURATION
    )
    return {
        str(dict(point.labels)[names.LLMLAT_SECTION_LABEL])
        for point in family.points
        if isinstance(point, Distribution)
    }


# ── EN-09: the engine's span covers a tenth of the request ───────────────────────────────────────


def test_en_09_what_no_engine_saw_is_named_and_nothing_is_lost() -> None:
    served = row("http", None, 0, 10_000, kind="server", host="gpu")
    outcome = explained(served, llm_request("http", 4_000, 5_000, said={PREFILL: 400, DECODE: 600}))
    assert amounts(outcome) == [
        "http unobserved 4000",
        "llm_request prefill 400",
        "llm_request decode 600",
        "http unobserved 5000",
    ]


def test_en_09_across_a_network_it_is_transit() -> None:
    call = chat("c", None, 0, 10_000)
    outcome = explained(call, llm_request("c", 4_000, 5_000, said={PREFILL: 400, DECODE: 600}))
    assert amounts(outcome) == [
        "llm_request prefill 400",
        "llm_request decode 600",
        "c transit 9000",
    ]


# ── EN-10: before the engine's queue ─────────────────────────────────────────────────────────────


def test_en_10_what_waits_before_the_queue_is_not_in_it() -> None:
    said = {FIRST_OUTPUT: 1_000, QUEUE: 100, PREFILL: 100, DECODE: 500}
    outcome = explained(llm_request(None, 0, 1_500, said=said))
    assert amounts(outcome) == [
        "llm_request unobserved 800",
        "llm_request queue 100",
        "llm_request prefill 100",
        "llm_request decode 500",
    ]


def test_en_10_where_nobody_says_when_the_first_output_was_nothing_is_stretched() -> None:
    said = {QUEUE: 100, PREFILL: 100, DECODE: 500}
    outcome = explained(llm_request(None, 0, 1_500, said=said))
    assert sorted(amounts(outcome)) == [
        "llm_request decode 500",
        "llm_request prefill 100",
        "llm_request queue 100",
        "llm_request unobserved 800",
    ]


# ── EN-12: decode hangs under prefill ────────────────────────────────────────────────────────────


def test_en_12_a_decode_that_hangs_under_prefill_follows_it() -> None:
    outcome = explained(
        row("server", None, 0, 3_146, kind="server"),
        row("prefill", "server", 0, 50),
        row("decode", "prefill", 50, 3_142),
    )
    assert amounts(outcome) == ["prefill unobserved 50", "decode work 3092", "server unobserved 4"]
    assert findings(outcome) == ["outlived_parent of decode 3092"]


def test_en_12_so_does_a_phase_whoever_says_it() -> None:
    ours = explained(
        engine("e", None, 0, 3_146),
        phase(Phase.PREFILL, "e", 0, 50),
        {**phase(Phase.DECODE, "e", 50, 3_142), "parent": "e.prefill"},
    )
    assert amounts(ours) == ["e prefill 50", "e decode 3092", "e unobserved 4"]
    native = explained(
        *sglang(None, 0, 3_146),
        stage("prefill_forward", 0, 50),
        stage("decode_forward", 50, 3_142, "prefill_forward"),
    )
    expected = ["prefill 50", "decode 3092", "unobserved 4"]
    assert amounts(native) == [f"{REQUEST} {line}" for line in expected]
    assert findings(ours) == findings(native) == []


# ── EN-17, EN-18: a context that was lost on the way ─────────────────────────────────────────────

ASKED = chat("c", None, 0, 100, attributes={names.GEN_AI_RESPONSE_ID: "chatcmpl-7f3a"})
ANSWERED = {
    "native": llm_request(None, 10, 90, said={REQUEST_ID: "chatcmpl-7f3a"}),
    "ours": engine("e", None, 10, 90, attributes={names.LLMLAT_REQUEST_ID: "chatcmpl-7f3a"}),
}


def traces(*rows: Json) -> list[ExplainedTrace]:
    """Each row as a trace of its own."""
    made = []
    for number, one in enumerate(rows, 1):
        (span,) = spans(one)
        span.trace_id = bytes([number]) * 16
        made.append(process([span], EXACT))
    return made


def breaks(told: list[ExplainedTrace]) -> list[tuple[bytes, str]]:
    """Which spans were found to be of a request that is in another trace, and what is said."""
    return [
        (finding.of, finding.note)
        for each in told
        for finding in each.findings
        if finding.kind is FindingKind.TRACE_BREAK
    ]


@pytest.mark.parametrize("engine_row", ANSWERED.values(), ids=ANSWERED)
@pytest.mark.parametrize("order", [1, -1], ids=["caller first", "engine first"])
def test_en_18_one_request_under_two_trace_ids_is_a_break(engine_row: Json, order: int) -> None:
    seen = Breaks()
    rows = [ASKED, engine_row][::order]
    told = [seen.told(each) for each in traces(*rows)]
    assert breaks(told) == [
        (str(rows[1]["id"]).encode(), f"its request is in trace {'01' * 16} too")
    ]
    (later,) = told[1].trace.operations
    annotation = told[1].annotations[later]
    assert annotation.attributes[finding_attribute(FindingKind.TRACE_BREAK)] is True
    (event,) = annotation.events
    assert event.attributes[names.LLMLAT_FINDING_KIND] == FindingKind.TRACE_BREAK


@pytest.mark.parametrize("engine_row", ANSWERED.values(), ids=ANSWERED)
def test_en_17_an_engine_that_lost_its_caller_is_a_root_that_is_joined_by_its_request(
    engine_row: Json,
) -> None:
    seen = Breaks()
    _, root = (seen.told(each) for each in traces(ASKED, engine_row))
    assert [len(breaks([root])), root.trace.roots] == [1, (0,)]


def test_en_18_other_requests_break_nothing() -> None:
    seen = Breaks()
    other = llm_request(None, 10, 90, said={REQUEST_ID: "chatcmpl-8"})
    again = chat("again", None, 0, 100, attributes=ASKED["attributes"])
    joined = llm_request("c", 10, 90, said={REQUEST_ID: "chatcmpl-9"})
    rows = [ASKED, other, again, joined]
    assert breaks([seen.told(each) for each in traces(*rows)]) == []


def test_en_18_only_so_many_requests_are_remembered() -> None:
    seen = Breaks(most=2)
    asked = [
        chat("c", None, 0, 100, attributes={names.GEN_AI_RESPONSE_ID: f"r{number}"})
        for number in range(3)
    ]
    answers = [llm_request(None, 0, 90, said={REQUEST_ID: f"r{number}"}) for number in (2, 0)]
    told = [seen.told(each) for each in traces(*asked, *answers)]
    assert [len(breaks([each])) for each in told] == [0, 0, 0, 1, 0]


def test_every_order_of_a_request_s_spans_says_the_same() -> None:
    made: list[Span] = spans(*sglang(None, 0, 12, RETRACTED), *WAYS["after its first token"][0])
    said = {
        tuple((s.label, s.duration_ns) for s in process(each, EXACT).paths.roots[0].e2e.sections)
        for each in itertools.islice(itertools.permutations(made), 200)
    }
    assert len(said) == 1
