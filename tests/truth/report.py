"""What the truth test reports: tables of one scenario, goals of all, and both as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from bench.report import Goal, Table
from llmlat_semconv.values import FindingKind
from tests.truth.comparison import Attribution, Comparison, OffsetCheck
from tests.truth.drift import DriftCheck
from tests.truth.scenarios import STEPPED, Scenario

BEGIN: Final = "<!-- BEGIN of what `make truth` has measured -->"
END: Final = "<!-- END of what `make truth` has measured -->"

_DELAYS: Final = ("delay, ms", "injected", "by the wire", "attributed", "error", "worst", "limit")
_CLOCKS: Final = ("clock minus the app's, ms", "truth", "interval around it", "inside")
_FINDINGS: Final = ("finding", "expected", "found")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One scenario with all that was compared; `drift` is empty where none is claimed."""

    comparison: Comparison
    drift: tuple[DriftCheck, ...] = ()

    @property
    def scenario(self) -> Scenario:
        """Which one."""
        return self.comparison.scenario

    @property
    def is_wrong(self) -> bool:
        """Whether a truth is outside its interval, or an expected finding is missing."""
        offsets, findings = self.comparison.offsets, self.comparison.findings
        are_inside = [
            *(each.is_inside for each in offsets),
            *(each.is_inside for each in self.drift),
        ]
        return not all(are_inside) or findings.missing > 0


def tables(outcome: Outcome) -> list[Table]:
    """The tables of one scenario."""
    comparison = outcome.comparison
    made = [
        Table("delays", _DELAYS, [_delay_row(each) for each in comparison.delays]),
        Table("clocks", _CLOCKS, list(_clock_rows(comparison))),
    ]
    if findings := list(_finding_rows(comparison)):
        made.append(Table("findings", _FINDINGS, findings))
    if outcome.drift:
        columns = ("gained on the app's clock, ppm", "truth", "interval", "traces")
        made.append(Table("drift", columns, [_drift_row(each) for each in outcome.drift]))
    return made


def goals(outcomes: Sequence[Outcome]) -> list[Goal]:
    """What had to be met, over all scenarios that were run."""
    offsets = [check for outcome in outcomes for check in outcome.comparison.offsets]
    findings = [outcome.comparison.findings for outcome in outcomes]
    shares = [each.share for outcome in outcomes for each in outcome.comparison.delays]
    made = [
        Goal("delay_error_of_its_limit", 100 * max(shares, default=0), 100, "%"),
        _all("offsets_inside", sum(each.is_inside for each in offsets), len(offsets)),
        _all(
            "expected_findings",
            sum(sum(each.found.values()) for each in findings),
            sum(sum(each.expected.values()) for each in findings),
        ),
        Goal("unexpected_findings", sum(sum(e.unexpected.values()) for e in findings), 0, ""),
    ]
    steps = [each for each in findings if STEPPED in each.expected]
    if steps:
        made.append(_all("steps_found", sum(e.found.get(STEPPED, 0) for e in steps), len(steps)))
    if drifts := [check for outcome in outcomes for check in outcome.drift]:
        made.append(_all("drift_inside", sum(each.is_inside for each in drifts), len(drifts)))
        made.append(_all("drift_seen", int(any(each.is_seen for each in drifts)), 1))
    return made


def markdown(outcomes: Sequence[Outcome], made_with: str) -> str:
    """All tables, for docs/truth.md."""
    parts = [f"Measured with {made_with}."]
    for outcome in outcomes:
        parts.append(f"### {outcome.scenario.name}\n\n{_sentence(outcome)}")
        parts += [_markdown_table(table) for table in tables(outcome)]
    lines = "\n".join(map(str, goals(outcomes)))
    parts.append(f"### Goals\n\n```text\n{lines}\n```")
    return "\n\n".join(parts)


def put_into(page: str, tables_of_all: str) -> str:
    """A page with these tables in the place of those between its marks.

    Raises:
        ValueError: the page has no such place.
    """
    begin, end = page.find(BEGIN), page.find(END)
    if not 0 <= begin < end:
        raise ValueError(f"no lines {BEGIN!r} and {END!r} in that order")
    return f"{page[: begin + len(BEGIN)]}\n\n{tables_of_all}\n\n{page[end:]}"


