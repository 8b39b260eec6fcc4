"""The only place that wires edges to the window and the window to the pipeline.

run       spans in, the same spans or what is derived of them out, as an operator sets it up
watch     spans in, finished traces out
fetch     a trace that a Jaeger holds
"""

from llmlat_processor.edges.jaeger import fetch
from llmlat_processor.service.explaining import UNEXPLAINED
from llmlat_processor.service.processor import Processor
from llmlat_processor.service.running import run
from llmlat_processor.service.watching import Watcher, watch

__all__ = ["UNEXPLAINED", "Processor", "Watcher", "fetch", "run", "watch"]
