"""What the page is told: finished traces, their schedules, and the what-ifs that were asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from llmlat_processor.model import ExplainedTrace, Span
from llmlat_processor.schedule import Schedule
from llmlat_processor.views.wording import Answer


class Preset(NamedTuple):
    """Where a what-if control stands when the page opens."""

    label: str
    factor: float


@dataclass(frozen=True, slots=True)
class Told:
    """One trace of the page.

    Attributes:
        explained: the finished trace.
        schedules: per root, what its what-ifs are answered from.
        answers: per root, the what-ifs that were asked on the command line.
        preset: where the control of one phase stands at first; None leaves all as observed.
    """

    explained: ExplainedTrace
    schedules: Mapping[Span, Schedule]
    answers: Mapping[Span, Sequence[Answer]] = field(default_factory=dict)
    preset: Preset | None = None
