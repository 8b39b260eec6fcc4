"""How two spans are related: who is remote to whom, and what a link says of the linked one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from llmlat_processor.model import (
    CLIENT,
    CONSUMER,
    PARENT_IS_REMOTE,
    PRODUCER,
    SERVER,
    Attributes,
    Span,
)
from llmlat_semconv import attributes as names
from llmlat_semconv import events
from llmlat_semconv.values import LinkRelationship

UNARY_SYSTEMS: Final = frozenset(("grpc", "connect_rpc", "jsonrpc"))
_LASTS_LONGER: Final = frozenset(
    f"opentelemetry.instrumentation.{name}" for name in ("asgi", "fastapi", "starlette")
)
PRECEDES: Final = frozenset((LinkRelationship.FOLLOWS, LinkRelationship.RETRY_OF))


def is_remote(span: Span, parent: Span) -> bool:
    """True where a span and its parent were made by different processes."""
    if (
        span.resource is not parent.resource and span.resource.process != parent.resource.process
    ) or span.flags & PARENT_IS_REMOTE:
        return True
    kind = span.kind
    return (kind == SERVER and parent.kind == CLIENT) or (
        kind == CONSUMER and parent.kind == PRODUCER
    )


def relationship(attributes: Attributes) -> str:
    """What a link says the linked span is to this one; empty where it does not say."""
    said = attributes.get(names.LLMLAT_LINK_RELATIONSHIP) or attributes.get(
        names.GEN_AI_ATTRIBUTION_LINK_TYPE
    )
    return said if isinstance(said, str) else ""


def is_unary(said: Attributes) -> bool:
    """Whether a client's call is a remote procedure's, so that it lasts until its answer is whole.

    Others are named so as well: a call of a cloud's API may only put something in a queue.
    """
    system = said.get(names.RPC_SYSTEM) or said.get(names.RPC_SYSTEM_NAME)
    return isinstance(system, str) and system in UNARY_SYSTEMS


def ends_with_its_answer(span: Span) -> bool:
    """Whether the span of somebody else's server ends when its last byte has gone, or soon after.

    A span of ASGI's instrumentations lasts as long as the application runs, and that runs what it
    was given to do in the background after the answer.
    """
    return span.kind == SERVER and span.scope not in _LASTS_LONGER


def joined_ids(span: Span) -> Iterator[bytes]:
    """Ids of the children that an operation's events say it waited for."""
    for event in span.events:
        ids = event.attributes.get(names.LLMLAT_JOIN_SPAN_IDS)
        if event.name == events.LLMLAT_JOIN and isinstance(ids, (list, tuple)):
            yield from map(_identity, ids)


def _identity(text: object) -> bytes:
    try:
        return bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        return b""
