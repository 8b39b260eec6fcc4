"""Response bodies with an interface of their own, that tell of their reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from llmlat_otel.core.guard import guarded
from llmlat_otel.core.wrapping import Proxy

_TARGET: Final = "body"


def _told(name: str) -> Any:
    """A method that tells when it has read."""

    async def read(self: ReadableBody, *args: Any, **kwargs: Any) -> Any:
        data = await getattr(self.__wrapped__, name)(*args, **kwargs)
        guarded(_TARGET, self._self_received)
        return data

    return read


def _lent(name: str) -> Any:
    """A method that reads by others of this object, in the place of those of the body."""

    def iterate(self: ReadableBody, *args: Any, **kwargs: Any) -> Any:
        return getattr(type(self.__wrapped__), name)(self, *args, **kwargs)

    return iterate


class ReadableBody(Proxy):
    """aiohttp's `StreamReader`, which can be read in many ways, and tells of each read.

    Args:
        wrapped: The library's own body.
        received: Some of it has been read, or all; it is called under the guard.
    """

    readany = _told("readany")
    readchunk = _told("readchunk")
    readexactly = _told("readexactly")
    readline = _told("readline")
    readuntil = _told("readuntil")

    __aiter__ = _lent("__aiter__")
    iter_any = _lent("iter_any")
    iter_chunked = _lent("iter_chunked")
    iter_chunks = _lent("iter_chunks")

    _self_read = _told("read")
    _self_read_all = _lent("read")

    def __init__(self, wrapped: Any, received: Callable[[], object]) -> None:
        super().__init__(wrapped)
        self._self_received = received

    def read(self, n: int = -1) -> Any:
        """All of it is read bit by bit, and the first bit counts."""
        return self._self_read_all(n) if n < 0 else self._self_read(n)

    def read_nowait(self, *args: Any, **kwargs: Any) -> Any:
        """What is there already."""
        data = self.__wrapped__.read_nowait(*args, **kwargs)
        guarded(_TARGET, self._self_received)
        return data
