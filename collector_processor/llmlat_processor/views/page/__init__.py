"""One self-contained page of finished traces: HTML that reads without script, fonts or network."""

from llmlat_processor.views.page.drawing import page
from llmlat_processor.views.page.phases import MOST, STEP
from llmlat_processor.views.page.told import Preset, Told

__all__ = ["MOST", "STEP", "Preset", "Told", "page"]
