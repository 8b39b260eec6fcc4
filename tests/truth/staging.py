"""One scenario run for real: the hosts' processes, the wires between them, and what they sent."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final

from children import Child, Children
from tests.llmlat_processor.sink import sink
from tests.truth.hosts.variables import ENGINE, PLAIN_TOOLS, PLAN, PORT, RECORD, TOOLS_URL
from tests.truth.network import Host, faking
from tests.truth.scenarios import Scenario
from tests.truth.wire import DelayingWire, Mark, Passage

LLMLAT: Final = str(Path(sys.executable).with_name("llmlat"))
GATEWAY: Final = Path(__file__).parents[2] / "examples" / "gateway-asgi"
COLLECTOR_PORT: Final = 4317
AT_THE_END: Final = "600000"
"""ms: spans are exported when a host ends, and not while it is being measured."""

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Seen:
    """What one scenario has left behind.

    Attributes:
        scenario: which one.
        spans: the file with all spans, as OTLP.
        records: by host, the lines of its record.
        passed: by wire, when the bytes with each mark passed.
    """

    scenario: Scenario
    spans: Path
    records: Mapping[str, list[Mapping[str, Any]]]
    passed: Mapping[str, Mapping[Mark, Passage]]


def played(
    scenario: Scenario, hosts: Mapping[str, Host], folder: Path, note: Note = lambda _: None
) -> Seen:
    """Run a scenario to its end.

    Args:
        scenario: which one.
        hosts: namespaces, by name.
        folder: an empty one, for what it leaves behind.
        note: told of each trace.

    Raises:
        ChildError: a process failed.
    """
    spans = folder / "spans.pb"
    with sink() as destination:
        with Children(folder) as children:
            traces = count(1)
            note(f"{scenario.name}: starting")
            stage = _Stage(scenario, hosts, folder, children)
            with stage.set(destination.address) as (wires, app):
                app.finished(
                    lambda _: note(f"{scenario.name}: trace {next(traces)} of {scenario.plan.runs}")
                )
                passed = {name: wire.passages.by_mark() for name, wire in wires.items()}
        # All have ended in turn, the collector last: what was held anywhere has been sent.
        spans.write_bytes(b"".join(destination.requests))
    return Seen(scenario, spans, {host: _record(folder, host) for host in scenario.hosts}, passed)


class _Stage:
    """The four hosts of a scenario, each with its program."""

    def __init__(
        self,
        scenario: Scenario,
        hosts: Mapping[str, Host],
        folder: Path,
        children: Children,
    ) -> None:
        self._scenario = scenario
        self._hosts = hosts
        self._folder = folder
        self._children = children
        self._collector = f"{hosts['app'].ours}:{COLLECTOR_PORT}"
        self._step_file = folder / "wall"
        self._start_file = folder / "start"

    @contextmanager
    def set(self, destination: str) -> Iterator[tuple[Mapping[str, DelayingWire], Child]]:
        """All wires, and the app at work; all processes are stopped with the children.

        They start side by side, and the app begins when the others can answer. The collector is the
        first one, and so the last to be stopped.
        """
        with ExitStack() as stack:
            wires = {
                server: stack.enter_context(self._wire(client, server))
                for client, server in (*self._scenario.model_hops, ("app", "tools"))
            }
            collector = self._children.start("processor", self._collecting(destination))
            servers = self._start_servers(wires)
            variables = {
                "OPENAI_BASE_URL": f"{wires[self._scenario.hosts[1]].url}/v1",
                "OPENAI_API_KEY": "none",
                TOOLS_URL: wires["tools"].url,
                PLAN: json.dumps(self._plan()),
            }
            app = self._start("app", [sys.executable, "-m", "tests.truth.hosts.app"], variables)
            collector.listening(self._collector)
            for server in servers:
                server.listening(f"{self._hosts[server.name].address}:{PORT}")
            self._start_file.touch()
            yield wires, app

    def _collecting(self, destination: str) -> list[str]:
        command = [LLMLAT, "processor", "--lane=off", f"--state={self._start_file.parent}/state"]
        return [*command, "--listen", self._collector, "--export", destination]

    def _start_servers(self, wires: Mapping[str, DelayingWire]) -> list[Child]:
        module = [sys.executable, "-m", "tests.truth.hosts.serving"]
        programs: dict[str, tuple[list[str], dict[str, str]]] = {
            "engine": (
                [*module, "tests.truth.hosts.engine:app"],
                {ENGINE: json.dumps(asdict(self._scenario.engine))},
            ),
            "tools": (
                [*module, "tests.truth.hosts.tools:app"],
                {PLAIN_TOOLS: "1"} if self._scenario.plain_tools else {},
            ),
            "gateway": (
                [*module, "gateway:app", "--app-dir", str(GATEWAY)],
                {"OPENAI_BASE_URL": f"{wires['engine'].url}/v1"},
            ),
        }
        return [self._start(name, *programs[name]) for name in self._scenario.hosts[1:]]

    def _wire(self, client: str, server: str) -> DelayingWire:
        to = (self._hosts[server].address, PORT)
        return DelayingWire(self._hosts[client].ours, to, self._scenario.wires[server])

    def _start(self, name: str, program: list[str], variables: Mapping[str, str]) -> Child:
        clock = self._scenario.clock(name)
        file = ""
        if name == self._scenario.stepped:
            file = str(self._step_file)
            self._step_file.write_text(clock.wall, encoding="ascii")
        return self._children.start(
            name,
            self._hosts[name].command(program, clock, faking(clock, file)),
            **{
                RECORD: str(self._folder / f"{name}.jsonl"),
                "PYTHONPATH": str(Path(__file__).parents[2]),
                "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{self._collector}",
                "OTEL_SERVICE_NAME": name,
                "OTEL_RESOURCE_ATTRIBUTES": f"host.id={name}-of-{self._scenario.name}",
                "OTEL_BSP_SCHEDULE_DELAY": AT_THE_END,
                **variables,
            },
        )

    def _plan(self) -> dict[str, object]:
        plan = {**asdict(self._scenario.plan), "start_file": str(self._start_file)}
        if self._scenario.stepped:
            plan["step_file"] = str(self._step_file)
        return plan


def _record(folder: Path, host: str) -> list[Mapping[str, Any]]:
    lines = (folder / f"{host}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]
