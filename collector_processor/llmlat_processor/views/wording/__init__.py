"""What the views for people say in the same words."""

from llmlat_processor.views.wording.clocks import Clock, ClockMap, Limit, against_caller, granted
from llmlat_processor.views.wording.intervals import interval, offset
from llmlat_processor.views.wording.plain import (
    ABSENCES,
    CAVEAT,
    MICRO,
    PLAIN_WORDS,
    Answer,
    duration,
    percent,
    printable,
    spare,
    spared,
)

__all__ = [
    "ABSENCES",
    "CAVEAT",
    "MICRO",
    "PLAIN_WORDS",
    "Answer",
    "Clock",
    "ClockMap",
    "Limit",
    "against_caller",
    "duration",
    "granted",
    "interval",
    "offset",
    "percent",
    "printable",
    "spare",
    "spared",
]
