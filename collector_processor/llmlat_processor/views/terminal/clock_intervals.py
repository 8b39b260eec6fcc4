"""Writes what many traces prove of each pair of clocks, over time, and where one was stepped.

vllm (gpu-1) ahead of (+) or behind (-) adviser (laptop)
  2026-11-30 12:00:41  +4.9987 s .. +5.0012 s  2.43 ms wide
    at a constant rate +4.9991 s .. +5.0003 s · drift -12.4 .. +31 ppm · 1,204 messages, ...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Final, TypeVar

from rich.console import Group
from rich.text import Text

from llmlat_processor.model import Interval
from llmlat_processor.model.clock_history import (
    ClocksOverTime,
    Drift,
    KnownClock,
    PairOverTime,
    Step,
    Stretch,
    WallShift,
    Witness,
)
from llmlat_processor.model.counts import FindingCount
from llmlat_processor.views.terminal import theme
from llmlat_processor.views.terminal.theme import Page, duration, paragraph, printable
from llmlat_processor.views.wording import interval

SHOWN_PAIRS: Final = 20
SHOWN_STRETCHES: Final = 12
SHOWN_STEPS: Final = 6
SHOWN_WITNESSES: Final = 2
SHOWN_FINDINGS: Final = 20
SHORT_DOMAIN: Final = 12

_T = TypeVar("_T")
_NO_SHIFT: Final = WallShift(0, 0)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST_NS: Final = 253_402_300_799 * 10**9
"""The end of the year 9999, which is as far as a calendar goes."""


def draw_clocks_over_time(
    told: ClocksOverTime, width: int, *, unicode: bool = True, everything: bool = False
) -> Group:
    """Draw what a run has learned.

    Args:
        told: of all pairs.
        width: cells of a line.
        unicode: False draws in ASCII.
        everything: True draws every pair, stretch, step and finding, however many.
    """
    page = Page(width, theme.UNICODE if unicode else theme.ASCII, everything)
    lines: list[Text] = []
    shown = _shown(sorted(told.pairs, key=lambda pair: not pair.steps), SHOWN_PAIRS, page)
    names = _names(told.pairs, page)
    for pair in shown:
        lines += [*_pair(pair, names, page), Text()]
    if len(shown) < len(told.pairs):
        lines += [*_more(len(told.pairs) - len(shown), "pairs of clocks", indent=0), Text()]
    if told.findings:
        lines += [*_findings(told.findings, page), Text()]
    lines += _read(told, page)
    return Group(*lines)


def _pair(pair: PairOverTime, names: Mapping[str, str], page: Page) -> Iterator[Text]:
    one, other = names[pair.second.domain], names[pair.first.domain]
    title = f"{one} ahead of (+) or behind (-) {other}"
    yield Text(paragraph(title.split(), page, indent=0), theme.HEADING)
    yield Text(paragraph(_which(pair).split(), page), theme.QUIET)
    shown = _latest(pair.stretches, SHOWN_STRETCHES, page)
    yield from _more(len(pair.stretches) - len(shown), "earlier windows of time")
    rows = list(zip(pair.stretches, pair.shifts, strict=True))
    epoch = shown[0].epoch if shown else 0
    for stretch, shift in rows[len(rows) - len(shown) :]:
        if stretch.epoch != epoch:
            yield Text(f"  {page.glyphs.warning} stepped", theme.WARNING)
            epoch = stretch.epoch
        yield from _stretch(stretch, shift, page)
    steps = _latest(pair.steps, SHOWN_STEPS, page)
    yield from _more(len(pair.steps) - len(steps), "earlier steps")
    for step in steps:
        yield from _step(step, pair, (one, other), page)


def _names(pairs: Sequence[PairOverTime], page: Page) -> dict[str, str]:
    """How each clock is called, by its domain; by more than usual where two are called alike."""
    clocks = {clock.domain: clock for pair in pairs for clock in (pair.first, pair.second)}
    usual = {domain: _name(clock, page, whole=False) for domain, clock in clocks.items()}
    seen = Counter(usual.values())
    return {
        domain: usual[domain] if seen[usual[domain]] == 1 else _name(clock, page, whole=True)
        for domain, clock in clocks.items()
    }


def _name(clock: KnownClock, page: Page, *, whole: bool) -> str:
    """`vllm (gpu-1)`; with the start of the domain's name where nobody says the host."""
    where = [clock.host] if clock.host else []
    if whole:
        where.append(f"clock {clock.domain}")
    elif not clock.host:
        cut = page.glyphs.cut if len(clock.domain) > SHORT_DOMAIN else ""
        where.append(f"clock {clock.domain[:SHORT_DOMAIN]}{cut}")
    services = ", ".join(clock.services) or "no service"
    return printable(f"{services} ({', '.join(where)})", page.glyphs)


def _which(pair: PairOverTime) -> str:
    """Whose clocks the rows are of."""
    kinds = {pair.first.is_monotonic, pair.second.is_monotonic}
    if None in kinds:
        return "their own clocks, as learned before; which they are is not said in these files"
    if True not in kinds:
        return "wall clocks, the only ones that are known of them"
    return "wall clocks; proved of their own clocks, of which one or both are monotonic"


def _stretch(stretch: Stretch, shift: WallShift | None, page: Page) -> Iterator[Text]:
    micro = page.glyphs.micro
    known = stretch.interval if shift is None else shift.of(stretch.interval)
    line = Text("  ").append(_instant(stretch.at_ns, shift), theme.QUIET)
    line.append(f"  {interval(known, micro) or 'not bounded'}")
    line.append(f"  {_width(known, page)}", theme.QUIET)
    line.rstrip()
    yield line
    yield Text(
        paragraph(_beside(stretch, shift, page), page, page.glyphs.separator, 4), theme.QUIET
    )


