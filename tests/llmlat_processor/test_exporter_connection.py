"""The connection to a destination: slow to come about, dead without a word, behind no proxy."""

from __future__ import annotations

import pytest

from llmlat_processor.config.endpoints import is_loopback
from llmlat_processor.edges.addresses import host_and_port
from llmlat_processor.edges.exporter import SHUTDOWN, Counts
from llmlat_processor.settings import Delivery
from tests.llmlat_processor.relay import relay
from tests.llmlat_processor.sink import WAIT_S, sink
from tests.llmlat_processor.test_exporter import QUICK, exporting, of


def test_a_connection_that_is_dead_without_a_word_is_left_for_a_new_one() -> None:
    """TCP tells nobody for a quarter of an hour; by then the spans would be given up."""
    delivery = Delivery(deadline_s=0.3, first_retry_s=0.001, longest_retry_s=0.002)
    with (
        sink() as destination,
        relay(destination.address) as wire,
        exporting(wire.address, delivery) as exporter,
    ):
        exporter.put(of(1))
        destination.wait_for_spans(1)
        wire.cut()
        exporter.put(of(2))
        destination.wait_for_spans(2)

    assert exporter.counts == Counts(2, 2, 0, {})


def test_a_destination_may_take_its_time_to_greet() -> None:
    with sink() as destination, relay(destination.address, greeting_s=0.6) as wire:
        with exporting(wire.address) as exporter:
            exporter.put(of(1))
            destination.wait_for_spans(1)
        assert wire.connections == 1


def test_no_proxy_stands_before_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("no_grpc_proxy", raising=False)
    with sink() as destination, exporting(destination.address) as exporter:
        assert exporter.is_reachable(WAIT_S)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "[::1]", "localhost", "a.localhost"])
def test_this_machine_is_known_by_name(host: str) -> None:
    assert is_loopback(host)
    assert not is_loopback(f"{host.strip('[]')}.example.org")


def test_an_address_of_many_colons_needs_brackets() -> None:
    assert host_and_port("[::1]:4317") == ("[::1]", 4317)
    with pytest.raises(ValueError, match=r"not an address like \[::1\]:4317, with brackets"):
        host_and_port("::1:4317")


def test_what_comes_after_the_end_is_dropped_and_counted() -> None:
    with sink() as destination, exporting(destination.address, QUICK) as exporter:
        assert not exporter.has_ended
    assert exporter.has_ended

    exporter.put(of(1, 2))

    assert exporter.counts == Counts(2, 0, 0, {SHUTDOWN: 2})
