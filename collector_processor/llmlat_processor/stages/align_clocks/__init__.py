"""Clocks: each operation on its own, what is proved of their offsets, and what cannot be.

In the order in which they are read best:

    placement     which clock stamps for an operation, and where it stands on it
    edges         what a caller and a callee know of one exchange: sent, first output, last byte
    messages      these as messages between clocks, each of which left before it arrived
    elapsed       how long after the trace's start that can have been: clocks drift
    contradictions, appearances, steps      what cannot be, what only seems so, what was stepped
    alignment     the stage
"""

from llmlat_processor.stages.align_clocks.alignment import align_clocks

__all__ = ["align_clocks"]
