"""Clocks over many traces as one JSON document: exact integers, ids in hex, a fixed shape.

    document  window_ns, drift_ppm, traces, pairs, findings, messages, left_out, reason
    pair      first, second, stretches, steps
    clock     domain, services, host, is_monotonic
    stretch   epoch, start_ns, end_ns, at_ns, offset_ns, steady_offset_ns, drift_ppb, wall,
              messages, traces
    wall      at_ns, offset_ns: the same by the wall clocks of both, null where they are not known
    step      amount_ns, after_ns, by_ns, before, since
    witness   trace_id, left, arrived
    finding   kind, caller, callee, total
    interval  low, high: both ends included, null where nothing bounds it

Offsets are the clock of `second` less that of `first`, and instants are readings of the clock of
`first`. Keys may be added from version to version; none is removed or given another meaning.
"""

from __future__ import annotations

from typing import TypeAlias

from llmlat_processor.model import Interval
from llmlat_processor.model.clock_history import (
    ClocksOverTime,
    KnownClock,
    PairOverTime,
    Step,
    Stretch,
    WallShift,
    Witness,
)

Document: TypeAlias = dict[str, object]


def clocks_document(told: ClocksOverTime) -> Document:
    """Give it as JSON types: dicts, lists, strings, integers, booleans and None."""
    return {
        "window_ns": told.window_ns,
        "drift_ppm": told.drift_ppm,
        "traces": told.traces,
        "pairs": [_pair(pair) for pair in told.pairs],
        "findings": [{**row._asdict(), "kind": row.kind.value} for row in told.findings],
        "messages": dict(told.messages),
        "left_out": told.left_out,
    }


def _pair(pair: PairOverTime) -> Document:
    rows = zip(pair.stretches, pair.shifts, strict=True)
    return {
        "first": _clock(pair.first),
        "second": _clock(pair.second),
        "stretches": [_stretch(stretch, shift) for stretch, shift in rows],
        "steps": [_step(step) for step in pair.steps],
    }


def _clock(clock: KnownClock) -> Document:
    return {
        "domain": clock.domain,
        "services": list(clock.services),
        "host": clock.host,
        "is_monotonic": clock.is_monotonic,
    }


def _stretch(stretch: Stretch, shift: WallShift | None) -> Document:
    drift = stretch.drift
    return {
        "epoch": stretch.epoch,
        "start_ns": stretch.start_ns,
        "end_ns": stretch.end_ns,
        "at_ns": stretch.at_ns,
        "offset_ns": _interval(stretch.interval),
        "steady_offset_ns": None if stretch.steady is None else _interval(stretch.steady),
        "drift_ppb": None if drift is None else {"low": drift.low_ppb, "high": drift.high_ppb},
        "wall": None if shift is None else _wall(stretch, shift),
        "messages": stretch.messages,
        "traces": stretch.traces,
    }


def _wall(stretch: Stretch, shift: WallShift) -> Document:
    return {
        "at_ns": stretch.at_ns + shift.first_ns,
        "offset_ns": _interval(shift.of(stretch.interval)),
    }


def _interval(interval: Interval) -> Document:
    return {"low": interval.low_ns, "high": interval.high_ns}


def _step(step: Step) -> Document:
    return {
        "amount_ns": step.amount_ns,
        "after_ns": step.after_ns,
        "by_ns": step.by_ns,
        "before": [_witness(witness) for witness in step.before],
        "since": [_witness(witness) for witness in step.since],
    }


def _witness(witness: Witness) -> Document:
    return {
        "trace_id": witness.trace_id.hex(),
        "left": witness.left.hex(),
        "arrived": witness.arrived.hex(),
    }
