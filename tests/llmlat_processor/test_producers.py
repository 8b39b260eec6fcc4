"""Spans of known producers: operations, what only tells about one, and what is neither."""

from __future__ import annotations

import pytest

from llmlat_processor.model import Event, Span
from llmlat_processor.native_account import NativeAccount
from llmlat_processor.producers import READINGS, Reading, natives, reading_of
from llmlat_semconv.aliases import TENSORRT_LLM, VLLM, Alias, Pattern, Producer, Scope, Surface
from llmlat_semconv.phases import Phase, duration_attribute
from llmlat_semconv.values import Evidence, FindingKind, SectionLabel
from tests.cases.case_format import Json
from tests.cases.case_spans import id_bytes
from tests.llmlat_processor.native import (
    DECODE,
    FIRST_OUTPUT,
    PREFILL,
    QUEUE,
    REQUEST,
    llm_request,
    sglang,
    stage,
)
from tests.llmlat_processor.stages.spans import (
    MS,
    amounts,
    engine,
    explained,
    findings,
    phase,
    placed,
    row,
    spans,
)

STAGES = [stage("prefill_waiting", 0, 20), stage("prefill_forward", 20, 60)]
SAID = {QUEUE: 20, PREFILL: 40, DECODE: 30}


def paths_of(*rows: Json) -> list[str]:
    """The path, without what is nobody's."""
    return [line for line in amounts(explained(*rows)) if "unobserved" not in line]


# ── Whose a name is ──────────────────────────────────────────────────────────────────────────────


def test_one_key_means_what_its_producer_means() -> None:
    vllm = llm_request(None, 0, 100, said=SAID)
    assert "llm_request prefill 40" in paths_of(vllm)
    request, thread = sglang(None, 0, 100)
    said = {**request["attributes"], PREFILL: 0.08}
    found = explained({**request, "attributes": said}, thread, *STAGES)
    assert amounts(found)[:2] == [f"{REQUEST} queue 20", f"{REQUEST} prefill 40"]
    assert findings(found) == []


@pytest.mark.parametrize("scope", ["", "opentelemetry.instrumentation.fastapi", "vllm"])
def test_the_same_span_of_somebody_else_is_left_alone_and_counted(scope: str) -> None:
    found = explained(llm_request(None, 0, 100, said=SAID, scope=scope))
    assert amounts(found) == ["llm_request work 100"]
    assert found.explained.paths.unread == {scope: 1}
    assert findings(found) == []


def test_a_scope_that_others_may_have_needs_its_resource() -> None:
    scope, resource = VLLM.scopes[1]
    (span,) = spans(llm_request(None, 0, 100, said=SAID, scope=scope))
    assert reading_of(span) is None
    (reading,) = READINGS[scope]
    span.resource.attributes = {resource: "it"}
    assert reading_of(span) is reading


def test_a_span_of_a_known_scope_that_is_no_operation_of_it_means_nothing() -> None:
    found = explained({**llm_request(None, 0, 100, said=SAID), "name": "Load model"})
    assert amounts(found) == ["llm_request work 100"]
    assert found.explained.paths.unread == {VLLM.scopes[0].name: 1}


# ── What tells about an operation ────────────────────────────────────────────────────────────────


def test_threads_and_stages_are_no_operations() -> None:
    found = explained(*sglang(None, 0, 100), *STAGES, stage("decode_loop", 60, 70))
    assert [span.name for span in found.explained.trace.operations] == [REQUEST]


def test_what_hangs_under_a_stage_hangs_under_its_operation() -> None:
    below = row("tool", "prefill_forward", 30, 50, host="gpu")
    assert placed(explained(*sglang(None, 0, 100), *STAGES, below)) == [
        f"{REQUEST} queue 0..20",
        f"{REQUEST} prefill 20..30",
        "tool work 30..50",
        f"{REQUEST} prefill 50..60",
        f"{REQUEST} unobserved 60..100",
    ]


