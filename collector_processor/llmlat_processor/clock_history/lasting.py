"""Which messages of a trace are between clocks that are met again."""

from __future__ import annotations

from llmlat_processor.model import AlignedTrace, Message


def lasting(aligned: AlignedTrace) -> list[Message]:
    """The messages of clocks that are met again: replicas without a host are one call each."""
    messages = aligned.clocks.messages
    if not messages:
        return []
    passing = {
        domain
        for span, domain in zip(aligned.trace.operations, aligned.domains, strict=True)
        if span.resource.weak and domain.endswith(f"/{span.span_id.hex()}")
    }
    return [one for one in messages if passing.isdisjoint((one.sender, one.receiver))]
