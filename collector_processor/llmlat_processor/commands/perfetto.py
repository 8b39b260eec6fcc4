"""`--perfetto OUT`: finished traces as one file for ui.perfetto.dev; `-` is standard output."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TextIO

from llmlat_processor.model import ExplainedTrace
from llmlat_processor.views.perfetto import chrome_trace

STDOUT: Final = "-"
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
    drawn = json.dumps(chrome_trace(traces))
    if target == STDOUT:
        out.write(drawn)
        return "wrote standard output"
    try:
        Path(target).write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise OSError(f"{target}: {error.strerror}") from error
    return f"wrote {target}; drop it on {VIEWER}"
