"""Calls between hosts for the tests of clocks, in milliseconds, and what was proved of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from llmlat_processor.model import AlignedTrace, Assumptions, Finding, Interval
from llmlat_processor.offsets import between
from llmlat_processor.stages.align_clocks import align_clocks
from llmlat_processor.stages.assemble import assemble
from tests.cases.case_format import EXACT, Json
from tests.cases.case_spans import name_of
from tests.llmlat_processor.stages.spans import MS, row, spans

DETECTED: Final = replace(EXACT, resolution_ns=None)


def aligned(
    *rows: Json, assumptions: Assumptions = EXACT, links: Sequence[Json] = ()
) -> AlignedTrace:
    """Some rows, up to the clocks."""
    return align_clocks(assemble(spans(*rows, links=links), assumptions))


def root(**keys: Any) -> Json:
    """The root, on host A."""
    return row("R", None, 0, 10_000, host="A", **keys)


def call(
    name: str,
    sent: float,
    served: tuple[float, float],
    received: float,
    at: str = "A",
    to: str = "B",
) -> Iterator[Json]:
    """One unary call under the root, from one host to another, each by its own clock."""
    caller = {"kind": "client", "rpc": True, "host": at}
    yield row(name, "R", sent, received, **caller)
    yield row(f"{name}s", name, *served, kind="server", host=to)


def offset(trace: AlignedTrace, one: str, other: str) -> tuple[float | None, float | None]:
    """The interval of clock of the second host - clock of the first, in ms."""
    interval: Interval = between(trace.clocks, one, other)
    low, high = (None if end is None else end / MS for end in interval)
    return low, high


def told(trace: AlignedTrace) -> list[str]:
    """The violations, as `kind of span amount`."""
    return [_line(finding) for finding in trace.findings if finding.proof or not finding.interval]


def _line(finding: Finding) -> str:
    amount = "" if finding.amount_ns is None else f" {finding.amount_ns / MS:g}"
    return f"{finding.kind.value} of {name_of(finding.of)}{amount}"
