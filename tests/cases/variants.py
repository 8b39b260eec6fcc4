"""Which files the processor is held to, and which variants of a trace a file describes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from llmlat_processor.model import Assumptions
from tests.cases.case_format import EXACT, Case, Json
from tests.cases.case_rows import phase_at


class Standing(Enum):
    """What a file is to us."""

    HELD = "held by the processor"
    JAEGER = "what Jaeger does, reproduced by tests/compat"
    DATA = "what other tools say: data only"


@dataclass(frozen=True, slots=True)
class Variant:
    """A trace to process, with what to assume and what to expect.

    Attributes:
        name: of the file, and of the variant where there are several.
        case: with `expected` in the words that `claims_of` knows.
        assumptions: tolerances.
    """

    name: str
    case: Case
    assumptions: Assumptions = EXACT


# Families whose `expected` speaks of this processor.
_OURS: Final = frozenset(
    {"call", "proposal_clock", "proposal_path", "property", "upstream_defect_or_ambiguity"}
)

# Of another family, but it says something about our paths too.
_ALSO_OURS: Final = "deterministic_under_span_order"

_JAEGER: Final = frozenset({"jaeger_lfc", "jaeger_go", "jaeger_clockskew"})

_FOREIGN: Final = frozenset({"critical_path_upstream", "clock_skew_upstream"})


def standing_of(case: Case) -> Standing:
    """Says what a file is to us.

    Raises:
        ValueError: if its family is unknown.
    """
    if case.family in _OURS or case.name == _ALSO_OURS:
        return Standing.HELD
    if case.family in _FOREIGN:
        return Standing.JAEGER if case.expected["algorithm"] in _JAEGER else Standing.DATA
    raise ValueError(f"{case.name}: unknown family {case.family!r}")


def variants_of(case: Case) -> Iterator[Variant]:
    """The traces of a file that the processor is held to; none for a file that isn't held."""
    if standing_of(case) is not Standing.HELD:
        return
    if case.name in _SPECIAL:
        yield from _SPECIAL[case.name](case)
    elif "proposed" in case.expected:
        yield Variant(case.name, _expecting(case, case.expected["proposed"]))
    else:
        yield Variant(case.name, case)


def _expecting(case: Case, expected: Json) -> Case:
    """Older files put the sections of the only path straight into `expected`."""
    if "segments" not in expected:
        return replace(case, expected=expected)
    rest = {key: value for key, value in expected.items() if key not in _OF_ONE_PATH}
    path = {key: value for key, value in expected.items() if key in _OF_ONE_PATH}
    return replace(case, expected={"e2e": path, **rest})


_OF_ONE_PATH: Final = frozenset({"segments", "total", "non_blocking"})


def _with_spans(case: Case, **changes: Json) -> Case:
    """Adds keys to the spans that are named."""
    spans = [{**span, **changes.get(span["id"], {})} for span in case.spans]
    return replace(case, spans=spans)


# ── Files that say in prose, or by name, how the trace varies ────────────────────────────────────


def _one_tick_overlap(case: Case) -> Iterator[Variant]:
    """B starts a tick before A ends: without tolerance A is no predecessor, with it A is clipped.

    A    |------|
    B          |----|
    """
    exact = case.expected["proposed"]["eps_0"]
    yield Variant(f"{case.name}-eps_0", _expecting(case, exact))
    *after, parent = exact["segments"]
    clipped = {"span": "A", "start": 11, "end": 210, "label": "work"}
    expected = {**exact, "segments": [*after, clipped, {**parent, "end": 11}]}
    one_us = replace(EXACT, resolution_ns=1_000)
    yield Variant(f"{case.name}-eps_1us", _expecting(case, expected), one_us)


def _overflow_both_sides(case: Case) -> Iterator[Variant]:
    proposed = case.expected["proposed"]
    same = _expecting(case, proposed["same_domain"])
    yield Variant(f"{case.name}-same_domain", same)
    pair = _with_spans(
        case, A={"kind": "client", "rpc": True}, B={"kind": "server", "host": "elsewhere"}
    )
    cross = _expecting(pair, proposed["cross_domain_sync_rpc"])
    yield Variant(f"{case.name}-cross_domain_sync_rpc", cross)


def _async_gather(case: Case) -> Iterator[Variant]:
    """f3 waited for f1 only; time alone says that it waited for f2, which ended last before it."""
    proposed = case.expected["proposed"]
    halved = proposed["what_if_f2_half"]
    by_time = dict(proposed["timestamps_only"])
    by_time["edges"] = {"f2 > f3": by_time.pop("edge_f2_f3")}
    by_time["what_if"] = _halving("f2", halved["timestamps_only"])
    yield Variant(f"{case.name}-timestamps_only", _expecting(replace(case, links=()), by_time))
    linked = {**proposed["with_explicit_link_f3_from_f1"], "edges": {"f1 > f3": "explicit"}}
    linked["what_if"] = _halving("f2", halved["with_explicit_link"])
    yield Variant(f"{case.name}-with_explicit_link", _expecting(case, linked))


def _halving(of: str, result: Json) -> list[Json]:
    end, ends = result["headline_end"], result["bound"]
    return [{"of": of, "factor": 0.5, "end": end, "ends": ends}]


