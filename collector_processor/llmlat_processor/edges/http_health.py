"""`/healthz` and `/readyz`: open to everybody who can connect, as probes carry no token."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from llmlat_processor.edges.http_server import Answer, told
from llmlat_processor.edges.receiver import Ready

HEALTH: Final = "/healthz"
READINESS: Final = "/readyz"
OPEN: Final = (HEALTH, READINESS)


def health(path: str, ready: Ready) -> Answer:
    """Whether this process answers at all, or whether spans should be sent to it."""
    why = ready() if path == READINESS else ""
    if why:
        return told(HTTPStatus.SERVICE_UNAVAILABLE, why)
    return told(HTTPStatus.OK, "ok")
