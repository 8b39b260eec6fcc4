"""The single values of a config file: how each is read of text, and what an editor may know of it.

Every one of them may also be a reference to a variable, which an editor cannot see through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Final

from pydantic import PlainValidator, WithJsonSchema

from llmlat_processor.config import endpoints, units
from llmlat_processor.config.variables import told

_SWITCHES: Final = {
    "on": True,
    "true": True,
    "yes": True,
    "off": False,
    "false": False,
    "no": False,
}
HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_SENT: Final = re.compile(r"[\t\x20-\x7e]*")
_MOST: Final = 10**9

_REFERENCE: Final[Mapping[str, object]] = {"type": "string", "pattern": r"\$\{env:"}

Json = dict[str, object]


def _read(what: str, read: Callable[[str], object], *, is_secret: bool = False) -> PlainValidator:
    """A validator that names the value in what it says, unless that is a secret."""

    def validate(value: object) -> object:
        if not isinstance(value, str):
            kind = "a mapping" if isinstance(value, dict) else "a list"
            raise ValueError(f"{what} is expected, and this is {kind}")  # noqa: TRY004 - pydantic's
        try:
            return read(value)
        except ValueError as error:
            raise ValueError(f"{'it' if is_secret else told(value)} {error}") from None

    return PlainValidator(validate)


def _or_reference(*known: Json) -> WithJsonSchema:
    return WithJsonSchema({"anyOf": [*known, dict(_REFERENCE)]})


def _some(read: Callable[[str], int]) -> Callable[[str], int]:
    """The same, but not nothing."""

    def read_some(text: str) -> int:
        value = read(text)
        if value < 1:
            raise ValueError("is too little; it has to be more than nothing")
        return value

    return read_some


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text) or not 1 <= int(text) <= _MOST:
        raise ValueError("is not a whole number of at least 1")
    return int(text)


def _switch(text: str) -> bool:
    if text.lower() not in _SWITCHES:
        raise ValueError("is neither on nor off")
    return _SWITCHES[text.lower()]


def _file(text: str) -> Path:
    if not text or not text.isprintable():
        raise ValueError("is no path")
    if text.startswith("~"):
        raise ValueError("begins with ~, which is not read here; write ${env:HOME} in its place")
    return Path(text)


def _secret(text: str) -> str:
    if not _SENT.fullmatch(text):
        raise ValueError("holds a line break, or a character that no header carries")
    return str(text)


def _headers(value: object) -> Mapping[str, str]:
    """Names in small letters, as gRPC asks for; no value is ever told."""
    if isinstance(value, str):
        raise ValueError(f"{told(value)} is not name=value,name=value")  # noqa: TRY004 - pydantic's
    if not isinstance(value, Mapping):
        raise ValueError("a mapping of names to values is expected")  # noqa: TRY004 - pydantic's
    for name, content in value.items():
        if not isinstance(name, str) or not HEADER.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a header")
        if not isinstance(content, str) or not _SENT.fullmatch(content):
            raise ValueError(f"the value of {name!r} is none that a header carries")
    return {str(name).lower(): str(content) for name, content in value.items()}


def one_of(kind: type[Enum]) -> PlainValidator:
    """Reads a value of an enum."""
    known = {str(member.value): member for member in kind}
    listed = ", ".join(known)

    def read(text: str) -> Enum:
        if text not in known:
            raise ValueError(f"is none of {listed}")
        return known[text]

    return _read(f"one of {listed}", read)


def offered(kind: type[Enum]) -> WithJsonSchema:
    """The same, for an editor."""
    return _or_reference({"enum": [member.value for member in kind]})


_DURATION: Final[Json] = {"type": "string", "pattern": f"^({units.DURATION})$"}
_SIZE: Final[tuple[Json, ...]] = (
    {"type": "string", "pattern": f"^({units.SIZE})$"},
    {"type": "integer", "minimum": 1},
)

Pause = Annotated[
    int, _read("a duration", units.duration_ns), _or_reference(_DURATION, {"const": 0})
]
"""Nanoseconds; may be 0."""
Duration = Annotated[int, _read("a duration", _some(units.duration_ns)), _or_reference(_DURATION)]
"""Nanoseconds; more than 0."""
Size = Annotated[int, _read("a size", _some(units.size_bytes)), _or_reference(*_SIZE)]
"""Bytes; more than 0."""
Count = Annotated[
    int, _read("a whole number", _count), _or_reference({"type": "integer", "minimum": 1})
]
Switch = Annotated[
    bool,
    _read("on or off", _switch),
    _or_reference({"type": "boolean"}, {"enum": list(_SWITCHES)}),
]
File = Annotated[Path, _read("a path", _file), WithJsonSchema({"type": "string"})]
Secret = Annotated[
    str, _read("text", _secret, is_secret=True), WithJsonSchema({"type": ["string", "number"]})
]
Headers = Annotated[
    Mapping[str, str],
    PlainValidator(_headers),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number"]}}),
]
Listening = Annotated[
    endpoints.Endpoint,
    _read("host:port", endpoints.listener),
    WithJsonSchema({"type": "string"}),
]
Sending = Annotated[
    endpoints.Endpoint,
    _read("host:port or a URL", endpoints.destination),
    WithJsonSchema({"type": "string"}),
]
