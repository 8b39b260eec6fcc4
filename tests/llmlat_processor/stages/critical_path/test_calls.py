"""Calls: which spans are only a transport, which are attempts, and who answers whom."""

from __future__ import annotations

import pytest

from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from tests.cases.case_format import Json
from tests.llmlat_processor.stages.spans import (
    amounts,
    chat,
    engine,
    explained,
    findings,
    phase,
    placed,
    row,
)


def plain(name: str, parent: str | None, start: float, end: float, **keys: object) -> Json:
    """An HTTP client span of somebody else's instrumentation."""
    return row(name, parent, start, end, kind="client", **keys)


def far(name: str, parent: str, length: float, **keys: object) -> Json:
    """A server span elsewhere that says nothing but its times."""
    return row(name, parent, 7_000, 7_000 + length, kind="server", host="B", **keys)


# ── What is a call ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "caller",
    [
        {"kind": "client"},
        {"op": "chat"},
        {"op": "text_completion"},
        {"op": "generate_content"},
        {"phases": {"wait": 100}},
        {"phases": {"upstream": 100}},
        {"attempt": 1},
        {},
    ],
    ids=[
        "a CLIENT span",
        "chat",
        "text_completion",
        "generate_content",
        "with a client's envelope",
        "with a gateway's envelope",
        "an attempt",
        "whoever has one remote child and no other",
    ],
)
def test_the_callee_of_a_call_stands_for_its_waiting(caller: dict[str, object]) -> None:
    found = explained(row("c", None, 0, 100, **caller), far("s", "c", 70))
    assert amounts(found) == ["s work 70", "c transit 30"]


@pytest.mark.parametrize(
    ("caller", "others"),
    [
        ({"op": "invoke_agent"}, []),
        ({}, [row("local", "c", 10, 20)]),
        ({}, [far("t", "c", 60)]),
    ],
    ids=["an agent", "beside a local child", "two remote children"],
)
def test_other_operations_do_not_call_their_remote_children(
    caller: dict[str, object], others: list[Json]
) -> None:
    found = explained(row("c", None, 0, 100, **caller), far("s", "c", 70), *others)
    assert not {line.split()[0] for line in placed(found)} & {"s", "t"}


def test_a_consumer_is_never_a_callee() -> None:
    found = explained(plain("c", None, 0, 100), row("s", "c", 10, 60, kind="consumer", host="B"))
    assert amounts(found) == ["c unobserved 100"]
    assert findings(found) == []


def test_a_callee_in_the_callers_own_process_is_one_by_its_kind() -> None:
    found = explained(plain("c", None, 0, 100), row("s", "c", 20, 80, kind="server"))
    assert amounts(found) == ["s work 60", "c transit 40"]


def test_a_flag_says_that_the_parent_was_remote() -> None:
    found = explained(row("c", None, 0, 100), row("s", "c", 20, 80, flags=0x300))
    assert amounts(found) == ["s work 60", "c transit 40"]


# ── Transports ───────────────────────────────────────────────────────────────────────────────────


#   chat     ├──────────────────────────┤            chat    ├────────────────────────┤
#   HTTP        ├────┤                         =>    engine    (the chat's callee)
#   engine         ├──────────────────┤
def test_the_single_plain_client_span_inside_an_inference_is_its_transport() -> None:
    found = explained(chat("c", None, 0, 100), plain("http", "c", 5, 30), far("s", "http", 80))
    assert amounts(found) == ["s work 80", "c transit 20"]
    assert findings(found) == []


def test_without_a_callee_a_transport_is_time_of_the_inference_all_the_same() -> None:
    found = explained(chat("c", None, 0, 100), plain("http", "c", 5, 30))
    assert amounts(found) == ["c work 100"]


@pytest.mark.parametrize(
    "inner",
    [
        {"phases": {"connect": 5}},
        {"op": "embeddings"},
        {"boundary": "client"},
        {"kind": "internal"},
        {"host": "B"},
    ],
    ids=["with phases", "a GenAI operation", "of ours", "not a client", "elsewhere"],
)
def test_what_says_something_of_itself_is_no_transport(inner: dict[str, object]) -> None:
    child = row("inner", "c", 5, 30, **{"kind": "client", **inner})
    found = explained(chat("c", None, 0, 100), child)
    assert {line.split()[0] for line in amounts(found)} == {"inner", "c"}


