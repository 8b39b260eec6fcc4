"""Messages: which spans prove what of two clocks, and which prove nothing."""

from __future__ import annotations

from typing import Any

import pytest

from llmlat_processor.model import Event
from llmlat_processor.stages.align_clocks import align_clocks
from llmlat_processor.stages.assemble import assemble
from llmlat_semconv import attributes as names
from llmlat_semconv import events
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import Evidence
from tests.cases.case_format import EXACT, Json
from tests.cases.case_spans import id_bytes
from tests.llmlat_processor.stages.align_clocks.traces import aligned, call, offset, root, told
from tests.llmlat_processor.stages.spans import chat, engine, link, phase, row, spans

SERVER = {"kind": "server", "host": "B"}


def test_a_unary_call_bounds_from_both_sides() -> None:
    assert offset(aligned(root(), *call("c", 100, (150, 180), 200)), "A", "B") == (-20, 50)


@pytest.mark.parametrize(
    ("caller", "low"),
    [
        ({"kind": "client", "rpc": True}, -20),
        ({"kind": "client", "op": "chat"}, -20),
        ({"op": "execute_tool"}, -20),
        ({"kind": "client", "boundary": "gateway"}, -20),
        ({"kind": "client"}, None),
        ({}, None),
        ({"op": "invoke_agent"}, None),
        ({"kind": "client", "rpc": True, "cancelled": True}, None),
        ({"kind": "client", "rpc": True, "error": True}, None),
        ({"kind": "client", "op": "chat", "attempt": 1, "lost": True}, None),
    ],
    ids=str,
)
def test_an_answer_counts_from_who_waited_for_it(caller: Json, low: float | None) -> None:
    """A plain HTTP client ends at the headers; who gave up did not wait; an agent need not."""
    trace = aligned(
        root(), row("c", "R", 100, 200, host="A", **caller), row("s", "c", 150, 180, **SERVER)
    )
    assert offset(trace, "A", "B") == (low, 50)


def test_a_consumer_answers_nobody() -> None:
    trace = aligned(
        root(),
        row("p", "R", 100, 101, host="A", kind="producer", rpc=True),
        row("s", "p", 60, 61, host="B", kind="consumer"),
    )
    assert offset(trace, "A", "B") == (None, -40)
    assert not trace.findings


@pytest.mark.parametrize(
    ("second", "low"),
    [
        (row("x", "c", 120, 900, host="C"), -20),
        (row("x", "c", 120, 900, host="C", kind="server"), None),
        (row("x", "c", 120, 900, host="C", kind="consumer"), -20),
    ],
    ids=["no server", "perhaps the one that was waited for", "one-way"],
)
def test_of_two_servers_below_one_caller_nobody_knows_who_answered(
    second: Json, low: float | None
) -> None:
    caller = row("c", "R", 100, 200, host="A", kind="client", rpc=True)
    trace = aligned(root(), caller, row("s", "c", 150, 180, **SERVER), second)
    assert offset(trace, "A", "B") == (low, 50)
    assert offset(trace, "A", "C") == (None, 20)


#   c        ├ send ├── wait ──┤ stream ─────┤ fin ┤
#   e               ├ prefill ──┤ decode ──┤        ┤
def streamed(**keys: Any) -> list[Json]:
    return [
        chat("c", "R", 100, 200, host="A", stream=True, **keys),
        phase(Phase.SEND, "c", 110, 115),
        phase(Phase.WAIT, "c", 115, 150),
        phase(Phase.STREAM, "c", 150, 190),
        phase(Phase.FINALIZE, "c", 190, 195),
    ]


ENGINE = [
    engine("e", "c", 160, 300, host="B"),
    phase(Phase.PREFILL, "e", 165, 190),
    phase(Phase.DECODE, "e", 190, 220),
]


def test_a_request_leaves_with_the_first_byte_that_is_sent() -> None:
    assert offset(aligned(root(), *streamed(), *ENGINE), "A", "B") == (30, 50)


