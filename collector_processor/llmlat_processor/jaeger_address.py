"""Where a trace is to be found in a Jaeger: an address of our own, or what the browser shows.

jaeger://HOST:PORT/TRACEID            PORT is that of the UI, 16686 where none is given
http://HOST/BASE/trace/TRACEID?...    from the browser's address bar; https:// as well
http://HOST/BASE/api/traces/TRACEID   of the UI's download, or of the API v3
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit

PORT: Final = 16686

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_TRACE_ID: Final = re.compile(r"[0-9a-f]{1,32}")
_PAGE: Final = re.compile(r"(?P<base>.*?)/(?:trace|api/traces|api/v3/traces)/(?P<id>[^/]+)/?")
_OURS: Final = re.compile(r"(?P<base>.*)/(?P<id>[^/]+)/?")

_MEANT: Final = "it looks like jaeger://HOST:PORT/TRACEID or http://HOST/trace/TRACEID"


class Address(NamedTuple):
    """A trace in a Jaeger.

    Attributes:
        base: URL of its UI, without a slash at the end.
        trace_id: in hexadecimal digits, as it was given.
    """

    base: str
    trace_id: str

    @property
    def urls(self) -> tuple[str, str]:
        """Where its API may answer: the one that keeps nanoseconds first.

        Both are asked for the trace as it is stored: what Jaeger does to it for showing, its
        correction of clocks among it, is no observation.
        """
        return (
            f"{self.base}/api/v3/traces/{self.trace_id}?raw_traces=true",
            f"{self.base}/api/traces/{self.trace_id}?raw=true",
        )


def is_address(text: str) -> bool:
    """Tell an address from the path of a file."""
    return _SCHEME.match(text) is not None


def parse(text: str) -> Address:
    """Read an address.

    Raises:
        ValueError: it is none of a trace; the message says what one looks like.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"{text}: {error}; {_MEANT}") from None
    if parts.scheme not in ("jaeger", "http", "https") or not parts.hostname:
        raise ValueError(f"{text}: not the address of a trace; {_MEANT}")
    if "@" in parts.netloc:
        raise ValueError(f"{text}: nobody is logged in here; download the trace and show the file")
    is_ours = parts.scheme == "jaeger"
    found = _PAGE.fullmatch(parts.path) or (_OURS.fullmatch(parts.path) if is_ours else None)
    trace_id = found["id"].lower() if found else ""
    if not found or not _TRACE_ID.fullmatch(trace_id):
        raise ValueError(f"{text}: no trace id of up to 32 hexadecimal digits; {_MEANT}")
    netloc = f"{parts.netloc.rstrip(':')}:{PORT}" if is_ours and port is None else parts.netloc
    scheme = "http" if is_ours else parts.scheme
    return Address(f"{scheme}://{netloc}{found['base']}", trace_id)
