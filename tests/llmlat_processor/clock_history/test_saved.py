"""A history that was saved is the same history; anything else is refused with a reason."""

from __future__ import annotations

import json
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.clock_history import (
    ClockHistory,
    HistorySettings,
    NotAHistoryError,
    from_bytes,
    to_bytes,
)
from tests.llmlat_processor.clock_history.worlds import (
    FIRST,
    MS,
    SECOND,
    WORLDS,
    World,
    calls,
    trace,
)


@given(st.lists(WORLDS, min_size=1, max_size=3), calls(400_000, 20))
def test_what_is_loaded_is_what_was_saved_and_goes_on_alike(worlds: list[World], told) -> None:
    history = ClockHistory(HistorySettings(bounds=4))
    for number, call in enumerate(told):
        # Several worlds by turns contradict each other: odd ones, steps, late ones.
        messages = worlds[number * len(worlds) // len(told)].call(*call)
        history.learn(trace(number), messages, {FIRST: ["adviser"]})
    saved = to_bytes(history)
    loaded = from_bytes(saved, history.settings)

    assert to_bytes(loaded) == saved
    assert list(loaded.stretches()) == list(history.stretches())
    assert loaded.steps == history.steps
    assert {*loaded.became.items()} == {*history.became.items()}
    for one in (history, loaded):
        one.learn(trace(999), worlds[0].call(200_000, 1, 1, 1))
    assert to_bytes(loaded) == to_bytes(history)


@pytest.fixture
def saved() -> bytes:
    history = ClockHistory()
    history.learn(trace(1), World(5 * MS, [0]).call(10, 1, 1, 1), {SECOND: ["vllm"]})
    return to_bytes(history)


def resealed(
    saved: bytes, change: dict[str, object], in_head: dict[str, object] | None = None
) -> bytes:
    """The same file with other fields in its only pair or before it, and a sum that fits."""
    seal, head, pair = (json.loads(line) for line in saved.splitlines())
    rest = b"".join(
        json.dumps(line).encode() + b"\n"
        for line in ({**head, **(in_head or {})}, {**pair, **change})
    )
    return json.dumps({**seal, "crc32": crc32(rest)}).encode() + b"\n" + rest


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"{}", b"[]", b'{"resourceSpans": []}', b"\xff", b"[" * 200_000],
    ids=lambda content: content[:8],
)
def test_a_foreign_file_is_no_history(content: bytes) -> None:
    with pytest.raises(NotAHistoryError, match="it is no clock history"):
        from_bytes(content)


def test_every_damaged_byte_is_seen(saved: bytes) -> None:
    for place in range(len(saved)):
        damaged = saved[:place] + bytes([saved[place] ^ 1]) + saved[place + 1 :]
        with pytest.raises(NotAHistoryError):
            from_bytes(damaged)


def test_a_file_that_was_cut_off_is_damaged(saved: bytes) -> None:
    with pytest.raises(NotAHistoryError, match="it is damaged"):
        from_bytes(saved[:-30])


@pytest.mark.parametrize(
    "change",
    [
        {"first": 1},
        {"services": [["a"]]},
        {"services": ["a", "b"]},
        {"behind": True},
        {"epochs": []},
        {"epochs": [1]},
        {"epochs": {}},
        {"epochs": [{"number": 0, "since_ns": 0, "windows": [{"number": 0}]}]},
        {"held": [{"trace": "xyz"}]},
        {"held": [{"trace": "00", "messages": 1, "above": "AAAA", "below": ""}]},
        {"held": [{"trace": "00", "messages": 1, "above": "?", "below": ""}]},
        {"held": [{"trace": "00", "messages": 1, "above": "", "below": ""}]},
    ],
)
def test_a_file_that_somebody_else_wrote_wrongly_is_damaged(
    saved: bytes, change: dict[str, object]
) -> None:
    with pytest.raises(NotAHistoryError, match="it is damaged"):
        from_bytes(resealed(saved, change))


def test_a_pair_that_is_nested_without_end_is_damaged(saved: bytes) -> None:
    seal, head, _ = saved.splitlines(keepends=True)
    rest = head + b"[" * 200_000 + b"\n"
    sealed = json.dumps({**json.loads(seal), "crc32": crc32(rest)}).encode() + b"\n" + rest

    with pytest.raises(NotAHistoryError, match="it is damaged: it is nested too deeply"):
        from_bytes(sealed)


def test_a_file_that_lacks_a_pair_is_damaged(saved: bytes) -> None:
    with pytest.raises(NotAHistoryError, match="pairs are missing"):
        from_bytes(resealed(saved, {}, {"pairs": 2}))


def test_other_versions_and_other_assumptions_are_told(saved: bytes) -> None:
    newer = saved.replace(b'"llmlat_clock_history":1', b'"llmlat_clock_history":2')
    with pytest.raises(NotAHistoryError, match="it is of version 2; this program reads 1"):
        from_bytes(newer)
    with pytest.raises(
        NotAHistoryError, match="windows of 120 s and 200 ppm, not 60 s and 200 ppm"
    ):
        from_bytes(saved, HistorySettings(window_ns=60 * 10**9))


def test_a_smaller_history_takes_what_it_has_room_for() -> None:
    history = ClockHistory()
    for number, other in enumerate("bcd"):
        message = World(0, [0]).request(number, 1)._replace(sender="a", receiver=other)
        history.learn(trace(number), [message])

    small = from_bytes(to_bytes(history), HistorySettings(pairs=2))

    assert small.pairs() == [("a", "c"), ("a", "d")]
