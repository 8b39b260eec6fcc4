"""The `OTEL_EXPORTER_OTLP_*` variables, where a config file does not say where things go, or how.

They are put in place of keys that the file leaves out, before anything of it is judged, so that
one set of rules holds for both. What a variable says of one signal goes before what it says of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from llmlat_processor.config.leaves import HEADER
from llmlat_processor.config.variables import Text, of_variable

PREFIX: Final = "OTEL_EXPORTER_OTLP_"

_PROTOCOLS: Final = {"http/protobuf": "http", "http/json": "http"}
_FILES: Final = {
    "CERTIFICATE": "ca_file",
    "CLIENT_CERTIFICATE": "cert_file",
    "CLIENT_KEY": "key_file",
}
_SECURE: Final = "https://"


def with_defaults(top: Mapping[str, object], environ: Mapping[str, str]) -> dict[str, object]:
    """A file with what variables say of its destinations.

    A destination that must be there, and is not, is made where a variable says where it is; what
    may be there is sent to only where the file has it.
    """
    given = top.get("destinations")
    if given is not None and not isinstance(given, dict):
        return dict(top)
    destinations = {name: block for name, block in (given or {}).items() if block is not None}
    needed = "derived" if top.get("mode") == "tap" else "spans"
    if needed not in destinations and _variable(_signal(needed), "ENDPOINT", environ):
        destinations[needed] = {}
    filled = {name: _filled(name, block, environ) for name, block in destinations.items()}
    return {**top, "destinations": filled}


def _signal(destination: str) -> str:
    """The signal whose variables speak of a destination."""
    return "METRICS" if destination == "metrics" else "TRACES"


def _filled(name: str, block: object, environ: Mapping[str, str]) -> object:
    if not isinstance(block, dict):
        return block
    said = {key: value for key, value in block.items() if value is not None}
    signal = _signal(name)
    filled = {**dict(_simple(signal, environ)), **said}
    # What lets us in at one place is not shown at another.
    headers = {} if "endpoint" in said else _headers(signal, environ)
    if headers and "headers" not in said:
        if "token" in said and isinstance(headers, dict):
            headers = {key: value for key, value in headers.items() if key != "authorization"}
        filled["headers"] = headers
    files = dict(_files(signal, environ))
    if files and "tls" not in said and str(filled.get("endpoint", "")).startswith(_SECURE):
        filled["tls"] = files
    return filled


def _variable(signal: str, what: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Name and value of the variable that speaks of something; an empty one says nothing."""
    for name in (f"{PREFIX}{signal}_{what}", f"{PREFIX}{what}"):
        if environ.get(name):
            return name, environ[name]
    return None


def _simple(signal: str, environ: Mapping[str, str]) -> Iterator[tuple[str, Text]]:
    for what, key in (
        ("ENDPOINT", "endpoint"),
        ("PROTOCOL", "protocol"),
        ("COMPRESSION", "compression"),
        ("TIMEOUT", "timeout"),
    ):
        found = _variable(signal, what, environ)
        if found is None:
            continue
        name, value = found
        if what == "ENDPOINT" and signal in name:
            # It names the place of one signal, to the end; here the end is added again.
            value = value.rstrip("/").removesuffix(f"/v1/{signal.lower()}")
        elif what == "PROTOCOL":
            value = _PROTOCOLS.get(value, value)
        elif what == "TIMEOUT" and value.isdecimal():
            value = f"{value}ms"
        yield key, of_variable(value, name)


def _headers(signal: str, environ: Mapping[str, str]) -> dict[str, Text] | Text:
    """`name=value,name=value`, percent-encoded; as it is, to be refused, where it is not that."""
    found = _variable(signal, "HEADERS", environ)
    if found is None:
        return {}
    headers = {}
    for pair in filter(str.strip, found[1].split(",")):
        name, equals, value = pair.partition("=")
        if not equals or not HEADER.fullmatch(name.strip()):
            return of_variable(found[1], found[0])
        headers[name.strip().lower()] = of_variable(unquote(value.strip()), found[0])
    return headers


def _files(signal: str, environ: Mapping[str, str]) -> Iterator[tuple[str, Text]]:
    for what, key in _FILES.items():
        found = _variable(signal, what, environ)
        if found is not None:
            yield key, of_variable(found[1], found[0])
