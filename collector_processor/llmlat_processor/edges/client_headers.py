"""How requests to a destination are dressed: headers, token, and whether they are compressed."""

from __future__ import annotations

import re
from typing import Final

from llmlat_processor.config.endpoints import is_loopback
from llmlat_processor.edges.addresses import Endpoint
from llmlat_processor.settings import Compression, Destination

_NAME: Final = re.compile(r"[a-z0-9_.-]+")
_VALUE: Final = re.compile(r"[\x20-\x7e]*")
_OURS: Final = frozenset({"content-type", "content-encoding", "content-length", "host", "te"})


def client_headers(destination: Destination) -> dict[str, str]:
    """Headers by their names in lower case, which is how gRPC wants them; HTTP does not mind.

    Raises:
        ValueError: one cannot be sent; the message names it, and never tells its value.
    """
    headers = {name.lower(): value.strip() for name, value in destination.headers.items()}
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or name.endswith("-bin"):
            raise ValueError(f"{name!r} is no name of a header that can be sent: text, not binary")
        if not _VALUE.fullmatch(value):
            raise ValueError(f"the header {name!r} holds what is not printable ASCII")
        if name in _OURS:
            raise ValueError(f"the header {name!r} is set by the exporter: leave it out")
    if destination.token:
        if "authorization" in headers:
            raise ValueError("a token and a header 'authorization' are set: leave one of them out")
        if not _VALUE.fullmatch(destination.token):
            raise ValueError("the token holds what is not printable ASCII")
        headers["authorization"] = f"Bearer {destination.token.strip()}"
    return headers


def compresses_to(destination: Destination, endpoint: Endpoint) -> bool:
    """Whether requests are compressed; on loopback that costs more than it saves."""
    if destination.compression is Compression.AUTO:
        return not is_loopback(endpoint.host)
    return destination.compression is Compression.GZIP
