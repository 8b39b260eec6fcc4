"""A server of the rig: an application on port 8000 of its host, and what the host saw of it."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from importlib import import_module
from typing import Any

import uvicorn

from tests.truth.hosts.record import Record
from tests.truth.hosts.variables import PORT
from tests.truth.marks import ARRIVED, ENDED, marks_in

Message = MutableMapping[str, Any]
Application = Callable[[Message, Any, Any], Awaitable[None]]


class Stamped:
    """An application around which the rig notes when a request arrived and what was sent when.

    It stands outside of all that the SDK times, reads marks and changes nothing.
    """

    def __init__(self, application: Application, record: Record) -> None:
        self._application = application
        self._record = record

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        """Serve."""
        arrived_ns = time.monotonic_ns()
        served: set[int] = set()

        async def received() -> Message:
            message: Message = await receive()
            for request, _ in marks_in(message.get("body", b"")):
                served.add(request)
                self._record.stamped(request, ARRIVED, arrived_ns)
            return message

        async def sent(message: Message) -> None:
            at_ns = time.monotonic_ns()
            await send(message)
            for request, what in marks_in(message.get("body", b"")):
                self._record.stamped(request, what, at_ns)

        await self._application(scope, received, sent)
        ended_ns = time.monotonic_ns()
        for request in served:
            self._record.stamped(request, ENDED, ended_ns)
        if scope["type"] == "lifespan":  # uvicorn ends by the signal that it was sent
            self._record.write()


def main() -> None:
    """Serve the application that is named, until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("application", help="module:name")
    parser.add_argument("--app-dir", default="", help="folder that the module is in")
    asked = parser.parse_args()
    sys.path.insert(0, asked.app_dir)
    module, _, name = asked.application.partition(":")
    record = Record.of_this_host()
    application = Stamped(getattr(import_module(module), name), record)
    record.watch_clocks()
    uvicorn.run(
        application,
        host="0.0.0.0",
        port=PORT,
        log_level="warning",
        timeout_graceful_shutdown=5,
        timeout_keep_alive=600,
    )


if __name__ == "__main__":
    main()
