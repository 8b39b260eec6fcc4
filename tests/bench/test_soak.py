"""Nothing is left of calls and of abandoned streams: `make soak-sdk`, in small."""

import pytest

from bench import leaving, soak
from bench.leaving import Messages, Watch
from bench.soak import Amount
from llmlat_otel.core import pulls

SMALL = Amount(2_000, openai_calls=400, abandoned=500, openai_abandoned=200)
SMALLER = Amount(400, openai_calls=80, abandoned=60, openai_abandoned=40)


def test_of_2000_calls_and_500_abandoned_streams_nothing_is_left():
    soaked = soak.soak(SMALL, iter(range(10)))
    assert soaked.alive == []
    assert soaked.late.ours == soaked.early.ours
    assert soaked.late.threads == soaked.early.threads
    assert soaked.operations == soaked.asked == 2_500


def test_a_soak_sees_what_is_kept(monkeypatch):
    kept: list[object] = []
    read = pulls.EventPull.received

    def keeping(pull, event):
        kept.extend((pull, event))
        read(pull, event)

    monkeypatch.setattr(pulls.EventPull, "received", keeping)
    soaked = soak.soak(SMALLER, iter(range(10)))
    assert "ChatCompletionChunk" in soaked.alive
    assert soaked.late.ours > soaked.early.ours


@pytest.mark.parametrize("amount", [soak._FULL, soak._QUICK, SMALL])
def test_the_parts_make_the_whole(amount):
    each = [*amount.of_bare().values(), *amount.of_openai().values()]
    assert 10 * sum(each) == amount.calls + amount.abandoned
    assert all(each)


def test_what_is_watched_is_forgotten_with_its_last_reference():
    watch, messages = Watch(), Messages()
    watch.add(messages)
    assert watch.alive() == ["Messages"]
    del messages
    assert watch.alive() == []


@pytest.mark.parametrize("program", [leaving.dropped, leaving.dropped_async])
def test_the_library_itself_keeps_nothing_of_a_stream_that_is_dropped(program):
    watch = Watch()
    program(8, watch)
    soak._collect()
    assert watch.alive() == []