def as_json(outcome: Outcome) -> dict[str, object]:
    """One scenario for a program: all times in ns, trace by trace."""
    comparison = outcome.comparison
    found = comparison.findings
    return {
        "scenario": outcome.scenario.name,
        "traces": comparison.traces,
        "stalled": comparison.stalled,
        "delays": [_delay_json(each) for each in comparison.delays],
        "offsets": [{**asdict(each), "inside": each.is_inside} for each in comparison.offsets],
        "findings": {
            "expected": _by_name(found.expected.items()),
            "found": _by_name(found.found.items()),
            "unexpected": _by_name(found.unexpected.items()),
        },
        "drift": [{**asdict(each), "inside": each.is_inside} for each in outcome.drift],
    }


# ── Rows ─────────────────────────────────────────────────────────────────────────────────────────


def _delay_row(each: Attribution) -> list[str]:
    """The trace with the median error, and the worst error of all."""
    worst = max(each.errors_ns, key=abs)
    delay = each.injected[each.middle]
    return [
        each.where,
        _ms(delay.injected_ns),
        _ms(delay.held_ns) if delay.held_ns else "",
        _ms(each.attributed_ns[each.middle]),
        f"{each.error_ns / 1e6:+.2f}",
        f"{worst / 1e6:+.2f}",
        _ms(each.limit_ns),
    ]


def _clock_rows(comparison: Comparison) -> Iterator[list[str]]:
    """Per clock the trace in which the truth comes closest to an end of its interval."""
    for host in comparison.scenario.hosts[1:]:
        for wall in (False, True):
            checks = [each for each in comparison.offsets if (each.host, each.wall) == (host, wall)]
            if not checks:
                continue
            closest = min(checks, key=_margin)
            inside = sum(each.is_inside for each in checks)
            yield [
                f"{host}, {_kind(comparison.scenario, host, wall=wall)}",
                f"{closest.true_ns / 1e6:+,.3f}",
                _around(closest),
                f"{inside}/{len(checks)}",
            ]


def _kind(scenario: Scenario, host: str, *, wall: bool) -> str:
    if wall:
        return "wall"
    return "wall against monotonic" if scenario.is_plain(host) else "monotonic"


def _margin(check: OffsetCheck) -> float:
    return float("inf") if check.margin_ns is None else check.margin_ns


def _around(check: OffsetCheck) -> str:
    low_ns, high_ns = check.interval
    low = "open" if low_ns is None else f"{(low_ns - check.true_ns) / 1e6:+.3f}"
    high = "open" if high_ns is None else f"{(high_ns - check.true_ns) / 1e6:+.3f}"
    return f"{low} … {high}"


def _finding_rows(comparison: Comparison) -> Iterator[list[str]]:
    found = comparison.findings
    for kind, count in found.expected.items():
        yield [kind.value, str(count), str(found.found.get(kind, 0))]
    for kind, count in found.unexpected.items():
        yield [kind.value, "0", str(count)]


def _drift_row(check: DriftCheck) -> list[str]:
    interval = f"{check.low_ppb / 1e3:+.1f} … {check.high_ppb / 1e3:+.1f}"
    return ["engine, wall", f"{check.true_ppb / 1e3:+.1f}", interval, str(check.traces)]


def _sentence(outcome: Outcome) -> str:
    says = outcome.scenario.says
    comparison = outcome.comparison
    left_out = f"; {comparison.stalled} more left out" if comparison.stalled else ""
    return f"{says[0].upper()}{says[1:]}. {comparison.traces} traces{left_out}."


def _markdown_table(table: Table) -> str:
    head = f"| {' | '.join(table.columns)} |"
    rule = "|---" + "|---:" * (len(table.columns) - 1) + "|"
    rows = [f"| {' | '.join(map(str, row))} |" for row in table.rows]
    return "\n".join([head, rule, *rows])


def _delay_json(each: Attribution) -> dict[str, object]:
    return {
        "where": each.where,
        "injected_ns": [delay.injected_ns for delay in each.injected],
        "held_ns": [delay.held_ns for delay in each.injected],
        "attributed_ns": list(each.attributed_ns),
        "limit_ns": each.limit_ns,
    }


def _by_name(counts: Iterable[tuple[FindingKind, int]]) -> dict[str, int]:
    return {kind.value: count for kind, count in counts}


def _all(name: str, value: int, limit: int) -> Goal:
    return Goal(name, value, limit, "", at_least=True)


def _ms(duration_ns: float) -> str:
    return f"{duration_ns / 1e6:.2f}"