def _beside(stretch: Stretch, shift: WallShift | None, page: Page) -> list[str]:
    """What else is known of a window of time."""
    micro = page.glyphs.micro
    said = [] if shift is not None else ["as their own clocks read"]
    shift = shift or _NO_SHIFT
    known = interval(shift.of(stretch.interval), micro)
    steady = "" if stretch.steady is None else interval(shift.of(stretch.steady), micro)
    if shift != _NO_SHIFT:
        said.append(f"own clocks {interval(stretch.interval, micro)}")
    if stretch.steady is None:
        said.append("no constant rate fits")
    elif steady != known:
        said.append(f"at a constant rate {steady}")
    if stretch.drift is not None:
        said.append(f"drift {_drift(stretch.drift)}")
    said.append(f"{_count(stretch.messages, 'message')} of {_count(stretch.traces, 'trace')}")
    return said


def _instant(at_ns: int, shift: WallShift | None) -> str:
    """`2026-11-30 12:00:41`, UTC; a reading of a clock without a calendar in seconds."""
    wall_ns = at_ns + (0 if shift is None else shift.first_ns)
    if shift is None or not 0 <= wall_ns <= _LAST_NS:
        return f"at {at_ns / 10**9:,.3f} s"
    return f"{_EPOCH + timedelta(seconds=wall_ns // 10**9):%Y-%m-%d %H:%M:%S}"


def _width(known: Interval, page: Page) -> str:
    low_ns, high_ns = known
    if low_ns is None or high_ns is None:
        return ""
    return f"{duration(high_ns - low_ns, page.glyphs)} wide"


def _drift(drift: Drift) -> str:
    """`-12.4 .. +31 ppm`, rounded outwards."""
    low, high = drift.low_ppb // 100, -(-drift.high_ppb // 100)
    return f"{_ppm(low)} .. {_ppm(high)} ppm"


def _ppm(tenths: int) -> str:
    whole, rest = divmod(abs(tenths), 10)
    sign = "-" if tenths < 0 else "+" if tenths else ""
    return f"{sign}{whole}.{rest}" if rest else f"{sign}{whole}"


def _step(step: Step, pair: PairOverTime, of: tuple[str, str], page: Page) -> Iterator[Text]:
    shift = next((one for one in reversed(pair.shifts) if one is not None), None)
    when = " and ".join(_instant(at_ns, shift) for at_ns in (step.after_ns, step.by_ns))
    least = interval(Interval(abs(step.amount_ns), None), page.glyphs.micro).replace("+", "")
    moved = "moved ahead" if step.amount_ns > 0 else "moved back"
    went = f"{of[0]} {moved} against {of[1]} by {least}"
    words = f"{page.glyphs.warning} clock_step: {went} between {when}"
    yield Text(paragraph(words.split(), page), theme.WARNING)
    for side, witnesses in (("before", step.before), ("since then", step.since)):
        yield Text(f"    {side}", theme.QUIET)
        for witness in _shown(witnesses, SHOWN_WITNESSES, page):
            yield Text(paragraph(_witness(witness), page, indent=6), theme.QUIET)


def _witness(witness: Witness) -> list[str]:
    spans = f"span {witness.left.hex()} to {witness.arrived.hex()}"
    return [f"trace {witness.trace_id.hex()}", spans]


def _findings(findings: Sequence[FindingCount], page: Page) -> Iterator[Text]:
    yield Text("Findings in single traces", theme.HEADING)
    shown = _shown(findings, SHOWN_FINDINGS, page)
    for row in shown:
        services = [printable(one, page.glyphs) for one in (row.caller, row.callee) if one]
        line = Text(f"  {row.total:>7,}  {row.kind.value}  ", theme.WARNING)
        yield line.append(" to ".join(services), theme.SERVICE)
    yield from _more(len(findings) - len(shown), "kinds and pairs of services")


def _read(told: ClocksOverTime, page: Page) -> Iterator[Text]:
    """How much was read, what of it was not used, and what was assumed."""
    said = [_count(told.traces, "trace")]
    said += [
        f"{count:,} messages {kind.replace('_', ' ')}" for kind, count in told.messages.items()
    ]
    if told.left_out:
        said.append(f"nothing is said of {told.left_out:,} clocks beyond these")
    yield Text(paragraph(said, page, page.glyphs.separator, indent=0), theme.QUIET)
    words = (
        f"assumed: two clocks part by at most {told.drift_ppm} ppm, and keep their rates for "
        f"{told.window_ns / 10**9:g} s where it says a constant rate; UTC"
    )
    yield Text(paragraph(words.split(), page, indent=0), theme.QUIET)


def _count(number: int, of: str) -> str:
    return f"{number:,} {of}{'' if number == 1 else 's'}"


def _shown(all_of_it: Sequence[_T], most: int, page: Page) -> Sequence[_T]:
    return all_of_it if page.everything else all_of_it[:most]


def _latest(all_of_it: Sequence[_T], most: int, page: Page) -> Sequence[_T]:
    return all_of_it if page.everything else all_of_it[-most:]


def _more(count: int, what: str, indent: int = 2) -> Iterator[Text]:
    if count:
        yield Text(f"{' ' * indent}and {count:,} more {what}", theme.QUIET)
