"""What a case file claims: each key of `expected` as lines that must be found in the outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tests.cases import clock_claims
from tests.cases.case_format import Case, Json
from tests.cases.claim import Claim, Lines, Reader
from tests.cases.outcome import Outcome


def claims_of(case: Case, expected: Json, root: str | None = None) -> Iterator[Claim]:
    """All claims of `expected`.

    Raises:
        ValueError: for a key that nobody knows: a claim that is never checked is worse than none.
    """
    for key, value in expected.items():
        if key in _READERS:
            yield from _READERS[key](case, value, root)
        elif key not in _REMARKS:
            raise ValueError(f"{case.name}: nobody checks the key {key!r} of `expected`")


# Not claims about this processor: prose, what other tools say, and what other keys read.
_REMARKS: Final = {
    *("note", "property", "upstream_observed", "naive_subtraction_at_50"),
    *("algorithm", "sections", "non_blocking"),
}


def _paths(case: Case, value: Json, root: str | None) -> Iterator[Claim]:
    for name, expected in value.items():
        yield from claims_of(case, expected, name)


# ── Both paths ───────────────────────────────────────────────────────────────────────────────────


def _path(which: str) -> Reader:
    def read(case: Case, value: Any, root: str | None) -> Iterator[Claim]:
        if value is None:
            yield Claim(which, ["none"], lambda o: ["none"] * (o.path(which, root) is None))
        elif isinstance(value, list):
            yield from _sections(case, which, value, root)
        elif "null" in value:
            yield from _ttft_reason(case, value["null"], root)
        else:
            yield from _placed_sections(case, which, value, root)

    return read


def _sections(case: Case, which: str, value: list[Json], root: str | None) -> Iterator[Claim]:
    """Forward, as `of`, `label` and `amount`; the evidence is compared where it is given."""
    said = [f"{s['of']} {s['label']} {case.written(s['amount'])}" for s in value]
    yield Claim(which, said, lambda o: [o.section_line(s) for s in o.sections(which, root)])
    evidence = [f"{s['of']} {s['label']} {s['evidence']}" for s in value if "evidence" in s]
    stated = {tuple(line.split()[:2]) for line in evidence}
    if evidence:
        yield Claim(
            f"evidence of {which}",
            evidence,
            lambda o: [
                line
                for line in map(o.evidence_line, o.sections(which, root))
                if tuple(line.split()[:2]) in stated
            ],
        )


def _placed_sections(case: Case, which: str, value: Json, root: str | None) -> Iterator[Claim]:
    """In reverse, as `span`, `label` and where the section lies."""
    said = [
        f"{s['span']} {s['label']} {case.written(s['start'])}..{case.written(s['end'])}"
        for s in reversed(value["segments"])
    ]
    yield Claim(which, said, lambda o: [o.placed_line(s) for s in o.sections(which, root)])
    if "total" in value:
        yield from _total(which)(case, value["total"], root)
    for name in (*value.get("non_blocking", ()), *value.get("dropped", ())):
        yield _is_off_path(name)


def _ttft_reason(case: Case, value: str, root: str | None) -> Iterator[Claim]:
    def found(outcome: Outcome) -> Lines:
        reason = outcome.root(root).ttft_absence
        return [reason.value if reason else "there is a path"]

    yield Claim("why there is no ttft", [value], found)


def _total(which: str) -> Reader:
    def read(case: Case, value: float, root: str | None) -> Iterator[Claim]:
        said = [case.written(value)]
        yield Claim(f"total of {which}", said, lambda o: [o.total(which, root)])

    return read


def _totals(which: str) -> Reader:
    def read(case: Case, value: Json, root: str | None) -> Iterator[Claim]:
        said = _amounts(case, value)
        yield Claim(f"totals of {which}", said, lambda o: o.totals(which, root))

    return read


def _dominant_phase(case: Case, value: str, root: str | None) -> Iterator[Claim]:
    def found(outcome: Outcome) -> Lines:
        dominant = outcome.root(root).e2e.dominant
        return [dominant.value if dominant else "none"]

    yield Claim("dominant phase", [value], found)


def _contributions(case: Case, value: Json, root: str | None) -> Iterator[Claim]:
    """Totals by span and label."""
    yield Claim("contributions", _amounts(case, value), lambda o: o.contributions(root))


def _transit(case: Case, value: Json, root: str | None) -> Iterator[Claim]:
    """Only the sum of both legs is known: each lies between nothing and all of it."""
    legs = [f"{leg} {low}..{high}" for leg in ("request", "response") for low, high in [value[leg]]]
    said = [f"sum {case.written(value['sum'])}", *legs]

    def found(outcome: Outcome) -> Lines:
        total = outcome.transit(root)
        return [f"sum {total}", f"request 0..{total}", f"response 0..{total}"]

    yield Claim("transit", said, found)


def _number_of_sections(case: Case, value: int, root: str | None) -> Iterator[Claim]:
    yield Claim("sections", [str(value)], lambda o: [str(len(o.sections("e2e", root)))])


def _edges(case: Case, value: Json, root: str | None) -> Iterator[Claim]:
    """`before > after`: how it is known that one waited for the other."""
    said = [f"{edge} {evidence}" for edge, evidence in value.items()]
    yield Claim("edges", said, lambda o: [f"{edge} {o.edge(edge, root)}" for edge in value])


# ── Findings ─────────────────────────────────────────────────────────────────────────────────────


def _findings(case: Case, value: list[Json], root: str | None) -> Iterator[Claim]:
    """Exactly these findings; amount and interval are compared where the file gives one."""
    amounts, intervals = (
        frozenset((raw["kind"], _of(raw)) for raw in value if key in raw)
        for key in ("amount", "interval")
    )
    said = sorted(_finding(case, raw) for raw in value)
    yield Claim("findings", said, lambda o: o.findings(amounts, intervals))


def _finding(case: Case, raw: Json) -> str:
    amount = f" {case.written(raw['amount'])}" if "amount" in raw else ""
    interval = ""
    if "interval" in raw:
        interval = f" in {clock_claims.interval_line(case, raw['interval'])}"
    return f"{raw['kind']} of {_of(raw)}{amount}{interval}"


def _of(raw: Json) -> str:
    return str(raw["of"] if "of" in raw else raw["span"])


def _finding_alone(case: Case, value: Json, root: str | None) -> Iterator[Claim]:
    yield from _findings(case, [value], root)


def _complete(case: Case, value: bool, root: str | None) -> Iterator[Claim]:
    yield Claim("complete", [str(value)], lambda o: [str(o.explained.trace.complete)])


def _off_path(case: Case, value: Json, root: str | None) -> Iterator[Claim]:
    """Off both paths, with the finding that says why."""
    for name, kind in value.items():
        yield _is_off_path(name)
        why = f"{kind} of {name}"
        yield Claim(f"why {name} is off the path", [why], _only(why))


def _only(line: str) -> Callable[[Outcome], Lines]:
    return lambda o: [found for found in o.findings(frozenset()) if found == line]


def _is_off_path(name: str) -> Claim:
    return Claim(f"{name} is off the path", [], lambda o: [name] * o.is_on_a_path(name))


# ── Beside the paths ─────────────────────────────────────────────────────────────────────────────


def _slack(case: Case, value: Json, root: str | None) -> Iterator[Claim]:
    said = _amounts(case, value)
    yield Claim("slack", said, lambda o: sorted(f"{name} {o.slack(name)}" for name in value))


def _off_path_work(case: Case, value: Json, root: str | None) -> Iterator[Claim]:
    said = _amounts(case, value)
    yield Claim("hidden", said, lambda o: sorted(f"{name} {o.hidden(name)}" for name in value))


def _retry_waste(case: Case, value: float, root: str | None) -> Iterator[Claim]:
    yield Claim("retry waste", [case.written(value)], lambda o: [o.retry_waste(root)])


def _overlap(case: Case, value: Json, root: str | None) -> Iterator[Claim]:
    yield Claim("ledger", _amounts(case, value), lambda o: o.ledger(root))


def _between_attempts(case: Case, value: float, root: str | None) -> Iterator[Claim]:
    """Unobserved time of the operations that have attempts."""
    callers = {span["parent"] for span in case.spans if "attempt" in span}
    said = [f"{caller}/unobserved {case.written(value)}" for caller in callers]
    yield Claim(
        "between attempts",
        said,
        lambda o: [line for line in o.contributions(root) if line.split("/")[0] in callers],
    )


# ── What-if ──────────────────────────────────────────────────────────────────────────────────────


def _what_if(case: Case, value: list[Json], root: str | None) -> Iterator[Claim]:
    """`saves` and `bound`: how much earlier the root ends; `end`, `ends`: when it ends."""
    for change in value:
        said = [
            f"{key} {' .. '.join(case.written(amount) for amount in amounts)}"
            for key in ("saves", "bound", "end", "ends")
            if key in change
            for amounts in [change[key] if isinstance(change[key], list) else [change[key]]]
        ]
        yield Claim(f"what if {_change(change)}", said, _results(change))


def _results(change: Json) -> Callable[[Outcome], Lines]:
    return lambda o: [line for line in o.what_if(change) if line.split()[0] in change]


def _change(change: Json) -> str:
    amount = f"x {change['factor']:.4g}" if "factor" in change else f"{change['by']:+}"
    return " ".join([change.get("of", "any"), change.get("phase", "as a whole"), amount])


def _amounts(case: Case, value: Json) -> Lines:
    return sorted(f"{key} {case.written(amount)}" for key, amount in value.items())


_READERS: Final[Mapping[str, Reader]] = {
    "paths": _paths,
    "e2e": _path("e2e"),
    "path": _path("e2e"),
    "ttft": _path("ttft"),
    "ttft_reason": _ttft_reason,
    "total": _total("e2e"),
    "totals": _totals("e2e"),
    "ttft_total": _total("ttft"),
    "ttft_totals": _totals("ttft"),
    "dominant_phase": _dominant_phase,
    "e2e_contributions": _contributions,
    "transit": _transit,
    "edges": _edges,
    "number_of_sections": _number_of_sections,
    "findings": _findings,
    "anomalies": _findings,
    "violations": clock_claims.violations,
    "finding": _finding_alone,
    "complete": _complete,
    "off_path": _off_path,
    "slack": _slack,
    "off_path_work": _off_path_work,
    "retry_waste": _retry_waste,
    "overlap": _overlap,
    "unobserved_between_attempts": _between_attempts,
    "what_if": _what_if,
    "offset": clock_claims.offsets,
    "offset_interval": clock_claims.only_offset,
    "residual_transit": clock_claims.residual_transit,
    "verdict": clock_claims.verdict,
    "jaeger_point": clock_claims.jaeger_point,
}
