"""Splits an export by trace id, so that each trace is always looked at by the same one of several.

Nothing is decoded but the trace ids. What cannot be read goes to the first: who gets it refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import DecodeError

from llmlat_processor.wire.decoded import Decoded, UndecodableError
from llmlat_processor.wire.slim import (
    SpanMessage,
    join_envelope,
    join_request,
    new_span,
    split_envelope,
    split_request,
)


def shards(request: bytes, count: int) -> list[bytes]:
    """An ExportTraceServiceRequest as one for each shard, in order; empty where nothing is for it.

    Args:
        request: bytes as they were received.
        count: number of shards.

    Raises:
        UndecodableError: the bytes are not such a message.
    """
    try:
        resources = split_request(request)
    except DecodeError as error:
        raise UndecodableError(f"not an export of spans in protobuf: {error}") from error
    if count == 1:
        return [request]
    splitting = _Splitting(count)
    for resource in resources:
        splitting.add(resource)
    return [join_request(parts) if parts else b"" for parts in splitting.parts]


def unread(request: bytes) -> Decoded:
    """A request that is for others to decode.

    Raises:
        UndecodableError: the bytes are not such a message.
    """
    shards(request, 1)
    return Decoded(request=request)


def shard_of(trace_id: bytes, count: int) -> int:
    """Which shard a trace belongs to: by the end of its id, which is random in every standard."""
    return int.from_bytes(trace_id[-8:], "big") % count


class _Splitting:
    """One request being split: the ResourceSpans for each shard."""

    def __init__(self, count: int) -> None:
        self.parts: list[list[bytes]] = [[] for _ in range(count)]
        self._count = count
        self._message = new_span()

    def add(self, resource: bytes) -> None:
        """Split a ResourceSpans."""
        try:
            header, scopes = split_envelope(resource)
        except DecodeError:
            self.parts[0].append(resource)
            return
        by_shard: list[list[bytes]] = [[] for _ in range(self._count)]
        for scope in scopes:
            for shard, part in enumerate(self._scopes(scope)):
                if part:
                    by_shard[shard].append(part)
        for shard, parts in enumerate(by_shard):
            if parts:
                self.parts[shard].append(join_envelope(header, parts))

    def _scopes(self, scope: bytes) -> Sequence[bytes]:
        """Split a ScopeSpans: one for each shard, empty where nothing is for it."""
        try:
            header, spans = split_envelope(scope)
        except DecodeError:
            return [scope]
        by_shard: list[list[bytes]] = [[] for _ in range(self._count)]
        for span in spans:
            by_shard[shard_of(_trace_id(span, self._message), self._count)].append(span)
        return [join_envelope(header, spans) if spans else b"" for spans in by_shard]


def _trace_id(span: bytes, message: SpanMessage) -> bytes:
    try:
        message.ParseFromString(span)
    except DecodeError:
        return b""
    return message.trace_id
