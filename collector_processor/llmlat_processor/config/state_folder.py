"""Where a processor keeps its state if nobody says where: the folder that the system has for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

NAME: Final = "llmlat-processor"


def state_folder(environ: Mapping[str, str]) -> Path | None:
    """`$XDG_STATE_HOME/llmlat-processor`, else below the home; None where there is no home.

    Args:
        environ: variables; a relative `XDG_STATE_HOME` is none, as its specification says.
    """
    if environ.get("XDG_STATE_HOME", "").startswith("/"):
        return Path(environ["XDG_STATE_HOME"], NAME)
    home = environ.get("HOME", "")
    return Path(home, ".local", "state", NAME) if home else None
