"""The only place that wires edges to the window and the window to the pipeline.

watch     spans in, finished traces out
forward   spans in, the same spans out with what was learned of them
fetch     a trace that a Jaeger holds
"""

from llmlat_processor.edges.jaeger import fetch
from llmlat_processor.service.explaining import UNEXPLAINED
from llmlat_processor.service.forwarding import Processor, forward
from llmlat_processor.service.watching import Watcher, watch

__all__ = ["UNEXPLAINED", "Processor", "Watcher", "fetch", "forward", "watch"]
