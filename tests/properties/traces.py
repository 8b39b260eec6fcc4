"""Hypothesis strategies for traces, written as cases: a failing example is a case file.

    plain_traces()   one process, children inside their parents: what a textbook assumes
    call_traces()    several processes and clocks, calls with phases or durations, attempts, tools
    damaged_traces() the same with orphans, cycles, stamps that are no times, ids used twice
    arbitrary_spans() spans that no program would emit

Stamps are small integers, so spans touch, coincide and have no length more often than in life.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from llmlat_semconv import events
from llmlat_semconv.values import LinkRelationship
from tests.cases.case_format import Case, Json

HOSTS: Final = ("app", "gateway", "engine")
OFFSETS: Final = (-500, -7, 0, 3, 40, 100_000)
CALL_IDS: Final = ("k1", "k2")

RawSpan = dict[str, Any]


def plain_traces(max_operations: int = 9) -> SearchStrategy[Case]:
    """One process: every operation lies in its parent, siblings may overlap as they like."""
    return _grown(max_operations, (_local,), overflow=False)


def linked_traces(max_operations: int = 7) -> SearchStrategy[Case]:
    """Plain traces in which some operations say which sibling they waited for."""
    return plain_traces(max_operations).flatmap(_with_follows)


def call_traces(max_operations: int = 6) -> SearchStrategy[Case]:
    """Several processes, each on its own clock; calls of all shapes; children that overflow."""
    return _grown(max_operations, _SHAPES, overflow=True).flatmap(_with_links)


def damaged_traces(max_operations: int = 6) -> SearchStrategy[Case]:
    """Call traces with damage of every kind that exporters are known for."""
    return call_traces(max_operations).flatmap(_with_damage)


def as_case_file(case: Case) -> str:
    """The example as a case file, to be put among the others once `expected` is known."""
    keys = {"name": case.name, "family": "call", "unit": case.unit}
    lists = {"spans": list(case.spans), "links": list(case.links), "expected": {}}
    return json.dumps(keys | lists, indent=1)


# ── Growing a trace ──────────────────────────────────────────────────────────────────────────────


class _Growth:
    """A trace under construction; hosts keep the clock that they were given."""

    def __init__(self, draw: DrawFn, overflow: bool) -> None:
        self.draw = draw
        self.overflow = overflow
        self.spans: list[RawSpan] = []
        self.offsets = {HOSTS[0]: 0}

    def any_parent(self) -> RawSpan:
        """An operation under which the next one goes."""
        operations = [span for span in self.spans if "phase" not in span]
        return self.draw(st.sampled_from(operations))

    def offset(self, host: str) -> int:
        """How far a host's clock is ahead of the first host's."""
        if host not in self.offsets:
            self.offsets[host] = self.draw(st.sampled_from(OFFSETS))
        return self.offsets[host]

    def add(self, parent: RawSpan | None, start: int, end: int, **keys: Any) -> RawSpan:
        """One more span; it runs where its parent does unless it says otherwise."""
        name = f"{keys.get('phase', 's')}{len(self.spans)}"
        span: RawSpan = {"id": name, "parent": parent["id"] if parent else None}
        span |= {"start": start, "end": end, "host": parent["host"] if parent else HOSTS[0]}
        span |= keys
        self.spans.append(span)
        return span

    def inside(self, parent: RawSpan) -> tuple[int, int]:
        """An interval in the parent, or, where that is allowed, across its borders or beyond."""
        margin = self.draw(st.sampled_from((0, 0, 0, 5, 25))) if self.overflow else 0
        stamps = st.integers(parent["start"] - margin, parent["end"] + margin)
        start, end = sorted((self.draw(stamps), self.draw(stamps)))
        return start, end

    def cuts(self, start: int, end: int, number: int) -> list[int]:
        """Instants in ascending order, the interval's own ends among them."""
        stamps = st.lists(st.integers(start, end), min_size=number, max_size=number)
        return [start, *sorted(self.draw(stamps)), end]


Shape = Callable[[_Growth, RawSpan], None]


@st.composite
def _grown(draw: DrawFn, max_operations: int, shapes: Sequence[Shape], overflow: bool) -> Case:
    growth = _Growth(draw, overflow)
    root = growth.add(None, 0, draw(st.integers(10, 40)))
    if overflow:
        root |= draw(st.sampled_from(_ROOTS))
    for _ in range(draw(st.integers(0, max_operations))):
        draw(st.sampled_from(shapes))(growth, growth.any_parent())
    return Case("example", "call", "ms", spans=growth.spans)


_ROOTS: Final[Sequence[Json]] = (
    {},
    {"op": "invoke_agent"},
    {"op": "chat", "stream": True, "first_useful_content": 5},
    {"events": [{"name": events.LLMLAT_FIRST_CONTENT, "at": 10}]},
)


# ── Shapes of operations ─────────────────────────────────────────────────────────────────────────


def _local(growth: _Growth, parent: RawSpan) -> None:
    growth.add(parent, *growth.inside(parent))


