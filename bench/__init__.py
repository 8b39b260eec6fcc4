"""Measurements: what the processor and the SDK cost, against their goals, in CPU time."""
