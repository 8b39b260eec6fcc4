"""Requests in parts, for several workers or for a small receiver: together they are the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from llmlat_processor.wire import Decoded, Request, WireSpan, decode, encode, halves
from llmlat_processor.wire.sharding import shard_of, shards
from tests.fuzz.oracle import parsed, placed

SHARDS: Final = 3


def faults_of_shards(request: bytes, decoded: Decoded) -> Iterator[str]:
    """What is wrong with the shards of a request that was decoded whole."""
    read = [decode(part) if part else Decoded() for part in shards(request, SHARDS)]
    if _spans(one for part in read for one in part.spans) != _spans(decoded.spans):
        yield "the spans of the shards are not those of the whole"
    if sum(part.refused for part in read) != decoded.refused:
        yield "not as many are refused in shards as in the whole"
    for number, part in enumerate(read):
        if any(shard_of(span.trace_id, SHARDS) != number for span in part.spans):
            yield "a span is in another shard than its trace"


def faults_of_halves(decoded: Decoded) -> Iterator[str]:
    """What is wrong with the halves of what is sent."""
    whole = Request(encode(decoded.spans), len(decoded.spans))
    both = halves(whole)
    if both is None:
        if len(decoded.spans) > 1:
            yield "several spans have no halves"
        return
    if not all(half.spans == len(_placed(half.content)) > 0 for half in both):
        yield "a half has not as many spans as it says"
    together = [one for half in both for one in _placed(half.content)]
    if together != _placed(whole.content):
        yield "the halves are not the whole"


def _spans(spans: Iterable[WireSpan]) -> Counter[object]:
    return Counter((span.raw, span.origin) for span in spans)


def _placed(request: bytes) -> list[object]:
    message = parsed(request)
    return [place for place, _ in placed(message)] if message is not None else []