def test_the_first_output_comes_before_the_first_content() -> None:
    trace = aligned(root(), *streamed(first_useful_content=155), *ENGINE)
    assert offset(trace, "A", "B") == (35, 50)


def test_the_end_of_the_wait_proves_nothing() -> None:
    """A role chunk can come before the first token: by it the offset would be 40 at least."""
    trace = aligned(root(), *streamed(first_useful_content=188), *ENGINE)
    assert offset(trace, "A", "B") == (30, 50)


def test_what_a_local_descendant_knows_is_the_callees() -> None:
    within = [{**each, "parent": each["parent"].replace("e", "w")} for each in ENGINE[1:]]
    trace = aligned(
        root(),
        *streamed(first_useful_content=155),
        row("e", "c", 160, 300, **SERVER),
        engine("w", "e", 162, 290, host="B", kind="internal"),
        *within,
    )
    assert offset(trace, "A", "B") == (35, 50)
    assert [m.left for m in trace.clocks.messages][1:] == [b"w", b"w"]


def test_of_several_descendants_nobody_knows_which_answered() -> None:
    trace = aligned(
        root(),
        *streamed(first_useful_content=155),
        row("e", "c", 160, 235, **SERVER),
        engine("w", "e", 162, 200, host="B", kind="internal"),
        phase(Phase.PREFILL, "w", 165, 190),
        engine("v", "e", 200, 230, host="B", kind="internal"),
        phase(Phase.PREFILL, "v", 205, 228),
    )
    assert offset(trace, "A", "B") == (235 - 195, 50)


def test_an_http_span_that_ends_at_the_headers_cuts_nothing_short() -> None:
    """Its start is the tighter bound of the two; its end is none."""
    inner = row("h", "c", 112, 150, kind="client", host="A")
    below = [{**ENGINE[0], "parent": "h"}, *ENGINE[1:]]
    trace = aligned(root(), *streamed(), inner, *below)
    assert offset(trace, "A", "B") == (30, 48)
    assert [(m.left, m.arrived) for m in trace.clocks.messages] == [(b"h", b"e"), (b"e", b"c")]


def test_what_hangs_under_a_call_with_attempts_answered_the_first_of_them() -> None:
    """It gave up at 150, so what its callee did after that proves nothing."""
    first = {"kind": "client", "op": "chat", "boundary": "client", "attempt": 1, "host": "A"}
    trace = aligned(
        root(),
        chat("c", "R", 100, 400, host="A"),
        row("a", "c", 120, 150, cancelled=True, **first),
        row("b", "c", 200, 390, **{**first, "attempt": 2}),
        row("s", "c", 160, 300, **SERVER),
    )
    assert offset(trace, "A", "B") == (None, 40)


def gateway(evidence: str) -> list[Json]:
    said = {names.LLMLAT_PHASE_EVIDENCE: evidence}
    return [
        row("g", "c", 160, 240, host="B", kind="server", boundary="gateway"),
        phase(Phase.RELAY, "g", 225, 230, attributes=said),
        row("u", "g", 165, 226, host="B", kind="client", op="chat", boundary="gateway"),
        phase(Phase.UPSTREAM, "u", 166, 180),
        phase(Phase.UPSTREAM_STREAM, "u", 180, 225),
    ]


@pytest.mark.parametrize(
    ("evidence", "low"),
    [(Evidence.MEASURED.value, 230 - 195), (Evidence.BOUNDED.value, 180 - 155)],
)
def test_a_gateway_that_learned_late_of_its_last_byte_is_bound_by_its_first_event(
    evidence: str, low: float
) -> None:
    trace = aligned(root(), *streamed(first_useful_content=155), *gateway(evidence))
    assert offset(trace, "A", "B") == (low, 50)


