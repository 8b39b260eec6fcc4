"""What the views for people say in the same words."""

from llmlat_processor.views.wording.clocks import (
    Clock,
    ClockMap,
    Limit,
    by_weight,
    meaning,
    size,
)
from llmlat_processor.views.wording.intervals import ahead, interval
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
    "ahead",
    "by_weight",
    "duration",
    "interval",
    "meaning",
    "percent",
    "printable",
    "size",
    "spare",
    "spared",
]
