"""The exporters of one processor: what goes where, and that all of them end in one time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest

from llmlat_processor.edges.exporter import Exporter
from llmlat_processor.service import destinations
from llmlat_processor.service.destinations import DERIVED, SPANS, Destinations
from llmlat_processor.settings import Deployment, Destination, Mode
from llmlat_processor.wire import Request
from tests.llmlat_processor.service.deployments import QUICK, nobody

PATIENT = replace(QUICK, drain_s=60)


def nothing(_settled: Sequence[Request]) -> None:
    return None


@pytest.fixture
def graces_s(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """What each exporter had for its end, which then comes at once."""
    given: list[float | None] = []
    stop = Exporter.stop

    def noted(exporter: Exporter, grace_s: float | None = None) -> None:
        given.append(grace_s)
        stop(exporter, grace_s=0)

    monkeypatch.setattr(Exporter, "stop", noted)
    return given


def two() -> Destinations:
    spans, derived = Destination(nobody(), delivery=PATIENT), Destination(nobody(), delivery=QUICK)
    return Destinations(Deployment(spans=spans, derived=derived), nothing)


def test_in_a_tap_all_goes_to_where_lanes_go() -> None:
    tap = Deployment(Mode.TAP, derived=Destination(nobody(), delivery=QUICK))
    one = Destinations(tap, nothing)
    one.put([Request(b"", 3)])
    accepted = {name: counts.accepted for name, counts in one.counts.items()}
    one.stop(0)

    assert accepted == {DERIVED: 3}


def test_each_has_its_own_time_counted_from_the_beginning(graces_s: list[float | None]) -> None:
    two().stop()

    derived_s, spans_s = graces_s
    assert derived_s is not None
    assert spans_s is not None
    assert 0 < derived_s <= QUICK.drain_s < spans_s <= PATIENT.drain_s


def test_where_one_has_taken_all_the_time_the_other_has_none(
    graces_s: list[float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = iter([0.0, 0.0, 70.0])
    clock = SimpleNamespace(monotonic=lambda: next(now_s))
    monkeypatch.setattr(destinations, "time", clock)
    two().stop()

    assert graces_s == [QUICK.drain_s, 0]


def test_after_a_second_interrupt_no_other_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, graces_s: list[float | None]
) -> None:
    both, stop = two(), Exporter.stop

    def interrupted(exporter: Exporter, grace_s: float | None = None) -> None:
        stop(exporter, grace_s)
        if len(graces_s) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Exporter, "stop", interrupted)
    with pytest.raises(KeyboardInterrupt):
        both.stop()

    assert graces_s[1] == 0
    assert both.has_ended


def test_one_that_cannot_be_made_leaves_none_behind() -> None:
    spans, derived = Destination(nobody()), Destination("no destination at all")
    with pytest.raises(ValueError, match="no destination at all"):
        Destinations(Deployment(spans=spans, derived=derived), nothing)


def test_both_are_known_by_name() -> None:
    both = two()
    both.stop(0)

    assert [*both.names()] == [*both.counts] == [SPANS, DERIVED]
