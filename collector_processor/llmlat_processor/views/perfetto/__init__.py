"""Finished traces for ui.perfetto.dev, as the JSON of Chrome's trace events."""

from llmlat_processor.views.perfetto.chrome import Document, chrome_trace

__all__ = ["Document", "chrome_trace"]
