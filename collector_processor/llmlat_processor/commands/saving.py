"""Writes what was drawn where the user wants it: in a file, or on standard output."""

from __future__ import annotations

from pathlib import Path
from typing import Final, TextIO

STDOUT: Final = "-"


def save_text(text: str, target: str, out: TextIO) -> str:
    """Write a text.

    Args:
        text: all of it.
        target: a path, or `-` for `out`.
        out: standard output.

    Returns:
        Where it is now, for a person.

    Raises:
        OSError: it cannot be written there; the message names the file.
    """
    if target == STDOUT:
        out.write(text)
        return "standard output"
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise OSError(f"{target}: {error.strerror}") from error
    return target
