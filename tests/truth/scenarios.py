"""The scenarios: what is wrong with the clocks, what is delayed, and what has to be found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from llmlat_semconv.values import FindingKind

HOSTS: Final = ("app", "gateway", "engine", "tools")

SHIFTED: Final = FindingKind.APPARENT_NEGATIVE_NETWORK
STEPPED: Final = FindingKind.CLOCK_STEP
IMPOSSIBLE: Final = FindingKind.NEGATIVE_TRANSIT


@dataclass(frozen=True, slots=True)
class Clock:
    """How a host's clocks differ from the machine's.

    Attributes:
        monotonic_s: whole seconds that its monotonic clock is ahead (a time namespace).
        wall: how its wall clock differs, as libfaketime reads it; `-0.05` is 50 ms behind.
    """

    monotonic_s: int = 0
    wall: str = "+0"


@dataclass(frozen=True, slots=True)
class Wire:
    """How long bytes are held on their way, in ms."""

    request_ms: float = 0
    answer_ms: float = 0


@dataclass(frozen=True, slots=True)
class Engine:
    """How long the parts of an answer take, in ms.

    Attributes:
        tokens: of the answer; each but the first takes `token_ms`.
        plain: True where its spans are of OpenTelemetry's own SDK: wall stamps alone.
        late_ms: by how much such an engine says that it decoded longer than it did.
    """

    queue_ms: float = 150
    prefill_ms: float = 200
    tokens: int = 12
    token_ms: float = 20
    plain: bool = False
    late_ms: float = 0


def hop(client: str, server: str) -> str:
    """What a hop is called."""
    return f"{client} to {server}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What the app does.

    Attributes:
        runs: how many traces it makes.
        rounds: of tools side by side, in each trace.
        tools_ms: how long each tool takes.
        pause_ms: between two traces.
        start_file: the app begins when it is there.
        step_file: what the stepped host's libfaketime reads; empty where none steps.
        step_to: what is written there between two rounds of the last trace.
    """

    runs: int = 7
    rounds: int = 1
    tools_ms: Mapping[str, float] = field(default_factory=lambda: {"search": 250, "stock": 120})
    pause_ms: float = 0
    start_file: str = ""
    step_file: str = ""
    step_to: str = ""


NO_WIRE: Final = Wire()
WIRES: Final[Mapping[str, Wire]] = {
    "gateway": Wire(20, 35),
    "engine": Wire(10, 25),
    "tools": Wire(15, 30),
}
"""By whom they lead to."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One setting of the four hosts.

    Attributes:
        name: one word.
        says: what is special about it, for the report.
        clocks: by host; the machine's own where a host is not named.
        wires: by the host that they lead to.
        stepped: the host whose wall clock is set in the last trace; empty for none.
        plain_tools: True where the tools' spans are of OpenTelemetry's own SDK.
        finds: what has to be found in each trace.
        finds_at_last: what has to be found in the last trace besides.
        may_find: what each trace may have: raw stamps of clocks that are apart may or may not
            contradict each other.
        direct: True where the app asks the engine itself, past the gateway.
        drift_ppm: by how much the engine's wall clock, and that is all its spans have, gains on the
            app's monotonic one; 0 where nothing is claimed.
    """

    name: str
    says: str
    clocks: Mapping[str, Clock] = field(default_factory=dict)
    wires: Mapping[str, Wire] = field(default_factory=lambda: WIRES)
    engine: Engine = Engine()
    plan: Plan = field(default_factory=Plan)
    stepped: str = ""
    plain_tools: bool = False
    finds: frozenset[FindingKind] = frozenset()
    finds_at_last: frozenset[FindingKind] = frozenset()
    may_find: frozenset[FindingKind] = frozenset()
    direct: bool = False
    drift_ppm: int = 0

    @property
    def hosts(self) -> tuple[str, ...]:
        """Those that take part."""
        return tuple(host for host in HOSTS if not (self.direct and host == "gateway"))

    @property
    def model_hops(self) -> tuple[tuple[str, str], ...]:
        """The hops to the model, as (client, server), from the app on."""
        if self.direct:
            return (("app", "engine"),)
        return (("app", "gateway"), ("gateway", "engine"))

    def clock(self, host: str) -> Clock:
        """How this host's clocks differ."""
        return self.clocks.get(host, Clock())

    def is_plain(self, host: str) -> bool:
        """Whether its spans have wall stamps alone."""
        return self.plain_tools if host == "tools" else host == "engine" and self.engine.plain


_ONE_WAY: Final = {"gateway": Wire(0, 50), "engine": Wire(40, 0), "tools": Wire(0, 60)}
_QUICK: Final = {"gateway": NO_WIRE, "engine": NO_WIRE, "tools": NO_WIRE}

SCENARIOS: Final = (
    Scenario("even", "every host has a monotonic clock of its own, all of them and the wall agree"),
    Scenario(
        "seconds",
        "wall clocks 5 s apart and more, monotonic clocks hours apart",
        clocks={
            "gateway": Clock(5_000, "+5s"),
            "engine": Clock(86_400, "-5s"),
            "tools": Clock(12_345, "+5s"),
        },
        finds=frozenset({SHIFTED}),
    ),
    Scenario(
        "one-way",
        "wall clocks 50 ms apart, and all delay of a wire on one of its ways",
        clocks={
            "gateway": Clock(100, "-0.05"),
            "engine": Clock(200, "+0.05"),
            "tools": Clock(300, "-0.05"),
        },
        wires=_ONE_WAY,
        finds=frozenset({SHIFTED}),
    ),
    Scenario(
        "quick",
        "wall clocks 1 ms apart, and no delay but that of the processes themselves",
        clocks={
            "app": Clock(7),
            "gateway": Clock(1_000, "+0.001"),
            "engine": Clock(2_000, "-0.001"),
            "tools": Clock(3_000, "-0.001"),
        },
        wires=_QUICK,
        may_find=frozenset({SHIFTED}),
    ),
    Scenario(
        "step",
        "the tools' wall clock is set 2 s ahead in mid-trace; their SDK knows its monotonic clock",
        clocks={"tools": Clock(500, "+0")},
        plan=Plan(rounds=2, step_to="+2s"),
        stepped="tools",
        finds_at_last=frozenset({STEPPED}),
        may_find=frozenset({SHIFTED}),
    ),
    Scenario(
        "plain-step",
        "the same by 0.5 s back, and the tools' spans are another producer's: wall stamps alone",
        clocks={"tools": Clock(500, "+0")},
        plan=Plan(rounds=2, step_to="-0.5"),
        stepped="tools",
        plain_tools=True,
        finds_at_last=frozenset({STEPPED}),
        may_find=frozenset({SHIFTED}),
    ),
    Scenario(
        "drift",
        "the engine's wall clock gains 100 ppm; its spans are another producer's, by wall",
        clocks={"engine": Clock(900, "+0 x1.0001")},
        wires=_QUICK,
        engine=Engine(queue_ms=20, prefill_ms=30, tokens=4, token_ms=10, plain=True),
        plan=Plan(runs=75, pause_ms=700, tools_ms={"search": 20}),
        may_find=frozenset({SHIFTED}),
        direct=True,
        drift_ppm=100,
    ),
    Scenario(
        "impossible",
        "the engine says that it decoded 300 ms longer than its caller waited",
        clocks={"engine": Clock(900, "+0.05")},
        engine=Engine(plain=True, late_ms=300),
        finds=frozenset({IMPOSSIBLE}),
        may_find=frozenset({SHIFTED}),
    ),
)
