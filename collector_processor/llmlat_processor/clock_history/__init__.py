"""What is known of clocks across traces: no I/O, no time; messages in, intervals out."""

from llmlat_processor.clock_history.history import ClockHistory
from llmlat_processor.clock_history.pair import Became
from llmlat_processor.clock_history.saved import NotAHistoryError, from_bytes, to_bytes
from llmlat_processor.clock_history.settings import DEFAULTS, HistorySettings

__all__ = [
    "DEFAULTS",
    "Became",
    "ClockHistory",
    "HistorySettings",
    "NotAHistoryError",
    "from_bytes",
    "to_bytes",
]
