"""`llmlat doctor`: what is timed, where spans go, what went wrong, and what to do about it."""

from llmlat_otel.doctor.command import main

__all__ = ["main"]
