"""Bodies that come compressed, and what grows too large of them."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.edges.bodies import (
    BodyTooLargeError,
    BrokenBodyError,
    inflated,
    is_readable,
)

MIB = 1 << 20
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "identity": bytes,
}


@pytest.mark.parametrize("encoding", PACK)
@given(content=st.binary(max_size=2_000), spare=st.integers(-1, 1))
def test_what_was_compressed_is_as_before_or_too_large(
    encoding: str, content: bytes, spare: int
) -> None:
    packed = PACK[encoding](content)

    if spare < 0 and content:
        with pytest.raises(BodyTooLargeError, match="send smaller batches"):
            inflated(packed, encoding, len(content) + spare)
    else:
        assert inflated(packed, encoding, len(content) + max(spare, 0)) == content


@given(parts=st.lists(st.binary(max_size=100), min_size=1, max_size=20))
def test_gzip_may_be_several_in_a_row(parts: list[bytes]) -> None:
    assert inflated(b"".join(map(gzip.compress, parts)), "gzip", MIB) == b"".join(parts)


@given(content=st.binary(max_size=200), encoding=st.sampled_from(["gzip", "deflate"]))
def test_whatever_comes_is_inflated_or_refused(content: bytes, encoding: str) -> None:
    with suppress(BodyTooLargeError, BrokenBodyError):
        assert len(inflated(content, encoding, 1_000)) <= 1_000


def test_what_is_a_thousand_times_as_large_is_not_made() -> None:
    bomb = gzip.compress(bytes(64 * MIB), 9)

    tracemalloc.start()
    with pytest.raises(BodyTooLargeError):
        inflated(bomb, "gzip", MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 * MIB


@pytest.mark.parametrize(
    ("content", "encoding", "told"),
    [
        (b"", "gzip", "breaks off"),
        (gzip.compress(b"spans")[:-1], "gzip", "breaks off"),
        (gzip.compress(b"spans") + b"more", "gzip", "broken gzip"),
        (gzip.compress(b"spans"), "deflate", "broken deflate"),
        (gzip.compress(b"") * 2_000, "gzip", "more than 1024 parts"),
    ],
)
def test_what_cannot_be_undone_is_told(content: bytes, encoding: str, told: str) -> None:
    with pytest.raises(BrokenBodyError, match=told):
        inflated(content, encoding, MIB)


def test_only_some_encodings_can_be_read() -> None:
    assert [is_readable(name) for name in ("identity", "gzip", "deflate", "zstd", "br", "")] == [
        *[True] * 3,
        *[False] * 3,
    ]