def test_a_client_span_outside_of_an_inference_is_a_call_of_its_own() -> None:
    found = explained(row("R", None, 0, 100), plain("http", "R", 5, 30))
    assert placed(found) == ["R unobserved 0..5", "http work 5..30", "R unobserved 30..100"]


#   chat     ├──────────────────────────────┤
#   http1       ├──── 503 ─┤
#   http2                      ├────────┤              several transports are attempts
def test_several_transports_are_attempts() -> None:
    found = explained(
        chat("c", None, 0, 100),
        plain("http1", "c", 5, 30, error=True),
        far("refused", "http1", 10),
        plain("http2", "c", 40, 95),
        far("served", "http2", 50),
    )
    assert amounts(found) == [
        "c unobserved 5",
        "refused work 10",
        "http1 transit 15",
        "c unobserved 10",
        "served work 50",
        "http2 transit 5",
        "c unobserved 5",
    ]
    assert found.retry_waste(None) == "25"


def test_a_transport_inside_an_attempt_is_that_attempts() -> None:
    attempts = [
        plain("a1", "c", 0, 40, attempt=1, error=True),
        plain("a2", "c", 50, 100, attempt=2),
    ]
    found = explained(
        chat("c", None, 0, 100), *attempts, plain("http", "a2", 55, 60), far("s", "http", 45)
    )
    assert amounts(found) == ["a1 work 40", "c unobserved 10", "s work 45", "a2 transit 5"]


# ── Attempts ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("numbers", [(1, 2), (2, 1), (3, 7)])
def test_what_answered_the_operation_itself_belongs_to_its_first_attempt(
    numbers: tuple[int, int],
) -> None:
    """The first attempt has sent the operation's own id upstream."""
    spells = {min(numbers): (0, 40), max(numbers): (50, 100)}
    attempts = [plain(f"a{n}", "c", *spells[n], attempt=n) for n in numbers]
    found = explained(chat("c", None, 0, 100), *attempts, far("s", "c", 30))
    first, second = f"a{min(numbers)}", f"a{max(numbers)}"
    assert amounts(found) == [
        "s work 30",
        f"{first} transit 10",
        "c unobserved 10",
        f"{second} work 50",
    ]


def test_attempts_of_what_is_no_inference_take_its_callees_as_well() -> None:
    found = explained(row("c", None, 0, 100), plain("a1", "c", 0, 40, attempt=1), far("s", "c", 30))
    assert amounts(found) == ["s work 30", "a1 transit 10", "c unobserved 60"]


# ── One callee per call ──────────────────────────────────────────────────────────────────────────

WAITING = (chat("c", None, 0, 100), phase(Phase.WAIT, "c", 0, 100))


def test_a_span_of_ours_is_better_evidence_than_a_native_one() -> None:
    found = explained(*WAITING, far("native", "c", 90), engine("ours", "c", 0, 60))
    assert amounts(found) == ["ours work 60", "c transit 40"]


def test_a_native_span_is_better_evidence_than_a_report() -> None:
    reporting = chat("c", None, 0, 100, reported={"queue": 20, "prefill": 30})
    found = explained(reporting, WAITING[1], far("native", "c", 90))
    assert amounts(found) == ["native work 90", "c transit 10"]


@pytest.mark.parametrize(
    ("second_ms", "said"),
    [(64, []), (65, []), (65.1, ["evidence_disagrees of one 5.1"])],
    ids=["4 ms", "5 ms", "beyond 5 ms"],
)
def test_two_accounts_of_one_callee_are_compared_and_never_added(
    second_ms: float, said: list[str]
) -> None:
    found = explained(
        *WAITING,
        engine("one", "c", 0, 70, phases={"prefill": 60}),
        engine("two", "c", 0, 68, phases={"prefill": second_ms}),
    )
    assert amounts(found) == ["one prefill 60", "one unobserved 10", "c transit 30"]
    assert findings(found) == said


def test_two_accounts_of_a_long_phase_may_differ_by_a_twentieth() -> None:
    def compared(first: float, second: float) -> list[str]:
        return findings(
            explained(
                row("c", None, 0, 1_000, kind="client"),
                engine("one", "c", 0, 900, phases={"decode": first}),
                engine("two", "c", 0, 899, phases={"decode": second}),
            )
        )

    assert compared(800, 760) == []
    assert compared(800, 759) == ["evidence_disagrees of one 41"]