def test_stages_of_nobody_known_stay_operations() -> None:
    found = explained(row("a", None, 0, 100, host="gpu"), stage("prefill_waiting", 0, 20, "a"))
    assert amounts(found) == ["prefill_waiting work 20", "a unobserved 80"]


def test_stages_whose_request_is_missing_stay_operations() -> None:
    thread, waiting = sglang(REQUEST, 0, 100)[1], STAGES[0]
    found = explained(thread, waiting)
    assert [span.name for span in found.explained.trace.operations][-1] != REQUEST
    assert "missing_parent of Scheduler" in findings(found)


def test_parts_that_hang_in_a_circle_tell_nothing() -> None:
    found = explained(
        *sglang(None, 0, 100),
        stage("prefill_waiting", 0, 20, "prefill_forward"),
        stage("prefill_forward", 20, 60, "prefill_waiting"),
    )
    assert sum(each.duration_ns for each in found.sections("e2e", None)) == 100 * MS
    assert "dependency_cycle of prefill_forward" in findings(found)


def test_what_we_measured_stands_and_what_the_producer_says_is_compared() -> None:
    rows = [
        llm_request(None, 0, 100, said={**SAID, QUEUE: 50, FIRST_OUTPUT: 70}),
        phase(Phase.QUEUE, "llm_request", 10, 30),
        phase(Phase.PREFILL, "llm_request", 30, 70),
    ]
    found = explained(*rows)
    assert amounts(found) == [
        "llm_request unobserved 10",
        "llm_request queue 20",
        "llm_request prefill 40",
        "llm_request unobserved 30",
    ]
    assert findings(found) == ["evidence_disagrees of llm_request 30"]
    evidence = {each.evidence for each in found.sections("e2e", None)}
    assert evidence == {Evidence.MEASURED, Evidence.DERIVED}


def test_so_it_is_where_we_wrote_attributes_only() -> None:
    said = {**SAID, duration_attribute(Phase.QUEUE): 20}
    assert paths_of(llm_request(None, 0, 100, said=said)) == ["llm_request queue 20"]


def test_a_native_span_beside_ours_is_a_second_account() -> None:
    call = row("c", None, 0, 100, kind="client", op="chat", boundary="client")
    ours = [engine("e", "c", 10, 90, phases={"queue": 20, "prefill": 30, "decode": 30})]
    native = llm_request("c", 9, 91, said={QUEUE: 20, PREFILL: 30, DECODE: 20})
    found = explained(call, *ours, native)
    assert amounts(found) == ["e queue 20", "e prefill 30", "e decode 30", "c transit 20"]
    assert findings(found) == ["evidence_disagrees of e 10"]


def test_two_servers_of_one_product_are_no_two_accounts_of_one_callee() -> None:
    call = row("c", None, 0, 100, kind="client", op="chat", boundary="client")
    long = llm_request("c", 5, 95, said={QUEUE: 40, PREFILL: 20, DECODE: 30})
    short = {**llm_request("c", 5, 40, said={QUEUE: 5, PREFILL: 30}), "id": "other", "host": "gpu2"}
    found = explained(call, long, {**short, "name": "llm_request"})
    assert findings(found) == []
    assert "other" not in " ".join(amounts(found))


# ── Where it was ─────────────────────────────────────────────────────────────────────────────────


def test_the_first_output_says_where_durations_lie() -> None:
    assert placed(explained(llm_request(None, 0, 100, said={**SAID, FIRST_OUTPUT: 65}))) == [
        "llm_request unobserved 0..5",
        "llm_request queue 5..25",
        "llm_request prefill 25..65",
        "llm_request decode 65..95",
        "llm_request unobserved 95..100",
    ]


def test_it_was_before_it_was_seen_where_else_decode_would_not_fit() -> None:
    assert placed(explained(llm_request(None, 0, 100, said={**SAID, FIRST_OUTPUT: 72}))) == [
        "llm_request unobserved 0..10",
        "llm_request queue 10..30",
        "llm_request prefill 30..70",
        "llm_request decode 70..100",
    ]


