"""`--perfetto OUT`: finished traces as one file for ui.perfetto.dev; `-` is standard output."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TextIO

from llmlat_processor.commands.saving import save_text
from llmlat_processor.model import ExplainedTrace
from llmlat_processor.views.perfetto import chrome_trace

VIEWER: Final = "https://ui.perfetto.dev"


def save(traces: Sequence[ExplainedTrace], target: str, out: TextIO) -> str:
    """Write the file.

    Args:
        traces: at least one.
        target: a path, or `-` for `out`.
        out: standard output.

    Returns:
        What was done, for a person.

    Raises:
        OSError: it cannot be written there.
    """
    name = save_text(json.dumps(chrome_trace(traces)), target, out)
    return f"wrote {name}; drop it on {VIEWER}" if name == target else f"wrote {name}"
