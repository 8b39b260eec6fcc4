"""What a subcommand may print on a stream."""

from __future__ import annotations

from typing import IO


def carries_unicode(out: IO[str]) -> bool:
    """Tell whether box drawings can be written; elsewhere ASCII stands in for them."""
    return (getattr(out, "encoding", None) or "utf-8").lower().startswith("utf")