@pytest.mark.parametrize("first", [59, -1, 0, 10_000, "65"])
def test_a_first_output_that_cannot_be_says_nothing(first: float) -> None:
    found = placed(explained(llm_request(None, 0, 100, said={**SAID, FIRST_OUTPUT: first})))
    assert found[:2] == ["llm_request queue 0..20", "llm_request prefill 20..60"]


# ── Events ───────────────────────────────────────────────────────────────────────────────────────

AN_OPERATION = Pattern(name="a")
EDGES = (
    Alias(Surface.SPAN_EVENT, "begin", Phase.KV_TRANSFER, 0, "asked for", "", edge="start"),
    Alias(Surface.SPAN_EVENT, "over", Phase.KV_TRANSFER, 0, "", "present", edge="end"),
    Alias(Surface.SPAN_EVENT, "seen", None, 0, "seen", "seen", reason="an instant"),
)
MADE = Producer("made", "Made", "1", (Scope("made"),), (), (AN_OPERATION,), (), EDGES)


@pytest.mark.parametrize(
    ("events", "stretches"),
    [
        ([("begin", 10), ("over", 30)], [(10, 30)]),
        ([("over", 30), ("begin", 10), ("over", 5)], [(10, 30)]),
        ([("begin", 10), ("over", 30), ("begin", 40), ("over", 50)], [(10, 30), (40, 50)]),
        ([("begin", 10)], []),
        ([("over", 30)], []),
        ([("begin", 40), ("over", 30)], []),
        ([("seen", 10), ("over", 30)], []),
    ],
)
def test_events_are_the_edges_of_a_phase(
    events: list[tuple[str, int]],
    stretches: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(READINGS, "made", [Reading(MADE, "")])
    told = _native([Event(name, at) for name, at in events])
    assert [(span.start_ns, span.end_ns) for span in told] == stretches


def _native(events: list[Event]) -> list[Span]:
    operation, part = spans(row("a", None, 0, 100, scope="made"), row("b", "a", 0, 9, scope="made"))
    operation.events = events
    return [span for each in natives([operation, part]).told for span in each.phases]


def test_a_producer_needs_no_parts_for_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(READINGS, "made", [Reading(MADE, "")])
    told = _native([Event("begin", 10), Event("over", 30)])
    assert [span.parent_id for span in told] == [id_bytes("a")]


TOLD = (SectionLabel.QUEUE, SectionLabel.PREFILL, SectionLabel.DECODE)


@pytest.mark.parametrize("missing", [{0, 1, 2}, {0}, {1}, {2}], ids=repr)
def test_what_a_producer_has_not_is_no_operand(missing: set[int]) -> None:
    """TensorRT-LLM writes -1 s: the difference of two of them is no phase of no length."""
    keys = dict.fromkeys(
        name
        for alias in TENSORRT_LLM.on(Surface.SPAN_ATTRIBUTE)
        if alias.phase in (Phase.QUEUE, Phase.PREFILL, Phase.DECODE)
        for name in (alias.key, alias.minus)
        if name
    )
    said = {
        name: -1.0 if place in missing else 0.02 * (place + 1) for place, name in enumerate(keys)
    }
    (operation,), (scope,) = TENSORRT_LLM.operations, TENSORRT_LLM.scopes
    said[operation.has] = 0.0
    (span,) = spans(row(operation.name, None, 0, 100, scope=scope.name, attributes=said))
    reading = reading_of(span)
    assert reading is not None
    account = NativeAccount(span, reading)
    lengths_ns = [size_ns for label, (size_ns, _) in account.durations.items() if label in TOLD]
    assert all(size_ns == 20 * MS for size_ns in lengths_ns)
    assert len(lengths_ns) + len(account.doubts) == len(keys)
    assert {each.kind for each in account.doubts} == {FindingKind.NEGATIVE_DURATION}