def _rescheduled(case: Case) -> Iterator[Variant]:
    """`x50` stands for the tool t1 at half its length: when does the request end?"""
    ends, bounds = case.expected["t1_x"], case.expected["bound"]
    what_if = [
        {"of": "t1", "factor": int(x[1:]) / 100, "end": ends[x], "ends": bounds[x]} for x in ends
    ]
    expected = {"total": case.expected["base"], "what_if": what_if}
    yield Variant(case.name, replace(case, expected=expected))


def _no_useful_content(case: Case) -> Iterator[Variant]:
    """The reasons for having no path to first content, in their order."""
    yield Variant(case.name, case)
    for reason, keys in (
        ("not_streamed", {"op": "chat"}),
        ("chunk_only", {"op": "chat", "stream": True, "first_chunk": 100}),
    ):
        changed = _with_spans(case, L=keys)
        expected = {"ttft": None, "ttft_reason": reason, "e2e": case.expected["e2e"]}
        yield Variant(f"{case.name}-{reason}", replace(changed, expected=expected))


def _chunks(case: Case) -> Iterator[Variant]:
    """Each chunk gives an edge of both sides: it left before it arrived."""
    expected, is_chunk = case.expected, re.compile("chunk").match
    whole = [span for span in case.spans if not is_chunk(span["id"])]
    for name, spans in (("call_only", whole), ("with_chunks", case.spans)):
        offset = {"offset": expected[f"offset_{name}"], "violations": []}
        yield Variant(f"{case.name}-{name}", replace(case, spans=spans, expected=offset))


def _one_coarse_clock(case: Case) -> Iterator[Variant]:
    """The callee is a tick of its own clock longer than the call: impossible, or below its grain.

    Where the grain of both clocks is known, that of the other one (1 ns) counts too.
    """
    kind, amount = case.expected["eps_0"].split()
    exact = {"violations": [{"kind": kind, "pair": "q", "amount": int(amount)}]}
    yield Variant(f"{case.name}-eps_0", _expecting(case, exact))
    granted, measured = case.expected["eps_1"], replace(EXACT, resolution_ns=None)
    nanosecond = 1 / case.unit_ns
    low, high = granted["offset"]["A->B"]
    known = {**granted, "offset": {"A->B": [low - nanosecond, high + nanosecond]}}
    (root,) = (span for span in case.spans if span["id"] == "root")
    edges = {"start": root["start"] - nanosecond, "end": root["end"] + nanosecond}
    fine = _with_spans(case, root=edges)
    declared = _with_spans(fine, q={"resolution": 1})
    yield Variant(f"{case.name}-eps_1_declared", _expecting(declared, known), measured)
    more = [{**_span(f"s{i}", None, 100 + 2 * i, 101 + 2 * i), "host": "B"} for i in range(16)]
    found = replace(fine, spans=[*fine.spans, *more])
    yield Variant(f"{case.name}-eps_1_detected", _expecting(found, known), measured)


def _unset_milestone(case: Case) -> Iterator[Variant]:
    """The phase that would end at a milestone that was never set is left out, and that is said."""
    unset = [
        {"kind": raw["kind"], "span": f"{raw['span']}.{phase_at(milestone)}"}
        for raw in case.expected["violations"]
        for milestone in raw["fields"]
    ]
    path = [{"of": "req", "label": "work", "amount": 500}]
    yield Variant(case.name, _expecting(case, {"violations": unset, "e2e": path}))


def _as_ours(case: Case) -> Iterator[Variant]:
    yield Variant(case.name, _expecting(case, case.expected["ours"]))


def _wide(case: Case) -> Iterator[Variant]:
    """Makes n children of 8 every 10, one after the other: 2n + 1 sections."""
    for n in case.expected["n"]:
        root = _span("root", None, 1, 10 * n + 2)
        children = [_span(f"c{i}", "root", 2 + 10 * i, 10 + 10 * i) for i in range(n)]
        totals = {"unobserved": 2 * n + 1, "work": 8 * n}
        yield _generated(case, n, [root, *children], 2 * n + 1, totals)


def _deep(case: Case) -> Iterator[Variant]:
    """A chain of n operations, each a tick inside the one before on both sides."""
    n = case.expected["n"]
    chain = [_span(f"d{i}", f"d{i - 1}" if i else None, i, 1_000_000 - i) for i in range(n + 1)]
    totals = {"unobserved": 2 * n, "work": 1_000_000 - 2 * n}
    yield _generated(case, n, chain, 2 * n + 1, totals)


def _span(name: str, parent: str | None, start: int, end: int) -> Json:
    return {"id": name, "parent": parent, "start": start, "end": end}


def _generated(
    case: Case, n: int, spans: Sequence[Json], sections: int, totals: Mapping[str, int]
) -> Variant:
    expected = {"number_of_sections": sections, "totals": totals, "total": sum(totals.values())}
    return Variant(f"{case.name}-{n}", replace(case, spans=spans, expected=expected))


_SPECIAL: Final[Mapping[str, Callable[[Case], Iterator[Variant]]]] = {
    "one_tick_overlap": _one_tick_overlap,
    "overflow_both_sides_disagreement": _overflow_both_sides,
    "async_gather_sibling_dependency": _async_gather,
    "agent_what_if_is_rescheduled": _rescheduled,
    "agent_no_useful_content_event": _no_useful_content,
    "deterministic_under_span_order": _as_ours,
    "clock_streaming_chunks_tighten_lower_bound": _chunks,
    "clock_quantisation_tolerance": _one_coarse_clock,
    "clock_zero_default_milestone": _unset_milestone,
    "wide_sequential_scale": _wide,
    "deep_chain_scale": _deep,
}
