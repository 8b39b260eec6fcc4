"""Turns what a file states as pairs and milestones into the spans that producers would send.

A pair of a call, caller in domain a, callee in domain b, under one root that bounds nothing:

    a   root  ├──────────────────────────────────────┤    wider than all pairs, on the first a
    a   q.caller     cs ├─────────────────┤ ce            a unary CLIENT: lasts to its last byte
    b   q               ss ├─────────┤ se                 its SERVER: θ in [se - ce, ss - cs]

Of a reply only the answer's edges count: the caller goes on long after, and began long before.

    a   q.caller  ├──────────────────● ce ───────────┤    first content
    b   q            ss ├ prefill ──● se ─────┤           first output: θ >= se - ce
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Row = dict[str, Any]
Raw = Mapping[str, Any]

CALLER: Final = ".caller"
"""The caller's id is that of the pair with this; the callee's is the pair's own."""

REPLY_ONLY: Final = "_reply_only"

# How much longer than its edges a call lasts whose other edges are not to bound anything.
_LOOSE: Final = 1_000

_PHASES_BETWEEN: Final = {"queue": ("queued_ts", "scheduled_ts")}
"""Phase by the milestones at which it starts and ends."""


def rows_of_pairs(pairs: Sequence[Raw]) -> list[Row]:
    """The spans of all pairs; none for none."""
    if not pairs:
        return []
    home = pairs[0]["a"]
    calls = [row for pair in pairs for row in _pair(pair, home)]
    start = min(row["start"] for row in calls) - _LOOSE
    end = max(row["end"] for row in calls) + _LOOSE
    return [{"id": "root", "parent": None, "start": start, "end": end, "host": home}, *calls]


def _pair(pair: Raw, home: str) -> Iterator[Row]:
    """Caller and callee; a caller whose clock is not the root's is a root of its own."""
    name = pair.get("name") or f"{pair['a']}->{pair['b']}"
    caller = {"id": name + CALLER, "parent": "root" if pair["a"] == home else None}
    callee = {"id": name, "parent": name + CALLER}
    sides = _one_way(pair) if pair.get("oneway") else _call(pair)
    if name.endswith(REPLY_ONLY):
        sides = _reply(pair)
        prefill = {"id": f"{name}.prefill", "parent": name, "phase": "prefill"}
        yield {**prefill, "start": pair["ss"], "end": pair["se"]}
    yield {**caller, **sides[0], "host": pair["a"]}
    yield {**callee, **sides[1], "host": pair["b"]}


def _call(pair: Raw) -> tuple[Row, Row]:
    """A unary call; where a pair states bounds, one whose edges give exactly these."""
    if "lo" in pair:
        pair = {"cs": 0, "ss": pair["hi"], "ce": _LOOSE, "se": _LOOSE + pair["lo"]}
    caller = {"kind": "client", "rpc": True, "start": pair["cs"], "end": pair["ce"]}
    return caller, {"kind": "server", "start": pair["ss"], "end": pair["se"]}


def _one_way(pair: Raw) -> tuple[Row, Row]:
    """A message: how long its sender goes on says nothing."""
    end = pair["cs"] + pair["se"] - pair["ss"]
    sender = {"kind": "producer", "start": pair["cs"], "end": end}
    return sender, {"kind": "consumer", "start": pair["ss"], "end": pair["se"]}


def _reply(pair: Raw) -> tuple[Row, Row]:
    said = {"kind": "client", "op": "chat", "boundary": "client", "stream": True}
    times = {"start": pair["cs"] - _LOOSE, "end": pair["ce"] + _LOOSE}
    caller = {**said, **times, "first_useful_content": pair["ce"]}
    end = pair["se"] + _LOOSE // 2
    return caller, {"kind": "server", "boundary": "engine", "start": pair["ss"], "end": end}


def rows_of_milestones(spans: Sequence[Raw], unit_ns: int, epoch_ns: int) -> Iterator[Row]:
    """A phase span between each two milestones that bound a phase.

    Milestones are seconds of the producer's own monotonic clock. The first one that was set is
    taken to be the start of its span, and one that was never set, so still has its default 0, is
    sent as the stamp 0.

    Args:
        spans: of the file.
        unit_ns: of its stamps.
        epoch_ns: what its 0 is on the clock.
    """
    for span in spans:
        milestones = span.get("milestones", {})
        first = min((stamp for stamp in milestones.values() if stamp), default=0)
        at = {
            name: span["start"] + (stamp - first) * 10**9 / unit_ns
            if stamp
            else -epoch_ns / unit_ns
            for name, stamp in milestones.items()
        }
        for phase, (start, end) in _PHASES_BETWEEN.items():
            if {start, end} <= at.keys():
                row = {"id": f"{span['id']}.{phase}", "parent": span["id"], "phase": phase}
                yield {**row, "start": at[start], "end": at[end]}


def phase_at(milestone: str) -> str:
    """The phase that starts or ends at a milestone."""
    return next(phase for phase, edges in _PHASES_BETWEEN.items() if milestone in edges)
