"""What really happened in a scenario, from the hosts' records and the wires, and never from a span.

    app             wire                 server
     │ write ······ read                            a hop: what passes between the wire's reading
     │              held                            of a request and its arrival at the server, and
     │              sent ··············· arrived    between the server's last output and its being
     │              read ··············· last       sent on by the wire
     │ ············ sent

What the app's own client takes on its side is in no hop, and is an error of what is attributed. A
gateway's wait begins with the first byte that it writes, an app's with the last one, which may come
after the server has begun; an engine's last output is the token, a server's its last bytes.

All instants are brought to the machine's monotonic clock: a time namespace shifts it by a constant.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from llmlat_processor.model import Assumptions
from llmlat_semconv.phases import Phase
from tests.truth.marks import ARRIVED, ASKED, ENDED, FIRST, LAST, OUTPUT
from tests.truth.scenarios import Scenario, hop
from tests.truth.staging import Seen

NS_PER_S: Final = 1_000_000_000
TAIL_NS: Final = Assumptions().tail_ns
ENGINE_PHASES: Final = (Phase.QUEUE.value, Phase.PREFILL.value, Phase.DECODE.value)
TOOL: Final = "tool"
TOOLS_HOP: Final = hop("app", "tools")


@dataclass(frozen=True, slots=True)
class Delay:
    """What one trace was delayed by in one place, in ns.

    Attributes:
        injected_ns: what it really was.
        held_ns: of it by the wire.
    """

    injected_ns: int
    held_ns: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the app: its trace, when it began on the app's monotonic clock, its requests.

    Attributes:
        asked_tools: of each round, the numbers of its requests.
        chat: number of the request to the model.
    """

    trace_id: str
    began_ns: int
    asked_tools: tuple[tuple[int, ...], ...]
    chat: int


class HostClocks:
    """Both clocks of one host, at any instant of the machine's monotonic clock."""

    def __init__(self, monotonic_s: int, readings: Iterable[tuple[int, int]]) -> None:
        """From how far the monotonic clock is ahead, and (monotonic, wall) readings in order."""
        self._ahead_ns = monotonic_s * NS_PER_S
        self._readings = sorted(readings)
        self._at_ns = [monotonic_ns for monotonic_ns, _ in self._readings]

    def machine_ns(self, monotonic_ns: int) -> int:
        """The machine's clock when this host's monotonic one shows so much."""
        return monotonic_ns - self._ahead_ns

    def monotonic_ns(self, machine_ns: int) -> int:
        """What this host's monotonic clock shows."""
        return machine_ns + self._ahead_ns

    def wall_ns(self, machine_ns: int) -> int:
        """What this host's wall clock shows, by the last reading before; else by the first."""
        here_ns = self.monotonic_ns(machine_ns)
        read = self._readings[max(0, bisect_right(self._at_ns, here_ns) - 1)]
        return read[1] + here_ns - read[0]


class Truth:
    """All that is known of one scenario."""

    def __init__(self, seen: Seen) -> None:
        self.scenario: Scenario = seen.scenario
        self._passed = seen.passed
        self._waited: dict[tuple[int, str], int] = {}
        self._stamps: dict[tuple[str, int, str], int] = {}
        self.clocks: dict[str, HostClocks] = {}
        for host, lines in seen.records.items():
            self._read(host, lines)
        self.runs = tuple(_runs(seen.records["app"], self.scenario.plan.rounds))

    def _read(self, host: str, lines: Iterable[Mapping[str, Any]]) -> None:
        readings = []
        for line in lines:
            if "wall_ns" in line:
                readings.append((line["monotonic_ns"], line["wall_ns"]))
            elif "at_ns" in line:
                self._stamps[host, line["request"], line["what"]] = line["at_ns"]
            elif "ns" in line:
                self._waited[line["request"], line["what"]] = line["ns"]
        self.clocks[host] = HostClocks(self.scenario.clock(host).monotonic_s, readings)

    def delays(self, run: Run) -> dict[str, Delay]:
        """What was injected into a run, by where."""
        found = {phase: Delay(self._waited[run.chat, phase]) for phase in ENGINE_PHASES}
        longest = [
            max(asked, key=lambda request: self._waited[request, TOOL]) for asked in run.asked_tools
        ]
        found[TOOL] = Delay(sum(self._waited[request, TOOL] for request in longest))
        found[TOOLS_HOP] = _sum(self._hop("app", "tools", request) for request in longest)
        for client, server in self.scenario.model_hops:
            found[hop(client, server)] = self._hop(client, server, run.chat)
        return found

    def _hop(self, client: str, server: str, request: int) -> Delay:
        asked, last = self._passed[server][request, ASKED], self._passed[server][request, LAST]
        begun_ns = asked.begun_ns if client == "gateway" else asked.read_ns
        output_ns = self._stamp(server, request, OUTPUT if server == "engine" else LAST)
        return Delay(
            max(0, self._stamp(server, request, ARRIVED) - begun_ns) + last.sent_ns - output_ns,
            asked.sent_ns - asked.read_ns + last.sent_ns - last.read_ns,
        )

    def _stamp(self, host: str, request: int, what: str) -> int:
        return self.clocks[host].machine_ns(self._stamps[host, request, what])

    def stalled(self, run: Run) -> bool:
        """Whether a tools' server went on for longer after its answer than anybody may assume.

        The machine gave it no time: what its span's end says of clocks is not so then.
        """
        return any(
            self._stamp("tools", request, ENDED) - self._stamp("tools", request, LAST) > TAIL_NS
            for asked in run.asked_tools
            for request in asked
        )

    def held_ns(self, run: Run) -> int:
        """For how long tokens existed that the app had not: decoding took longer than receiving."""
        first_ns, last_ns = (self._stamp("app", run.chat, what) for what in (FIRST, LAST))
        return self._waited[run.chat, Phase.DECODE.value] - (last_ns - first_ns)

    def offset_ns(self, host: str, run: Run, *, wall: bool) -> int:
        """A host's clock minus the app's when a run began.

        Args:
            host: whose clock.
            run: which run.
            wall: True compares wall clocks; else those by which their spans are placed, which for
                another producer's is the wall clock.
        """
        app, other = self.clocks["app"], self.clocks[host]
        began_ns = app.machine_ns(run.began_ns)
        theirs_by_wall = wall or self.scenario.is_plain(host)
        theirs = other.wall_ns(began_ns) if theirs_by_wall else other.monotonic_ns(began_ns)
        return theirs - (app.wall_ns(began_ns) if wall else app.monotonic_ns(began_ns))


def _sum(delays: Iterable[Delay]) -> Delay:
    injected_ns, held_ns = 0, 0
    for delay in delays:
        injected_ns += delay.injected_ns
        held_ns += delay.held_ns
    return Delay(injected_ns, held_ns)


def _runs(lines: Iterable[Mapping[str, Any]], rounds: int) -> Iterator[Run]:
    for line in lines:
        if "trace" in line:
            *tools, chat = line["requests"]
            each = len(tools) // rounds
            asked = tuple(tuple(tools[at : at + each]) for at in range(0, len(tools), each))
            yield Run(line["trace"], line["began_ns"], asked, chat)
