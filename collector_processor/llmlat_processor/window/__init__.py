"""Holds spans until their trace is complete: no clock, no thread, no I/O, and bounded.

window            what is held, and when it is let go; the rest is what it is made of
limits            when, and how much at most
releases          what it lets go, and why
held_trace        one trace that is held
looks             when to look at which trace again
callees           which calls still miss their callee's spans
fan_outs          which leaves of a large trace can go before it
past_traces       what is remembered of traces that have gone
"""

from llmlat_processor.window.held_trace import SPAN_OVERHEAD, bare_size
from llmlat_processor.window.limits import MIB, SECOND_NS, Limits
from llmlat_processor.window.releases import NEVER_HELD, WITHOUT_ROOM, Books, Released, Why
from llmlat_processor.window.window import Window, speaks

__all__ = [
    "MIB",
    "NEVER_HELD",
    "SECOND_NS",
    "SPAN_OVERHEAD",
    "WITHOUT_ROOM",
    "Books",
    "Limits",
    "Released",
    "Why",
    "Window",
    "bare_size",
    "speaks",
]