def _tool(growth: _Growth, parent: RawSpan) -> None:
    op = growth.draw(st.sampled_from(("execute_tool", "retrieval", "invoke_agent")))
    call_id = growth.draw(st.sampled_from(CALL_IDS))
    growth.add(parent, *growth.inside(parent), op=op, call_id=call_id)


def _one_way(growth: _Growth, parent: RawSpan) -> None:
    start, end = growth.inside(parent)
    growth.add(parent, start, end + growth.draw(st.integers(0, 50)), **{"async": True})


def _remote_child(growth: _Growth, parent: RawSpan) -> None:
    _callee(growth, parent, parent["start"], parent["end"] - parent["start"])


def _rpc(growth: _Growth, parent: RawSpan) -> None:
    start, end = growth.inside(parent)
    call = growth.add(parent, start, end, kind="client", rpc=growth.draw(st.booleans()))
    _callee(growth, call, start, end - start)


def _inference(growth: _Growth, parent: RawSpan) -> None:
    start, end = growth.inside(parent)
    call = growth.add(parent, start, end, kind="client", op="chat", boundary="client")
    _describe_inference(growth, call)
    if growth.draw(st.booleans()):
        _callee(growth, call, start, end - start)


def _through_a_gateway(growth: _Growth, parent: RawSpan) -> None:
    """An inference whose engine nobody saw: its report went through the gateway that was."""
    start, end = growth.inside(parent)
    call = growth.add(parent, start, end, kind="client", op="chat", boundary="client")
    _describe_inference(growth, call)
    taken = {phase: growth.draw(_TAKEN) for phase in ("queue", "prefill", "decode")}
    call["reported"], call["bounded"] = taken, ["queue"]
    gateway = _callee(growth, call, start, end - start, boundary="gateway")
    for _ in range(growth.draw(st.sampled_from((1, 1, 1, 2)))):
        first, last = growth.inside(gateway)
        keys = growth.draw(st.sampled_from(_OUTCOMES))
        upstream = growth.add(
            gateway, first, last, kind="client", op="chat", boundary="gateway", **keys
        )
        begun, received = growth.cuts(first, last, 2)[1:-1]
        phases = {"upstream": (begun, received), "upstream_stream": (received, last)}
        _add_phases(growth, upstream, phases)


def _attempts(growth: _Growth, parent: RawSpan) -> None:
    start, end = growth.inside(parent)
    call = growth.add(parent, start, end, kind="client", op="chat", boundary="client", stream=True)
    for number in (1, 2):
        first, last = growth.inside(call)
        outcome = growth.draw(st.sampled_from(_OUTCOMES))
        attempt = growth.add(call, first, last, kind="client", attempt=number, **outcome)
        _describe_inference(growth, attempt)
        if growth.draw(st.booleans()):
            _callee(growth, attempt, first, last - first)


_OUTCOMES: Final[Sequence[Json]] = (
    {},
    {"error": True},
    {"cancelled": True},
    {"cancelled": True, "lost": True},
)


_TAKEN: Final = st.integers(0, 30)
_REPORTS: Final = st.one_of(
    st.fixed_dictionaries(
        {"queue": st.just(2), "prefill": _TAKEN, "decode": st.just(4)},
        optional={"upstream": _TAKEN},
    ),
    st.fixed_dictionaries({"tokenize": st.just(1), "queue": _TAKEN}, optional={"upstream": _TAKEN}),
    st.fixed_dictionaries({"queue": _TAKEN, "prefill": _TAKEN}),
    st.fixed_dictionaries({"upstream": _TAKEN}),
)
"""Of an engine, of a gateway before it, or of both; the whole of it, or a part."""


def _describe_inference(growth: _Growth, call: RawSpan) -> None:
    """Client phases as spans or as durations, what the peer reported, and what it asked for."""
    sent, received, useful, last = growth.cuts(call["start"], call["end"], 4)[1:-1]
    phases = {
        "send": (call["start"], sent),
        "wait": (sent, received),
        "first_content": (received, useful),
        "stream": (useful, last),
        "finalize": (last, call["end"]),
    }
    if growth.draw(st.booleans()):
        call["stream"] = growth.draw(st.booleans())
        call["first_useful_content"] = useful
        call["first_is_tool_call"] = growth.draw(st.booleans())
    if growth.draw(st.booleans()):
        at, call_id = (
            growth.draw(st.integers(received, last)),
            growth.draw(st.sampled_from(CALL_IDS)),
        )
        call["events"] = [{"name": events.LLMLAT_TOOL_CALL, "at": at, "call_id": call_id}]
    if growth.draw(st.sampled_from((False, False, True))):
        call["consumer"] = growth.draw(st.integers(0, last - received))
    if growth.draw(st.booleans()):
        call["reported"] = growth.draw(_REPORTS)
        call["bounded"] = [each for each in ("upstream", "queue") if each in call["reported"]]
    _add_phases(growth, call, phases)


