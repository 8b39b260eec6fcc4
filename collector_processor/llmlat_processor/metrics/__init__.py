"""Counts what was found in traces and what the processor does; pure, bounded, and cheap."""
