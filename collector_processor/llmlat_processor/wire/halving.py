"""A request in two, for a receiver to which it is too large as it is."""

from __future__ import annotations

from typing import Final, TypeAlias

from google.protobuf.message import DecodeError

from llmlat_processor.wire.encode import Request
from llmlat_processor.wire.slim import join_envelope, join_request, split_envelope, split_request

_FEWEST: Final = 2

_Scope: TypeAlias = tuple[bytes, list[bytes]]
"""An emptied ScopeSpans, and its spans."""

_Resource: TypeAlias = tuple[bytes, list[_Scope]]
"""An emptied ResourceSpans, and its scopes."""


def halves(request: Request) -> tuple[Request, Request] | None:
    """Its first spans and its last ones, in their order, each under the envelopes it came in.

    Returns:
        Two requests of the same unit, neither of them empty; None where there are not two spans.
    """
    try:
        resources = [_scopes(*split_envelope(part)) for part in split_request(request.content)]
    except DecodeError:  # it is no request, so nothing in it can be saved
        return None
    count = sum(len(spans) for _, scopes in resources for _, spans in scopes)
    if count < _FEWEST:
        return None
    middle = count // 2
    first, last = _between(resources, 0, middle), _between(resources, middle, count)
    return (
        Request(first, middle, request.unit),
        Request(last, request.spans - middle, request.unit),
    )


def _scopes(resource: bytes, scopes: list[bytes]) -> _Resource:
    return resource, [split_envelope(scope) for scope in scopes]


def _between(resources: list[_Resource], first: int, end: int) -> bytes:
    """The spans from one number to another; an envelope that none of them came in is left out."""
    at = 0
    kept = []
    for resource, scopes in resources:
        kept_scopes = []
        for scope, spans in scopes:
            if chosen := spans[max(0, first - at) : max(0, end - at)]:
                kept_scopes.append(join_envelope(scope, chosen))
            at += len(spans)
        if kept_scopes:
            kept.append(join_envelope(resource, kept_scopes))
    return join_request(kept)
