"""Shapes that calls have in life, each truly possible: what a grown world consists of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from llmlat_processor.model import CLIENT, CONSUMER, INTERNAL, PRODUCER, SERVER
from llmlat_semconv import attributes as names
from llmlat_semconv import events
from llmlat_semconv.values import OperationName
from tests.properties.clock_growth import Growth, Shape
from tests.properties.clock_hosts import MS
from tests.properties.clock_inference import (
    attempts,
    cancelled,
    inference,
    through_a_gateway,
    whole_answer,
)
from tests.properties.clock_world import Operation, Told, World

RPC: Final[Told] = {names.RPC_SYSTEM: "grpc"}


def grown_world(seed: int) -> World:
    """A world of two to eight hosts; the same for the same seed."""
    growth = Growth(seed)
    length = growth.length()
    root = growth.root(length)
    growth.fill(root, 0, length, SHAPES)
    if growth.rng.random() < 0.2:
        _show_resolution(growth)
    growth.link_some()
    return growth.finished()


def local(growth: Growth, parent: Operation, start: int, end: int) -> None:
    """Work in the same process."""
    growth.fill(growth.add(parent, parent.process, INTERNAL, start, end), start, end, SHAPES)


def rpc(growth: Growth, parent: Operation, start: int, end: int) -> None:
    """A unary call: its caller lasts to the last byte; the server's span may go on for a while."""
    call = growth.add(parent, parent.process, CLIENT, start, end, RPC)
    call.waits = True
    began, done = growth.cuts(start, end, 2)
    # A server's span says that it is RPC too; who calls from within it is not the one who waits.
    told = growth.rng.choice(({}, RPC))
    server = growth.add(call, growth.elsewhere(call), SERVER, began, growth.late(done), told)
    growth.asks(call, start, server)
    growth.answers(server, server.end, call, end, tail=True)
    growth.fill(server, began, done, SHAPES)


def http(growth: Growth, parent: Operation, start: int, end: int) -> None:
    """A call that may end at the headers, while its server goes on."""
    call = growth.add(parent, parent.process, CLIENT, start, end)
    began, headers = growth.cuts(start, end, 2)
    last = growth.after(headers)
    server = growth.add(call, growth.elsewhere(call), SERVER, began, last)
    growth.asks(call, start, server)
    growth.fill(server, began, last, SHAPES)


def tool(growth: Growth, parent: Operation, start: int, end: int) -> None:
    """A tool in another process, with no client span between (MCP), or a job that it starts."""
    told: Told = {names.GEN_AI_OPERATION_NAME: OperationName.EXECUTE_TOOL.value}
    call = growth.add(parent, parent.process, INTERNAL, start, end, told)
    call.waits = True
    began, done = growth.cuts(start, end, 2)
    kind = growth.rng.choice((SERVER, INTERNAL))
    last = growth.late(done) if kind == SERVER else growth.after(began)
    server = growth.add(call, growth.elsewhere(call), kind, began, last)
    growth.asks(call, start, server)
    if kind == SERVER:
        growth.answers(server, server.end, call, end, tail=True)
    growth.fill(server, began, min(done, last), SHAPES)


def handed_over(growth: Growth, parent: Operation, start: int, end: int) -> None:
    """A remote child of an unknown producer: nobody knows whether its parent waits for it."""
    if parent.waits:
        return
    began = growth.cuts(start, end, 1)[0]
    last = growth.after(began)
    child = growth.add(parent, growth.elsewhere(parent), INTERNAL, began, last)
    growth.asks(parent, parent.start, child)
    growth.fill(child, began, last, SHAPES)


def message(growth: Growth, parent: Operation, start: int, end: int) -> None:
    """A message whose consumer starts at any time after it was written, long after the root."""
    producer = growth.add(parent, parent.process, PRODUCER, start, end)
    began = growth.after(start, 10 * 10**9)
    last = growth.after(began)
    consumer = growth.add(producer, growth.believed(producer), CONSUMER, began, last)
    growth.asks(producer, start, consumer)
    growth.fill(consumer, began, last, SHAPES)


def awaited(growth: Growth, parent: Operation, start: int, end: int) -> None:
    """A consumer of which its parent says that it waited for it."""
    began, last = growth.cuts(start, end, 2)
    child = growth.add(parent, growth.believed(parent), CONSUMER, began, last)
    growth.asks(parent, parent.start, child)
    joined: Told = {names.LLMLAT_JOIN_SPAN_IDS: [child.span_id.hex()]}
    parent.events.append((events.LLMLAT_JOIN, end, joined))


def _show_resolution(growth: Growth) -> None:
    """So many stamps of one host that its resolution is found without being declared."""
    process = growth.world.root.process
    host = growth.world.hosts[process.host]
    step = max(MS, growth.world.root.end // 40)
    if host.resolution_ns == 1 or host.weak or host.monotonic_ns is not None:
        return
    growth.world.hosts[process.host] = replace(host, declares=False)
    for number in range(40):
        at = number * step
        growth.add(growth.world.root, process, INTERNAL, at, at)
    growth.world.root.end = max(growth.world.root.end, 40 * step)


SHAPES: Final[Sequence[Shape]] = (
    *(local, rpc, rpc, http, tool, handed_over, message, awaited),
    *(inference, inference, whole_answer, through_a_gateway, through_a_gateway),
    *(attempts, cancelled),
)
