"""Draws a finished trace for a terminal: waterfall, both paths, what dominated, findings."""

from llmlat_processor.views.terminal.drawing import render

__all__ = ["render"]
