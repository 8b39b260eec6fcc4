"""The least of an HTTP client: its own time is not to be taken for that of the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit


class Connection:
    """One connection to a server, on which one request after another is made."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, url: str) -> Connection:
        """Connect to the server of a URL."""
        place = urlsplit(url)
        return cls(*await asyncio.open_connection(place.hostname, place.port))

    async def post(self, path: str, headers: Mapping[str, str], content: str) -> None:
        """Ask, in one write, and wait for the whole answer.

        Raises:
            ConnectionError: the answer is no success.
        """
        said = {"host": "tools", "content-length": str(len(content)), **headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in said.items())
        self._writer.write(f"POST {path} HTTP/1.1\r\n{lines}\r\n{content}".encode())
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        if not head.startswith("http/1.1 200"):
            raise ConnectionError(head.splitlines()[0])
        await self._reader.readexactly(int(head.partition("content-length:")[2].split()[0]))

    def close(self) -> None:
        """Hang up."""
        self._writer.close()
