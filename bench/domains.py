"""Traces over many clocks: chains of unary calls from machine to machine, each bounds both ways.

root      ├───────────────────────────────────────────────────────┤   clock 0
client      ├─────────────┤        ├──────────────┤                   clock 0
server        ├─────────┤            ├──────────┤                     clock 3 · clock 5
work             ┄┄                     ┄┄                            the same
client          ├─────┤                ├──────┤                       the same
server            ├─┤                    ├──┤                         clock 4 · clock 6
"""

from __future__ import annotations

from random import Random
from typing import Final

from llmlat_processor.model import CLIENT, INTERNAL, SERVER, Assumptions, Resource, Span, Trace
from llmlat_processor.stages.assemble import assemble
from llmlat_semconv import attributes as names

_MS: Final = 1_000_000
_START_NS: Final = 1_700_000_000 * 10**9
_TRACE_ID: Final = b"\x02" * 16
_UNARY: Final = {names.RPC_SYSTEM_NAME: "grpc"}
_HOPS: Final = 5
"""Calls in one chain, at most: each goes to a clock of its own."""


def across(size: int, domains: int, work: int = 3) -> Trace:
    """A root and chains of calls, `size` spans in all, that reach every one of so many clocks.

    Args:
        size: spans.
        domains: clocks.
        work: spans of its own in each server. With 3 of them one span in five has a parent on
            another clock, as in the traces of `bench.traces`; with none every other one.
    """
    random = Random(1)
    hosts = [_resource(number) for number in range(domains)]
    ahead_ns = [0, *(random.randrange(-5_000 * _MS, 5_000 * _MS) for _ in hosts[1:])]
    hops = min(_HOPS, domains - 1)
    spans = [_span(1, 0, INTERNAL, 0, 10 * size * _MS, hosts[0], 0)]
    while len(spans) < size:
        chain = (len(spans) - 1) // ((2 + work) * hops)
        here, parent, at_ns, left_ns = 0, 1, chain * 10 * _MS, 8 * _MS
        for hop in range(hops):
            for kind in (CLIENT, SERVER):
                if kind == SERVER:
                    here = 1 + (chain * hops + hop) % (domains - 1)
                number = len(spans) + 1
                spans.append(
                    _span(number, parent, kind, at_ns, left_ns, hosts[here], ahead_ns[here])
                )
                parent = number
                at_ns, left_ns = at_ns + 200_000, left_ns - 500_000
            for _ in range(work):
                number = len(spans) + 1
                spans.append(
                    _span(number, parent, INTERNAL, at_ns, 10_000, hosts[here], ahead_ns[here])
                )
    return assemble(spans[:size], Assumptions())


def _resource(number: int) -> Resource:
    name = f"machine-{number}"
    return Resource({}, service=f"service-{number}", process=name, domain=name, weak=False)


def _span(
    number: int, parent: int, kind: int, at_ns: int, length_ns: int, host: Resource, ahead_ns: int
) -> Span:
    start_ns = _START_NS + at_ns + ahead_ns
    return Span(
        _TRACE_ID,
        number.to_bytes(8, "big"),
        parent.to_bytes(8, "big") if parent else b"",
        "call" if kind == CLIENT else "serve",
        kind,
        start_ns,
        start_ns + length_ns,
        host,
        attributes=_UNARY if kind == CLIENT else {},
        attribute_count=int(kind == CLIENT),
    )