def _callee(
    growth: _Growth, caller: RawSpan, start: int, length: int, boundary: str | None = ""
) -> RawSpan:
    """The other side of a call, on its own clock, mostly a little shorter than the caller."""
    host = growth.draw(st.sampled_from(HOSTS))
    begins = start + growth.draw(st.integers(0, 3)) + growth.offset(host)
    ends = begins + max(0, length + growth.draw(st.integers(-6, 2)))
    if boundary == "":
        boundary = growth.draw(st.sampled_from(("engine", "gateway", None)))
    keys = {"boundary": boundary} if boundary else {}
    callee = growth.add(caller, begins, ends, kind="server", host=host, **keys)
    if boundary and growth.draw(st.booleans()):
        names = _PHASES[boundary]
        cuts = growth.cuts(begins, ends, len(names))
        _add_phases(growth, callee, dict(zip(names, pairwise(cuts), strict=False)))
    return callee


_PHASES: Final[Mapping[str, Sequence[str]]] = {
    "engine": ("tokenize", "queue", "prefill", "decode", "detokenize"),
    "gateway": ("admission", "route", "upstream", "upstream_stream", "relay"),
}


def _add_phases(growth: _Growth, operation: RawSpan, phases: Mapping[str, tuple[int, int]]) -> None:
    """Each as a span, as a duration on the operation, or not at all; empty ones are absent."""
    for phase, (start, end) in phases.items():
        form = growth.draw(st.sampled_from(("span", "span", "duration", "absent")))
        if start == end or form == "absent":
            continue
        if form == "span":
            growth.add(operation, start, end, phase=phase, host=operation["host"])
        else:
            operation.setdefault("phases", {})[phase] = end - start


_SHAPES: Final[Sequence[Shape]] = (
    *(_local, _local, _tool, _one_way),
    *(_remote_child, _rpc, _inference, _inference, _attempts, _through_a_gateway),
)


# ── Links and damage ─────────────────────────────────────────────────────────────────────────────


def _operations(case: Case) -> list[Json]:
    return [span for span in case.spans if "phase" not in span]


@st.composite
def _with_follows(draw: DrawFn, case: Case) -> Case:
    """True ones only: the predecessor had ended when its sibling began."""
    pairs = [
        {"from_span": after["id"], "to_span": before["id"], "type": LinkRelationship.FOLLOWS.value}
        for after in _operations(case)
        for before in _operations(case)
        if before["parent"] == after["parent"] is not None
        and before["end"] <= after["start"] < after["end"]
    ]
    links = draw(st.lists(st.sampled_from(pairs), max_size=3, unique_by=str)) if pairs else []
    return replace(case, links=links)


@st.composite
def _with_links(draw: DrawFn, case: Case) -> Case:
    """Between any two operations, whether or not it makes sense."""
    ids = st.sampled_from([span["id"] for span in _operations(case)])
    kinds = st.sampled_from([relationship.value for relationship in LinkRelationship])
    link = st.fixed_dictionaries({"from_span": ids, "to_span": ids, "type": kinds})
    return replace(case, links=draw(st.lists(link, max_size=3)))


@st.composite
def _with_damage(draw: DrawFn, case: Case) -> Case:
    spans = [dict(span) for span in case.spans]
    for _ in range(draw(st.integers(1, 3))):
        victim = draw(st.sampled_from(spans))
        draw(st.sampled_from(_DAMAGE))(draw, victim, spans)
    return replace(case, spans=spans)


def _orphaned(draw: DrawFn, victim: RawSpan, spans: list[RawSpan]) -> None:
    victim["parent"] = draw(st.sampled_from(("absent", "gone")))


def _under_another(draw: DrawFn, victim: RawSpan, spans: list[RawSpan]) -> None:
    """Any other, itself and its own descendants included."""
    victim["parent"] = draw(st.sampled_from(spans))["id"]


def _ends_early(draw: DrawFn, victim: RawSpan, spans: list[RawSpan]) -> None:
    victim["end"] = victim["start"] - draw(st.integers(1, 10))


def _no_time(draw: DrawFn, victim: RawSpan, spans: list[RawSpan]) -> None:
    """Relative to the trace's start in milliseconds: both are long before 2000."""
    victim[draw(st.sampled_from(("start", "end")))] = draw(st.sampled_from((-(10**12), -(2**41))))


def _second_of_one_id(draw: DrawFn, victim: RawSpan, spans: list[RawSpan]) -> None:
    """CLIENT and SERVER may share an id; anything else is two accounts of one span."""
    twin = victim | {"kind": draw(st.sampled_from(("client", "server", "internal")))}
    twin["end"] += draw(st.integers(0, 3))
    spans.append(twin)


def _relabelled(draw: DrawFn, victim: RawSpan, spans: list[RawSpan]) -> None:
    """The same span came by two ways, one of which said otherwise where it ran."""
    spans.append(victim | {"host": draw(st.sampled_from(HOSTS))})


def _second_root(draw: DrawFn, victim: RawSpan, spans: list[RawSpan]) -> None:
    victim["parent"] = None


_DAMAGE: Final = (
    *(_orphaned, _under_another, _ends_early),
    *(_no_time, _second_of_one_id, _second_root, _relabelled),
)
