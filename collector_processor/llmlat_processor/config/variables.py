"""Environment variables inside a config file: `${env:NAME}`, `${env:NAME:-default}`, and `$$`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

MOST_TOLD: Final = 80

_SECRETS: Final = re.compile(r"(?<=://)[^/@\s]+(?=@)|(?<=\?)\S+")
"""Where a URL has them, that should have none: who asks, and a query."""

_REFERENCE: Final = re.compile(
    r"\$\$|\$\{env:(?P<name>[A-Za-z_]\w*)(?P<default>:-[^{}]*)?\}|(?P<other>\$\{[^}]*\}?)"
)


class Text(str):
    """A scalar of a config file, and how it may be told of in words.

    Attributes:
        told: the scalar as it was written, in quotes, so that no value of a variable is told.
        variable: the variable that stands in for a key of the file; mostly empty.
    """

    __slots__ = ("told", "variable")
    told: str
    variable: str


def text(value: str, written: str = "") -> Text:
    """Make one of the file, told as it was written there."""
    made = Text(value)
    made.told = quoted(written or value)
    made.variable = ""
    return made


def quoted(written: str) -> str:
    """Quotes around it, and not more of it than a line has room for."""
    written = _SECRETS.sub("...", written) if "://" in written else written
    return repr(written if len(written) <= MOST_TOLD else f"{written[:MOST_TOLD]}...")


def of_variable(value: str, variable: str) -> Text:
    """Make one that is not of the file."""
    made = Text(value)
    made.told = f"the value of {variable}"
    made.variable = variable
    return made


def told(value: str) -> str:
    """How a value may be told of in words."""
    return value.told if isinstance(value, Text) else quoted(value)


def substituted(written: str, environ: Mapping[str, str]) -> Text:
    """Put the values of variables in place.

    What is put in is not read again: it can neither hold another reference nor more YAML.

    Raises:
        ValueError: a variable is not there, or a reference is none that is read here.
    """
    if "$" not in written:
        return text(written)
    parts, at = [], 0
    for found in _REFERENCE.finditer(written):
        parts += [written[at : found.start()], _value(found, environ)]
        at = found.end()
    return text("".join(parts) + written[at:], written)


def _value(found: re.Match[str], environ: Mapping[str, str]) -> str:
    if found["other"] is not None:
        raise ValueError(
            f"{quoted(found['other'])} is not read here; write ${{env:NAME}} or "
            "${env:NAME:-default}, and $$ for a dollar sign"
        )
    name, default = found["name"], found["default"]
    if name is None:
        return "$"
    value = environ.get(name, "")
    if value or default is not None:
        return value or default.removeprefix(":-")
    state = "is empty" if name in environ else "is not set"
    raise ValueError(
        f"the environment variable {name} {state}; set it, or write ${{env:{name}:-default}}"
    )
