"""The middleware of ASGI applications: a span for each request that they answer.

    app = GatewayMiddleware(app)
    app.add_middleware(GatewayMiddleware)

Starlette and FastAPI need neither: `import llmlat_otel.auto` finds them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any, Final

from llmlat_otel.core.guard import guarded

__all__ = ["GatewayMiddleware"]

_TARGET: Final = "asgi"
_IMPLEMENTATION: Final = "llmlat_otel.core.exchanges"

App = Callable[[Any, Any, Any], Awaitable[Any]]


class GatewayMiddleware:
    """Times each HTTP request that an ASGI application answers, until its last byte is sent.

    Nothing is buffered, and nothing that the application or the server sees is another than
    without it. Websockets and lifespan pass untouched. Where a request is timed further out
    already, this one lets it pass.

    Args:
        app: The application, of ASGI 3.
    """

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        """Have the application answer."""
        exchange = guarded(_TARGET, _arrived, self.app, scope, receive, send)
        if exchange is None:
            return await self.app(scope, receive, send)
        return await exchange.run(self.app)


def _arrived(app: App, scope: Any, receive: Any, send: Any) -> Any:
    # What it needs may be missing or broken: the application is to run all the same.
    return import_module(_IMPLEMENTATION).arrived(app, scope, receive, send)
