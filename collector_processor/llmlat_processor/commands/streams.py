"""What a subcommand may print on a stream."""

from __future__ import annotations

import os
import stat
from typing import IO


def carries_unicode(out: IO[str]) -> bool:
    """Tell whether box drawings can be written; elsewhere ASCII stands in for them."""
    return (getattr(out, "encoding", None) or "utf-8").lower().startswith("utf")


def is_file(out: IO[str]) -> bool:
    """Tell whether what is written is kept and not looked at: neither a terminal nor a pipe."""
    try:
        return stat.S_ISREG(os.fstat(out.fileno()).st_mode)
    except OSError:  # it has no descriptor
        return False
