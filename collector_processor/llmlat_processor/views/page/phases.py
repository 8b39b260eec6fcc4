"""What the paths consist of by phase, and a what-if control for each: one change at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from llmlat_processor.model import RootPaths
from llmlat_processor.schedule import Operation, Schedule
from llmlat_processor.views.page.markup import NOTHING, across, amount, share, swatch, text
from llmlat_processor.views.page.told import Preset
from llmlat_processor.views.wording import CAVEAT, Answer
from llmlat_semconv.phases import Phase

STEP: Final = 5
MOST: Final = 200
"""Of a control, in per cent of what was observed."""

EXACT_BELOW: Final = 2**53
"""A larger number is written as a string: JSON's readers may round it."""

_PHASES: Final = frozenset(phase.value for phase in Phase)


def draw_phases(
    paths: RootPaths, schedule: Schedule | None, preset: Preset | None, number: str
) -> Iterator[str]:
    """The table of phases with their controls, and what they work on.

    Args:
        paths: of the root.
        schedule: of the root; None leaves the controls out, as does a path without phases.
        preset: where a control stands at first.
        number: tells this root's ids from another's.
    """
    labels = _labels(paths)
    if not any(_can_change(label, paths) for label in labels):
        schedule = None
    has_controls = schedule is not None
    yield f'<div class="what-if" data-whole="{paths.root.duration_ns}">'
    if schedule is not None:
        yield from _result(number)
    yield '<table class="phases"><caption>By phase</caption><thead><tr>'
    yield '<th scope="col">Phase</th><th scope="col" class="num">To the end</th>'
    yield '<th scope="col" class="num">Share</th>'
    if paths.ttft is not None:
        yield '<th scope="col" class="num">To first content</th>'
        yield '<th scope="col" class="num">Share</th>'
    if has_controls:
        yield '<th scope="col" class="control">What if it took</th>'
    yield "</tr></thead><tbody>"
    for label in labels:
        yield _line(paths, label, has_controls, preset, number)
    yield "</tbody></table></div>"
    if schedule is not None:
        yield f'<script type="application/json">{schedule_json(schedule)}</script>'


def draw_answers(answers: Sequence[Answer]) -> Iterator[str]:
    """The what-ifs that were asked on the command line."""
    if not answers:
        return
    yield '<table class="answers"><caption>What if, as asked</caption><thead><tr>'
    yield '<th scope="col">Asked</th>'
    for heading in ("Saves", "At least", "At most", "Then takes"):
        yield f'<th scope="col" class="num">{heading}</th>'
    yield "</tr></thead><tbody>"
    for at, answer in enumerate(answers):
        row = f'<tr data-at="/what_if.{at}"><th scope="row"><code>{text(answer.asked)}</code></th>'
        for key in ("saves_ns", "saves_low_ns", "saves_high_ns", "duration_ns"):
            row += f'<td class="num">{amount(getattr(answer, key), key)}</td>'
        yield f"{row}</tr>"
    yield f'</tbody></table><p class="quiet">{CAVEAT}</p>'


def schedule_json(schedule: Schedule) -> str:
    """A schedule as JSON that is safe inside a script element, as reschedule.js reads it."""
    rows = [_packed(operation) for operation in schedule.operations]
    written = json.dumps(rows, separators=(",", ":"))  # ASCII only
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _packed(one: Operation) -> list[object]:
    before = [
        [
            edge.sibling,
            _exact(edge.at_ns),
            None
            if edge.clipped is None
            else [[number, label, _exact(size)] for number, label, size in edge.clipped],
        ]
        for edge in one.before
    ]
    pieces = {
        label: [[_exact(start), _exact(end)] for start, end in stretches]
        for label, stretches in one.pieces.items()
    }
    stamps = [one.start_ns, one.until_ns, one.length_ns, one.epsilon_ns]
    return [*map(_exact, stamps), one.joined, one.ended, before, one.callee, pieces]


def _exact(number: int) -> int | str:
    return number if abs(number) < EXACT_BELOW else str(number)


def _result(number: str) -> Iterator[str]:
    """What a change would have done; empty until a control is moved."""
    yield '<div class="result" hidden><h3>What if a phase had taken another time</h3>'
    yield f'<output class="said" id="said-{number}" aria-live="polite" aria-atomic="true"></output>'
    yield '<div class="then" aria-hidden="true"><i class="was"></i><i class="new"></i>'
    yield '<i class="range"></i></div>'
    yield '<button type="button" class="reset" disabled>Reset</button>'
    yield '<p class="how">One at a time: moving a control sets the others back to 100&nbsp;%. '
    yield f"{CAVEAT.capitalize()}.</p></div>"


def _labels(paths: RootPaths) -> list[str]:
    ttft = paths.ttft.totals_ns if paths.ttft is not None else {}
    return [label.value for label in dict.fromkeys([*paths.e2e.totals_ns, *ttft])]


def _line(
    paths: RootPaths, label: str, has_controls: bool, preset: Preset | None, number: str
) -> str:
    row = f'<tr class="total"><th scope="row" id="p-{number}-{label}">{swatch(label)}</th>'
    for key, path in (("e2e", paths.e2e), ("ttft", paths.ttft)):
        if path is None:
            continue
        totals = {one.value: size for one, size in path.totals_ns.items()}
        if label not in totals:
            row += f'<td class="num quiet">{NOTHING}</td><td></td>'
            continue
        size = totals[label]
        bar = across(size, path.duration_ns)
        row += f'<td class="num">{amount(size, f"{key}.totals_ns.{label}")}</td>'
        row += f'<td class="num share" style="--share:{bar}">{share(size, path.duration_ns)}</td>'
    if has_controls:
        row += _control(label, paths, preset, number)
    return f"{row}</tr>"


def _can_change(label: str, paths: RootPaths) -> bool:
    return label in _PHASES and any(one.value == label for one in paths.e2e.totals_ns)


def _control(label: str, paths: RootPaths, preset: Preset | None, number: str) -> str:
    """A range of per cents; what has no length of its own to change has none."""
    if not _can_change(label, paths):
        return '<td class="control quiet"></td>'
    value = round(preset.factor * 100) if preset is not None and preset.label == label else 100
    said = f"{label}: what if it took another time, in per cent of what was observed"
    return (
        f'<td class="control"><input type="range" min="0" max="{MOST}" step="{STEP}" '
        f'value="{value}" data-label="{label}" aria-label="{said}" '
        f'aria-describedby="said-{number}" autocomplete="off" disabled>'
        f"<output>{value}&nbsp;%</output></td>"
    )
