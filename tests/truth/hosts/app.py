"""The app: runs of an agent, in each of which tools run side by side before a streamed call."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

from openai import AsyncOpenAI
from opentelemetry import propagate, trace

import llmlat_otel.auto  # noqa: F401  (times the call below)
from llmlat_otel import agent, tool
from tests.truth.hosts.asking import Connection
from tests.truth.hosts.record import Record, wait
from tests.truth.hosts.variables import PLAN, TOOLS_URL
from tests.truth.marks import ASKED, mark, marks_in
from tests.truth.scenarios import Plan


class App:
    """Runs the plan; every request gets a number of its own, by which its bytes are known."""

    def __init__(self, plan: Plan, client: AsyncOpenAI, tools: Mapping[str, Connection]) -> None:
        self._plan = plan
        self._client = client
        self._tools = tools
        self._record = Record.of_this_host()
        self._requests = 0

    async def run(self) -> None:
        """All runs of the agent."""
        self._record.watch_clocks()
        for number in range(self._plan.runs):
            await self._ask(is_last=number == self._plan.runs - 1)
            await wait(self._plan.pause_ms)

    async def _ask(self, *, is_last: bool) -> None:
        """One trace."""
        began_ns = time.monotonic_ns()
        requests = []
        async with agent("asker") as span:
            trace_id = trace.format_trace_id(span.get_span_context().trace_id)
            for number in range(self._plan.rounds):
                if number and is_last:
                    self._step()
                requests += await asyncio.gather(*map(self._use, self._plan.tools_ms.items()))
            requests.append(await self._chat())
        self._record.note(trace=trace_id, began_ns=began_ns, requests=requests)
        print(trace_id, flush=True)

    def _step(self) -> None:
        """Set another host's wall clock, which libfaketime reads from a file."""
        if self._plan.step_file:
            changed = Path(self._plan.step_file)
            beside = changed.with_suffix(".new")
            beside.write_text(self._plan.step_to, encoding="ascii")
            beside.replace(changed)

    async def _use(self, used: tuple[str, float]) -> int:
        name, milliseconds = used
        request = self._next()
        with tool(name):
            headers: dict[str, str] = {}
            propagate.inject(headers)
            path = f"/tools/{name}?ms={milliseconds}"
            await self._tools[name].post(path, headers, mark(request, ASKED))
        return request

    async def _chat(self) -> int:
        request = self._next()
        stream = await self._client.chat.completions.create(
            model="emulated",
            messages=[{"role": "user", "content": mark(request, ASKED)}],
            stream=True,
        )
        async for chunk in stream:
            at_ns = time.monotonic_ns()
            for choice in chunk.choices:
                for _, what in marks_in((choice.delta.content or "").encode()):
                    self._record.stamped(request, what, at_ns)
        return request

    def _next(self) -> int:
        self._requests += 1
        return self._requests


async def main() -> None:
    """Do what the environment says."""
    plan = Plan(**json.loads(os.environ[PLAN]))
    while not Path(plan.start_file).exists():
        await wait(20)
    tools = {name: await Connection.to(os.environ[TOOLS_URL]) for name in plan.tools_ms}
    async with AsyncOpenAI(timeout=None) as client:
        await App(plan, client, tools).run()
    for connection in tools.values():
        connection.close()


if __name__ == "__main__":
    asyncio.run(main())
