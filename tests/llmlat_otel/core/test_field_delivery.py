"""Reports from users of other tools about what lies before a client, each with its whole kind."""

import pytest

from llmlat_otel.settings import Settings
from llmlat_otel.testing import MS, FakeStream
from llmlat_semconv import attributes as names
from llmlat_semconv.metrics import STREAM_GAP_BOUNDARIES_S
from llmlat_semconv.values import ContentKind

TEXT = ContentKind.TEXT
PAUSE_MS = 1_500
BURSTS = (14, 13, 13)

EVERY_PHASE = [Settings(phase_min_ns=0)]


def operation(record):
    (span,) = [each for each in record.tree() if each["kind"] == "CLIENT"]
    return span


def phases(record):
    return {
        each["name"].removeprefix("phase "): (each["end_ns"] - each["start_ns"]) // MS
        for each in record.tree()
        if each["name"].startswith("phase ")
    }


def in_bursts(clock):
    """What a proxy lets go of: the first event of each burst after a pause, the others at once."""
    waits = [PAUSE_MS if first else 0 for size in BURSTS for first in [True, *[False] * (size - 1)]]
    return FakeStream(clock, [(ms * MS, TEXT) for ms in waits])


@pytest.mark.parametrize("record", EVERY_PHASE, indirect=True)
def test_gw_09_bursts_are_seen_as_bursts_and_nobodys_decoding(clock, library, record):
    list(library.create(lambda: in_bursts(clock), stream=True))
    said = operation(record)["attributes"]
    assert said[names.LLMLAT_STREAM_CHUNK_COUNT] == sum(BURSTS) == 40
    counts = said[names.LLMLAT_STREAM_GAP_BUCKET_COUNTS]
    long = sum(1 for each in STREAM_GAP_BOUNDARIES_S if each < PAUSE_MS / 1e3)
    assert {place: count for place, count in enumerate(counts) if count} == {0: 37, long: 2}
    assert said[names.LLMLAT_STREAM_GAP_MAX] == PAUSE_MS / 1e3
    assert said[names.LLMLAT_STREAM_STALL_COUNT] == 2
    assert said[names.LLMLAT_STREAM_STALL_DURATION] == 2 * PAUSE_MS / 1e3
    assert phases(record)["stream"] == 2 * PAUSE_MS
    written = {*said, *(each["name"] for each in record.tree())}
    assert not [name for name in written if "decode" in name]


@pytest.mark.parametrize("record", EVERY_PHASE, indirect=True)
def test_gw_09_what_the_caller_does_between_two_of_them_is_no_pause(clock, library, record):
    for _ in library.create(lambda: in_bursts(clock), stream=True):
        clock.advance(100 * MS)
    said = operation(record)["attributes"]
    assert said[names.LLMLAT_STREAM_STALL_COUNT] == 2
    assert said[names.LLMLAT_CONSUMER_DURATION] == pytest.approx(3.9)


@pytest.mark.parametrize("record", EVERY_PHASE, indirect=True)
@pytest.mark.parametrize("head_ms", [0, 2_000], ids=["head at once", "head withheld"])
def test_gw_10_the_head_of_a_response_is_no_edge(clock, library, record, head_ms, monkeypatch):
    """Whenever it comes, the caller waits until there is an event."""
    transport = library._transport

    def until_the_head(attempt, status):
        head = transport(attempt, status)
        clock.advance(head_ms * MS)
        return head

    def create():
        library.send()
        return FakeStream(clock, [((2_000 - head_ms) * MS, TEXT), (MS, TEXT)])

    monkeypatch.setattr(library, "_transport", until_the_head)
    list(library.create(create, stream=True))
    found = phases(record)
    assert [found[each] for each in ("prepare", "connect", "send")] == [1, 2, 3]
    assert found["wait"] == 4 + 2_000
    said = operation(record)["attributes"]
    assert said[names.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK] == pytest.approx(2.010)
