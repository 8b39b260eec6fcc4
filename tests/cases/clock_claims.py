"""What a case file claims of clocks: offsets, what is wrong with the stamps, what Jaeger guesses.

θ of `a->b` is the clock of b minus the clock of a; null where nothing bounds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tests.cases.case_format import Case, Json
from tests.cases.claim import Claim, Lines
from tests.cases.outcome import Outcome
from tests.compat.jaeger_skew import SkewSpan, adjusted

_LEAST_OFFSET: Final = re.compile(r"\|offset\| >= (\d+)")


def interval_line(case: Case, interval: Sequence[float | None]) -> str:
    """`low..high` as the outcome writes it."""
    low, high = ("?" if end is None else case.written(end) for end in interval)
    return f"{low}..{high}"


def offsets(
    case: Case, value: Mapping[str, Sequence[float | None]], _: str | None
) -> Iterator[Claim]:
    """`a->b`, of spans (their clocks) or of domains; without any, nothing bounds any clock."""
    said = [f"{pair} {interval_line(case, interval)}" for pair, interval in value.items()]
    if said:
        yield Claim("offsets", said, lambda o: [f"{pair} {o.offset(pair)}" for pair in value])
    else:
        yield Claim("offsets", [], lambda o: [f"{d} {i}" for d, i in o.offsets() if i != "?..?"])


def only_offset(case: Case, value: Sequence[float], _: str | None) -> Iterator[Claim]:
    """Of the only other clock."""
    said = [interval_line(case, value)]
    yield Claim("the only offset", said, lambda o: [interval for _, interval in o.offsets()])


def residual_transit(case: Case, value: float, root: str | None) -> Iterator[Claim]:
    """What no clock can split: the width of the only offset, and the transit on the path."""
    width = case.written(value)
    yield Claim("width of the offset", [width], lambda o: o.widths())
    yield Claim("transit", [width], lambda o: [o.transit(root)])


def violations(case: Case, value: Sequence[Json], _: str | None) -> Iterator[Claim]:
    """Exactly these findings, but for what an offset of the clocks explains."""
    said = sorted(_violation(case, raw) for raw in value)
    amounts = frozenset(raw["kind"] for raw in value if "amount" in raw)
    yield Claim("violations", said, lambda o: o.violations(amounts))


def _violation(case: Case, raw: Json) -> str:
    if "domains" in raw:
        return f"{raw['kind']} over {', '.join(sorted(raw['domains']))}"
    of = raw["pair"] if "pair" in raw else raw["span"]
    amount = f" {case.written(raw['amount'])}" if "amount" in raw else ""
    return f"{raw['kind']} of {of}{amount}"


def verdict(case: Case, value: str, _: str | None) -> Iterator[Claim]:
    """`feasible`: no violation. Else the one kind that is found, and the least that it takes."""
    yield Claim("violations", [], lambda o: o.violations(frozenset()))
    kind = value.split(maxsplit=1)[0]
    if kind != "feasible":
        yield Claim("kinds of findings", [kind], lambda o: o.kinds())
    if (least := _LEAST_OFFSET.search(value)) is not None:
        yield Claim("least |offset|", [least[1]], lambda o: o.least_offsets())


def jaeger_point(case: Case, value: float, _: str | None) -> Iterator[Claim]:
    """Jaeger moves the callee by so much the other way: one point of the interval."""
    yield Claim("Jaeger's point", [case.written(value)], _jaeger_points)


def _jaeger_points(outcome: Outcome) -> Lines:
    case = outcome.case
    spans = [
        SkewSpan(
            raw["id"],
            raw["parent"],
            case.instant_ns(raw["start"]),
            case.instant_ns(raw["end"]),
            raw.get("host", ""),
        )
        for raw in case.spans
        if "phase" not in raw
    ]
    moved = [each.delta for each in adjusted(spans, max_adjust=10**12) if each.delta]
    return [case.amount(-delta) for delta in moved]
