"""Reads a JSON object field by field; what is missing or of another type is a ValueError."""

from __future__ import annotations

import json
from collections.abc import Mapping


class Fields:
    """An object whose fields are asked for with their types."""

    def __init__(self, read: object) -> None:
        """Take what was read; ValueError where it is no object."""
        if not isinstance(read, dict):
            raise ValueError("there is no JSON object")  # noqa: TRY004 - a fault of the text
        self._read: Mapping[str, object] = read

    @classmethod
    def of_json(cls, text: bytes) -> Fields:
        """The fields of an object in JSON."""
        try:
            return cls(json.loads(text))
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    def number(self, name: str) -> int:
        """A whole number; True is none."""
        found = self._read.get(name)
        if type(found) is not int:
            raise ValueError(f"{name!r} is no number")
        return found

    def text(self, name: str) -> str:
        """A text."""
        return _text(self._read.get(name), name)

    def part(self, name: str) -> Fields:
        """An object."""
        return Fields(self._read.get(name))

    def parts(self, name: str) -> list[Fields]:
        """A list of objects."""
        return [Fields(each) for each in self._list(name)]

    def texts(self, name: str) -> list[str]:
        """A list of texts."""
        return [_text(each, name) for each in self._list(name)]

    def rows(self, name: str) -> list[tuple[str, ...]]:
        """A list of lists of texts."""
        found = self._list(name)
        if not all(isinstance(each, list) for each in found):
            raise ValueError(f"{name!r} is no list of lists")
        return [tuple(_text(one, name) for one in each) for each in found if isinstance(each, list)]

    def _list(self, name: str) -> list[object]:
        found = self._read.get(name)
        if not isinstance(found, list):
            raise ValueError(f"{name!r} is no list")  # noqa: TRY004 - a fault of the text
        return found


def _text(found: object, name: str) -> str:
    if not isinstance(found, str):
        raise ValueError(f"{name!r} is no text")  # noqa: TRY004 - a fault of the text
    return found
