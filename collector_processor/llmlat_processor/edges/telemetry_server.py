"""What the processor tells of itself, over HTTP: a page for each path, made when it is fetched."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Final

from llmlat_processor.edges.http_health import OPEN
from llmlat_processor.edges.http_protocol import Bounds
from llmlat_processor.edges.http_server import Answer, Asked, HttpServer, told
from llmlat_processor.edges.receiver import is_let_in
from llmlat_processor.settings import Listener

Page = Callable[[str], tuple[int, str, bytes]]
"""Is told what the client accepts; gives a status of HTTP, a content-type and a body.

Called in one thread, page after page.
"""


class TelemetryServer:
    """A server that is listening from the moment it is made.

    Raises:
        OSError: the address cannot be had, or a file of its TLS; the message says what to do.
        ValueError: the address is not a host and a port.
    """

    def __init__(
        self, listener: Listener, routes: Mapping[str, Page], *, bounds: Bounds | None = None
    ) -> None:
        """Bind and serve.

        Args:
            listener: where, with which TLS, and for whom; health is told to everybody.
            routes: the page of each path.
            bounds: of connections; None for the usual ones.
        """
        self._routes = dict(routes)
        self._token = listener.token
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="llmlat-telemetry")
        self._server = HttpServer(listener, self._handle, bounds or Bounds())
        self.address: Final = self._server.address

    def stop(self, grace_s: float = 1.0) -> None:
        """Answer no more."""
        self._server.stop(grace_s)
        self._threads.shutdown()

    async def _handle(self, asked: Asked) -> Answer:
        if asked.path not in OPEN and not is_let_in(self._token, asked.header("authorization")):
            words = "show the token of this endpoint as `Authorization: Bearer`"
            return told(HTTPStatus.UNAUTHORIZED, words, ("www-authenticate", "Bearer"))
        page = self._routes.get(asked.path)
        if page is None:
            paths = ", ".join(self._routes)
            return told(HTTPStatus.NOT_FOUND, f"nothing is told here; there are {paths}")
        if asked.method not in ("GET", "HEAD"):
            words = f"GET {asked.path}"
            return told(HTTPStatus.METHOD_NOT_ALLOWED, words, ("allow", "GET, HEAD"))
        made = asyncio.get_running_loop().run_in_executor(
            self._threads, page, asked.header("accept")
        )
        status, content_type, content = await made
        return Answer(HTTPStatus(status), content, content_type)
