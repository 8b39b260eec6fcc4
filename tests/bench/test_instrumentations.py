"""Each instrumentation that is compared times calls while it is in, and leaves nothing behind."""

import pytest

from bench.chat import AsyncChat, SyncChat
from bench.importing import import_ms
from bench.instrumentations import OURS, PEERS, _replaced, peer
from bench.otel_spans import Keeper, dropping_provider


@pytest.fixture
def keeper():
    return Keeper()


@pytest.mark.parametrize("make", [SyncChat, AsyncChat])
@pytest.mark.parametrize("name", PEERS)
def test_a_peer_makes_one_span_of_a_call_while_it_is_in(name, make, keeper):
    chat, instrumentation = make(3), peer(name, dropping_provider(keeper))
    chat.call(1)
    assert keeper.spans == []
    instrumentation.put_in()
    chat.call(1)
    instrumentation.take_out()
    chat.call(1)
    assert len(keeper.spans) == 1
    assert list(_replaced()) == []


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_captures_no_content(name, keeper):
    chat, instrumentation = SyncChat(3), peer(name, dropping_provider(keeper))
    instrumentation.put_in()
    chat.call(1)
    instrumentation.take_out()
    (span,) = keeper.spans
    assert not [value for value in (span.attributes or {}).values() if "word" in str(value)]


def test_ours_leaves_nothing_behind():
    OURS.put_in()
    assert list(_replaced())
    OURS.take_out()
    assert list(_replaced()) == []


def test_what_an_import_takes_is_measured_in_processes_of_their_own():
    added = {"nothing": "pass", "work": "sum(range(2_000_000))"}
    taken_ms = import_ms(added, range(1), program="sum(range(1_000))")
    assert 0 <= taken_ms["nothing"] < taken_ms["work"]
