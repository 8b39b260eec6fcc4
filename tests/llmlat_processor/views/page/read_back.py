"""Reads the JSON document back out of a page: every `<data>`, and every marked text."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final

Flat = dict[str, set[str]]
"""Per dotted key of the document, what stands in the page: the same, wherever it is repeated."""

_VOID: Final = frozenset({"meta", "input", "br", "link", "img"})


class _Reader(HTMLParser):
    """Keeps the `data-at` of every open element, and the text of the innermost marked one."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: Flat = {}
        self.tags: list[str] = []
        self._open: list[tuple[str, str, str | None]] = []
        self._texts: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        said = {key: value or "" for key, value in attrs}
        where = self._open[-1][1] if self._open else ""
        at = said.get("data-at")
        if at is not None:
            where = at[1:] if at.startswith("/") else f"{where}.{at}".lstrip(".")
        if "data-span" in said:
            self._find(where, "span_id", said["data-span"])
        if said.get("data-is"):
            self._find(where, said["data-is"], said["value"])
        if tag in _VOID:
            return
        key = said.get("data-text")
        self._open.append((tag, where, key))
        if key is not None:
            self._texts.append([])

    def handle_endtag(self, tag: str) -> None:
        opened, where, key = self._open.pop()
        assert opened == tag, f"</{tag}> closes <{opened}>"
        if key is not None:
            self._find(where, key, "".join(self._texts.pop()))

    def handle_data(self, data: str) -> None:
        if self._texts:
            self._texts[-1].append(data)

    def close(self) -> None:
        super().close()
        assert not self._open, f"left open: {self._open}"

    def _find(self, where: str, key: str, value: str) -> None:
        self.found.setdefault(f"{where}.{key}".lstrip("."), set()).add(value)


def read_page(html: str) -> Flat:
    """What a page of one trace says, by the keys of its document; fails on unclosed elements."""
    return _read(html).found


def tags_of(html: str) -> list[str]:
    """Every element of a page in order."""
    return _read(html).tags


def _read(html: str) -> _Reader:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader


def flat(document: object, where: str = "") -> Iterator[tuple[str, str]]:
    """Numbers and texts of a document by dotted key; no booleans, nothing that is absent."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from flat(value, f"{where}.{key}".lstrip("."))
    elif isinstance(document, list):
        for at, value in enumerate(document):
            yield from flat(value, f"{where}.{at}")
    elif isinstance(document, (int, str)) and not isinstance(document, bool):
        yield where, str(document)
