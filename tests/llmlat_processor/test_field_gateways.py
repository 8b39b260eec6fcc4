"""Reports from users of other tools about gateways and proxies, each with its whole kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    row,
    span_named,
)

MODEL = ("prefill", "decode", "upstream", "upstream_stream")
"""Labels of what a model, or whoever answers for it, has taken."""


def called(lines: Sequence[str], *labels: str) -> float:
    """How much of a path has one of these labels."""
    return sum(float(line.split()[2]) for line in lines if line.split()[1] in labels)


# ── GW-01: a hop that passes its caller's context on unchanged ───────────────────────────────────

#   c   AAAA  ├───────────────────────────────────┤ 100
#   g   BBBB     ├──────────────────────────┤            the proxy, a child of AAAA
#   e                  ├──────────────┤                  its engine: a child of AAAA too
CLIENT = (chat("c", None, 0, 100), phase(Phase.WAIT, "c", 0, 100))
PROXY = row("g", "c", 10, 80, kind="server", host="edge", boundary="gateway")
CALLS: Mapping[str, tuple[Sequence[Json], Sequence[str]]] = {
    "no call of its own": ([], ["e work 50", "g transit 20"]),
    "a call of ours": (
        [row("up", "g", 12, 75, host="edge", kind="client", boundary="gateway")],
        ["g unobserved 2", "e work 50", "up transit 13", "g unobserved 5"],
    ),
    "its transport's span": (
        [row("up", "g", 12, 75, host="edge", kind="client")],
        ["g unobserved 2", "e work 50", "up transit 13", "g unobserved 5"],
    ),
    "several": (
        [
            row("auth", "g", 12, 20, host="edge", kind="client"),
            row("up", "g", 20, 75, host="edge", kind="client"),
        ],
        ["g unobserved 2", "auth work 8", "e work 50", "up transit 5", "g unobserved 5"],
    ),
}


@pytest.mark.parametrize("ahead", [0, -7_000, 7_000])
@pytest.mark.parametrize(("calls", "path"), CALLS.values(), ids=CALLS)
def test_gw_01_an_engine_that_hangs_beside_its_gateway_is_put_below_it_and_that_is_said(
    calls: Sequence[Json], path: Sequence[str], ahead: float
) -> None:
    found = explained(*CLIENT, PROXY, *calls, engine("e", "c", ahead + 20, ahead + 70))
    assert findings(found) == ["hop_bypassed of e"]
    assert amounts(found) == [*path, "c transit 30"]


@pytest.mark.parametrize(("calls", "_"), CALLS.values(), ids=CALLS)
def test_gw_01_one_that_is_longer_than_the_gateway_waited_is_not(
    calls: Sequence[Json], _: object
) -> None:
    found = explained(*CLIENT, PROXY, *calls, engine("e", "c", 7_000, 7_090))
    assert "hop_bypassed of e" not in findings(found)


# ── GW-08: a proxy that holds a stream back ──────────────────────────────────────────────────────

#   c    wait ──────────────────────────── 10350 │ stream 11760        what its user saw
#        (a proxy that compresses)
#   u    upstream ─ 2690 │ upstream_stream ──────── 11670              what our gateway saw
#   e    prefill ─ 2600 │ decode ────────────────── 11600              what the model did


def caller(**keys: Any) -> list[Json]:
    return [
        chat("c", None, 0, 11_760, stream=True, first_useful_content=10_350, **keys),
        phase(Phase.WAIT, "c", 0, 10_350),
        phase(Phase.STREAM, "c", 10_350, 11_760),
    ]


def gateway(**keys: Any) -> list[Json]:
    return [
        row("g", "c", 0, 11_670, kind="server", host="edge", boundary="gateway", **keys),
        chat("u", "g", 0, 11_670, host="edge", stream=True),
        phase(Phase.UPSTREAM, "u", 0, 2_690),
        phase(Phase.UPSTREAM_STREAM, "u", 2_690, 11_670),
    ]


def model(parent: str) -> list[Json]:
    return [
        engine("e", parent, 900_000, 911_600),
        phase(Phase.PREFILL, "e", 900_000, 902_600),
        phase(Phase.DECODE, "e", 902_600, 911_600),
    ]


REPORT = {"reported": {"prefill": 2_600, "decode": 9_000}}
HELD_BACK: Mapping[str, tuple[Sequence[Json], Sequence[str]]] = {
    "the gateway": ([*caller(), *gateway()], ["u upstream 2690", "c transit 7660"]),
    "gateway and engine": (
        [*caller(), *gateway(), *model("u")],
        ["e prefill 2600", "u transit 90", "c held 7590", "c transit 70"],
    ),
    "the engine": (
        [*caller(), *model("c")],
        ["e prefill 2600", "c held 7590", "c transit 160"],
    ),
    "the engine's own word": (caller(**REPORT), ["c prefill 2600", "c transit 7750"]),
    "gateway, and the engine's word": (
        [*caller(**REPORT), *gateway()],
        ["u prefill 2600", "u transit 90", "c transit 7660"],
    ),
}


@pytest.mark.parametrize(("rows", "first"), HELD_BACK.values(), ids=HELD_BACK)
def test_gw_08_what_a_proxy_holds_back_is_between_the_two_and_none_of_the_models(
    rows: Sequence[Json], first: Sequence[str]
) -> None:
    found = explained(*rows)
    assert amounts(found, "ttft") == list(first)
    assert called(first, *MODEL) <= 2_690
    assert called(first, "held", "transit") >= 7_660
    is_measured = any(each["id"] == "e" for each in rows)
    assert findings(found) == ["stream_held of c 7590"] * is_measured
    whole = amounts(found)
    assert called(whole, "held", "transit") <= 160, "the total is the same"


def test_gw_08_where_our_own_gateway_holds_it_back_it_is_a_witness() -> None:
    said = {names.LLMLAT_RELAY_HOLD_SUM: 7.66, names.LLMLAT_RELAY_HOLD_MAX: 7.66}
    found = explained(*caller(), *gateway(attributes=said), *model("u"))
    (finding,) = found.explained.paths.findings
    assert span_named(found, "g").span_id in finding.witnesses


# ── GW-09: a proxy that releases a stream in bursts ──────────────────────────────────────────────


def in_bursts(**keys: Any) -> list[Json]:
    """Three bursts, 1.5 s apart: at 1400, 2900 and 4400."""
    return [
        chat("c", None, 0, 4_500, stream=True, first_useful_content=1_400, **keys),
        phase(Phase.WAIT, "c", 0, 1_400),
        phase(Phase.STREAM, "c", 1_400, 4_400),
        phase(Phase.FINALIZE, "c", 4_400, 4_500),
    ]


def decoding(for_ms: float) -> list[Json]:
    return [
        engine("e", "c", 900_000, 900_300 + for_ms),
        phase(Phase.PREFILL, "e", 900_000, 900_300),
        phase(Phase.DECODE, "e", 900_300, 900_300 + for_ms),
    ]


@pytest.mark.parametrize("for_ms", [400, 1_900, 3_900])
@pytest.mark.parametrize("is_measured", [True, False], ids=["measured", "reported"])
def test_gw_09_only_the_engine_s_own_account_is_decode_and_the_rest_is_delivery(
    is_measured: bool, for_ms: float
) -> None:
    reported = {"reported": {"prefill": 300, "decode": for_ms}}
    rows = [*in_bursts(), *decoding(for_ms)] if is_measured else in_bursts(**reported)
    lines = amounts(explained(*rows))
    assert called(lines, "decode") == for_ms
    assert called(lines, "transit", "held") == 4_400 - 300 - for_ms


def test_gw_09_bursts_that_nobody_accounts_for_are_a_stream_and_no_decode() -> None:
    found = explained(*in_bursts())
    assert amounts(found) == ["c wait 1400", "c stream 3000", "c finalize 100"]
