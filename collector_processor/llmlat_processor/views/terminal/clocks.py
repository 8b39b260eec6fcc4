"""Writes what is known of the clocks, and how both sides of a call saw its first content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from llmlat_processor.model import FirstContent
from llmlat_processor.views.terminal import theme
from llmlat_processor.views.terminal.theme import Page, duration, fit, paragraph, short
from llmlat_processor.views.wording import Clock, ClockMap

SHOWN_CLOCKS: Final = 12
SHOWN_FIRST_CONTENTS: Final = 12
SHOWN_SERVICES: Final = 3

TITLE: Final = "Clocks, and how far each is ahead of (+) or behind (-) the root's"

ROOM_FOR_COLUMNS: Final = 70
"""On narrower lines what is said of a clock stands below its name."""


def draw_clocks(clocks: ClockMap, left_out: int, page: Page) -> Iterator[Text]:
    """Write each clock with its offset from the root's; nothing where there is only one."""
    if not clocks.clocks:
        return
    shown = clocks.clocks if page.everything else _most_telling(clocks.clocks)
    whose = [_whose(clock, page) for clock in shown]
    where = [clock.where(page.glyphs.micro) for clock in shown]
    yield Text(paragraph(TITLE.split(), page, indent=0), theme.HEADING)
    most = page.width // 3 if page.width >= ROOM_FOR_COLUMNS else 0
    name = max((cells for cells in map(cell_len, whose) if cells <= most), default=0)
    room = (name, max(map(len, where)))
    for clock, *said in zip(shown, whose, where, strict=True):
        yield from _clock(clock, said, room, page)
    if len(shown) < len(clocks.clocks):
        yield Text(f"  and {len(clocks.clocks) - len(shown):,} more", theme.QUIET)
    if left_out:
        yield Text(f"  nothing is said of {left_out:,} clocks beyond these", theme.QUIET)


def _most_telling(clocks: Sequence[Clock]) -> Sequence[Clock]:
    """As many as are shown, in their order: the root's, contradicted ones, and those far off."""

    def weight(clock: Clock) -> tuple[bool, bool, int]:
        return not clock.is_reference, not clock.is_contradicted, -clock.at_least_ns

    chosen = {id(clock) for clock in sorted(clocks, key=weight)[:SHOWN_CLOCKS]}
    return [clock for clock in clocks if id(clock) in chosen]


def _clock(clock: Clock, said: Sequence[str], room: tuple[int, int], page: Page) -> Iterator[Text]:
    """`vllm (gpu-1)  +4.98 s .. +5.01 s   30.0 ms wide   4 messages   infeasible_offset`."""
    whose, where = said
    known = [*_width(clock, page), _count(clock.offset.messages)]
    found = f"{page.glyphs.warning} {', '.join(kind.value for kind in clock.found)}"
    if cell_len(whose) > room[0]:
        yield Text(paragraph(whose.split(), page), theme.SERVICE)
        line = Text(paragraph([where, *known], page, page.glyphs.separator, indent=4))
    else:
        line = Text("  ").append(fit(whose, room[0], page.glyphs), theme.SERVICE)
        line.append(f"  {where:<{room[1]}}")
        rest = f"  {page.glyphs.separator.join(known)}"
        if line.cell_len + len(rest) > page.width:
            line.rstrip()
            yield line
            line, rest = Text("    "), rest.lstrip()
        line.append(rest, theme.QUIET)
    if clock.found and line.cell_len + 2 + len(found) <= page.width:
        yield line.append(f"  {found}", theme.WARNING)
        return
    yield line
    if clock.found:
        yield Text(paragraph(found.split(), page, indent=4), theme.WARNING)


def _whose(clock: Clock, page: Page) -> str:
    services = [short(one, page) for one in clock.services[:SHOWN_SERVICES]]
    if len(clock.services) > SHOWN_SERVICES:
        services.append(f"{len(clock.services) - SHOWN_SERVICES:,} more")
    where = clock.host or (f"in {clock.within}" if clock.within else "")
    return f"{', '.join(services)} ({short(where, page)})" if where else ", ".join(services)


def _width(clock: Clock, page: Page) -> list[str]:
    width_ns = clock.width_ns
    return [] if width_ns is None else [f"{duration(width_ns, page.glyphs)} wide"]


def _count(messages: int) -> str:
    return f"{messages:,} message{'' if messages == 1 else 's'}"


def draw_first_contents(seen: Sequence[FirstContent], page: Page) -> Iterator[Text]:
    """Write of each call when its first content was there, as its callee and as its caller saw it.

    Both are durations, each by its own clock.
    """
    if not seen:
        return
    yield Text("First content, as both sides of a call saw it", theme.HEADING)
    shown = seen if page.everything else seen[:SHOWN_FIRST_CONTENTS]
    for one in shown:
        yield Text(paragraph(_first_content(one, page), page, page.glyphs.separator))
    if len(shown) < len(seen):
        yield Text(f"  and {len(seen) - len(shown):,} more", theme.QUIET)


def _first_content(seen: FirstContent, page: Page) -> list[str]:
    glyphs = page.glyphs
    callee, caller = (short(span.resource.service, page) for span in (seen.callee, seen.call))
    return [
        f"{short(seen.call.name, page)}: {callee} {duration(seen.server_ns, glyphs)}",
        f"{caller} {duration(seen.client_ns, glyphs)}",
        f"both ways between them {duration(seen.transit_ns, glyphs)}",
    ]
