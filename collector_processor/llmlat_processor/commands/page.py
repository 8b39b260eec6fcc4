"""`--html OUT`: finished traces as one page in a file; `-` is standard output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TextIO

from llmlat_processor.commands.output import NO_ANSWERS, AnswersByRoot
from llmlat_processor.commands.saving import save_text
from llmlat_processor.commands.what_if import Supposition
from llmlat_processor.model import ExplainedTrace, Span
from llmlat_processor.schedule import Schedule
from llmlat_processor.stages.critical_path.schedules import schedules
from llmlat_processor.views.page import MOST, STEP, Preset, Told, page


def told(
    explained: ExplainedTrace,
    plans: Mapping[Span, Schedule] | None = None,
    answers: AnswersByRoot = NO_ANSWERS,
    suppositions: Sequence[Supposition] = (),
) -> Told:
    """What the page is told of a trace; the first what-if that a control can say is set there.

    Args:
        explained: the trace.
        plans: the schedules of its roots; None makes them.
        answers: the what-ifs that were asked, answered.
        suppositions: the same as they were asked.
    """
    presets = (_preset(one) for one in suppositions)
    return Told(
        explained,
        schedules(explained.aligned) if plans is None else plans,
        answers,
        next((preset for preset in presets if preset is not None), None),
    )


def save(traces: Sequence[Told], target: str, out: TextIO) -> str:
    """Write the page.

    Args:
        traces: at least one.
        target: a path, or `-` for `out`.
        out: standard output.

    Returns:
        What was done, for a person.

    Raises:
        OSError: it cannot be written there.
    """
    drawn = page(traces)
    name = save_text(drawn, target, out)
    count, size = len(traces), _size(len(drawn.encode()))
    return f"wrote {name} ({count:,} trace{'s' if count != 1 else ''}, {size})"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1_000_000 else f"{max(count // 1000, 1)} kB"


def _preset(asked: Supposition) -> Preset | None:
    """A control knows factors of a phase wherever it is, in steps."""
    if asked.phase is None or asked.is_for_one or asked.factor is None:
        return None
    percent = asked.factor * 100
    if percent > MOST or percent != round(percent) or round(percent) % STEP:
        return None
    return Preset(asked.phase.value, asked.factor)