def test_a_report_beside_a_measured_engine_is_compared_after_bounds_are_cut() -> None:
    def compared(queue: float, prefill: float) -> list[str]:
        reporting = chat(
            "c", None, 0, 100, reported={"queue": queue, "prefill": prefill}, bounded=["queue"]
        )
        measured = engine("e", "c", 0, 70, phases={"queue": 20, "prefill": 40, "decode": 10})
        return findings(explained(reporting, WAITING[1], measured))

    assert compared(queue=90, prefill=42) == []
    assert compared(queue=10, prefill=42) == ["evidence_disagrees of c 10"]
    assert compared(queue=90, prefill=48) == ["evidence_disagrees of c 8"]


def test_a_report_is_never_added_to_what_was_measured() -> None:
    reporting = chat("c", None, 0, 100, reported={"queue": 20, "prefill": 40})
    found = explained(reporting, WAITING[1], engine("e", "c", 0, 60, phases={"prefill": 60}))
    assert amounts(found) == ["e prefill 60", "c transit 40"]


#   c        ├───────────────────────────────────┤
#   g           ├──────────────────────────┤            gateway
#   up             ├───────────────────┤                its call
#   e                (hangs under c: g passed its caller's context on unchanged)
GATEWAY = (
    *WAITING,
    engine("g", "c", 0, 80, host="edge", boundary="gateway"),
    row("up", "g", 10, 70, host="edge", kind="client", boundary="gateway"),
)


def test_a_span_that_hangs_too_high_becomes_the_callees_callee() -> None:
    found = explained(*GATEWAY, engine("e", "c", 0, 50))
    assert amounts(found) == [
        "g unobserved 10",
        "e work 50",
        "up transit 10",
        "g unobserved 10",
        "c transit 20",
    ]
    assert findings(found) == ["hop_bypassed of e"]


def test_one_that_does_not_fit_the_callees_envelope_is_off_the_path() -> None:
    found = explained(*GATEWAY, engine("e", "c", 0, 70))
    assert amounts(found) == ["g unobserved 10", "up work 60", "g unobserved 10", "c transit 20"]
    assert findings(found) == []


def test_of_two_that_last_equally_long_the_gateway_is_the_callee() -> None:
    for ids in (("g", "e"), ("e", "g")):
        made = {
            "g": engine("g", "c", 0, 80, host="edge", boundary="gateway"),
            "e": engine("e", "c", 5, 85),
        }
        found = explained(*WAITING, *(made[i] for i in ids))
        assert amounts(found) == ["e work 80", "c transit 20"]
        assert findings(found) == ["hop_bypassed of e"], "and the other one is its callee"


@pytest.mark.parametrize("ahead", [-1_000, 0, 1_000])
def test_of_two_that_last_equally_long_without_a_gateway_the_earlier_id_is(ahead: float) -> None:
    """Whichever clock is ahead: their raw stamps cannot be compared."""
    found = explained(
        *WAITING,
        engine("a", "c", 0, 80),
        engine("b", "c", ahead, ahead + 80, host="B", boundary="agent"),
    )
    assert amounts(found) == ["a work 80", "c transit 20"]


def test_which_of_two_that_hang_too_high_goes_below_depends_on_no_clock() -> None:
    def below(ahead: float) -> list[str]:
        other = engine("a", "c", ahead, ahead + 40, host="A", boundary="agent")
        return amounts(explained(*GATEWAY, engine("e", "c", 0, 50), other))

    assert below(-1_000) == below(0) == below(1_000)


def test_hearing_of_a_callee_takes_back_what_its_report_had_spoilt() -> None:
    """The gateway's report did not fit, but the engine that turns up below it does."""
    spoilt = {"phases": {"upstream": 60}, "reported": {"decode": 75}}
    found = explained(
        *GATEWAY[:3],
        row("up", "g", 10, 70, host="edge", kind="client", boundary="gateway", **spoilt),
        engine("e", "c", 0, 50, phases={"prefill": 20, "decode": 30}),
    )
    assert "e decode 30" in amounts(found)
    assert [line for line in findings(found) if "transit" in line or "outlived" in line] == []


def test_a_name_of_the_contract_is_what_makes_a_span_ours() -> None:
    said = {names.LLMLAT_CONTRACT_VERSION: "0.1.0"}
    found = explained(*WAITING, far("native", "c", 90), far("ours", "c", 60, attributes=said))
    assert amounts(found)[0] == "ours work 60"