def test_only_a_relay_that_was_learned_of_late_contradicts_nothing() -> None:
    late = [
        {**each, "end": 250} if each["id"] == "g.relay" else each for each in gateway("measured")
    ]
    late[0] = {**late[0], "end": 260}
    trace = aligned(root(), *streamed(), *late)
    assert told(trace) == []
    assert offset(trace, "A", "B") == (None, 50)


def test_what_goes_on_after_the_inference_was_sent_for_something_else() -> None:
    """A log of it, say: that it lasts longer than the call contradicts nothing."""
    trace = aligned(
        root(),
        chat("c", "R", 100, 200, host="A"),
        row("h", "c", 190, 400, kind="client", host="A"),
        row("s", "h", 195, 390, **SERVER),
    )
    assert offset(trace, "A", "B") == (None, 5)
    assert told(trace) == []


@pytest.mark.parametrize("system", ["aws-api", "dotnet_wcf", "", 7])
def test_a_call_that_may_only_put_something_in_a_queue_waits_for_nothing(system: Any) -> None:
    said = {names.RPC_SYSTEM: system}
    trace = aligned(
        root(),
        row("c", "R", 100, 130, host="A", kind="client", attributes=said),
        row("s", "c", 150, 2_180, **SERVER),
    )
    assert offset(trace, "A", "B") == (None, 50)
    assert told(trace) == []


@pytest.mark.parametrize("library", ["asgi", "fastapi", "starlette"])
def test_a_span_that_lasts_until_background_tasks_are_done_ends_with_no_byte(library: str) -> None:
    scope = f"opentelemetry.instrumentation.{library}"
    server = row("s", "c", 150, 1_180, scope=scope, **SERVER)
    trace = aligned(root(), chat("c", "R", 100, 200, host="A"), server)
    assert offset(trace, "A", "B") == (None, 50)
    assert told(trace) == []


def test_a_job_that_a_tool_starts_elsewhere_is_not_waited_for() -> None:
    tool = row("t", "R", 100, 200, host="A", op="execute_tool")
    trace = aligned(root(), tool, row("j", "t", 150, 1_180, host="B"))
    assert offset(trace, "A", "B") == (None, 50)


# ── Links and joins ──────────────────────────────────────────────────────────────────────────────


def two_hosts(**second: Any) -> list[Json]:
    return [root(), row("a", "R", 10, 60, host="B"), row("b", "R", 500, 700, host="C", **second)]


def test_what_followed_began_after_the_other_had_ended() -> None:
    trace = aligned(*two_hosts(), links=[link("b", "a", "follows")])
    assert offset(trace, "B", "C") == (None, 440)


def test_what_joined_ended_after_the_other_had_ended() -> None:
    trace = aligned(*two_hosts(), links=[link("b", "a", "joined")])
    assert offset(trace, "B", "C") == (None, 640)


@pytest.mark.parametrize(
    "relationship", ["retry_of", "hedge_of", "kv_source", "section_of", "anything"]
)
def test_no_other_link_says_who_had_ended(relationship: str) -> None:
    trace = aligned(*two_hosts(), links=[link("b", "a", relationship)])
    assert len(trace.clocks.messages) == 2


def test_who_was_given_up_proves_nothing_by_a_link() -> None:
    rows = [root(), row("a", "R", 10, 60, host="B", cancelled=True), row("b", "R", 5, 7, host="C")]
    assert len(aligned(*rows, links=[link("b", "a")]).clocks.messages) == 2


def test_a_child_that_its_parent_says_it_joined_ended_before_it() -> None:
    rows = [root(op="invoke_agent"), row("a", "R", 10, 60, host="B"), row("l", "R", 1, 2, host="A")]
    assert offset(aligned(*rows), "A", "B") == (None, 10)
    made = spans(*rows)
    ids = {names.LLMLAT_JOIN_SPAN_IDS: [id_bytes("a").hex(), "no id"]}
    made[0].events = [Event(events.LLMLAT_JOIN, made[0].end_ns, ids)]
    assert offset(align_clocks(assemble(made, EXACT)), "A", "B") == (60 - 10_000, 10)
