"""The operator's guide names what there is: files, metrics, and reasons."""

from __future__ import annotations

import re

from llmlat_processor.edges.exporter import NO_ROOM, SHUTDOWN
from llmlat_processor.edges.receiver import (
    POSTPONED,
    SIGNALS,
    UNAUTHORIZED,
    UNDECODABLE,
    UNFINISHED,
)
from llmlat_processor.edges.receiver import TOO_LARGE as RECEIVED_TOO_LARGE
from llmlat_processor.edges.retrying import GIVEN_UP, REFUSED, REJECTED, TOO_LARGE
from llmlat_processor.service.explaining import UNEXPLAINED
from llmlat_processor.service.handing_on import NO_DESTINATION
from llmlat_processor.service.releasing import EXPLAINED_BEFORE, NO_ROOT, NOTHING_TO_EXPLAIN
from llmlat_processor.settings import Delivery, JournalSettings
from llmlat_processor.window import MIB, NEVER_HELD, SECOND_NS, Limits, Why
from tests.deployment.files import ROOT, SHIPPED

GUIDE = (SHIPPED / "README.md").read_text(encoding="utf-8")
METRICS = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")


def test_each_metric_that_is_named_exists() -> None:
    named = set(re.findall(r"`(llmlat_[a-z_]+)`", GUIDE)) - {"llmlat_otel"}
    assert len(named) >= 8
    assert {name for name in named if f"| `{name}` |" not in METRICS} == set()


def test_each_reason_why_a_span_is_lost_is_told() -> None:
    reasons = {REJECTED, REFUSED, TOO_LARGE, GIVEN_UP, NO_ROOM, SHUTDOWN}
    _, table = METRICS.split("### Why spans are lost")
    assert {reason for reason in reasons if f"\n| {reason} | " not in table} == set()


def test_each_kind_of_request_without_spans_is_told() -> None:
    kinds = {POSTPONED, RECEIVED_TOO_LARGE, UNFINISHED, UNDECODABLE, UNAUTHORIZED}
    _, table = METRICS.split("### Requests without spans")
    assert {kind for kind in kinds if f"\n| {kind} | " not in table} == set()
    assert f"\n| {', '.join(SIGNALS)} | " in table


def test_each_reason_why_a_span_goes_on_as_it_came_is_told() -> None:
    never_held = {why.value for why in NEVER_HELD} - {Why.REPEATED.value}  # has a book of its own
    others = {NO_ROOT, EXPLAINED_BEFORE, NOTHING_TO_EXPLAIN, NO_DESTINATION, UNEXPLAINED}
    assert {reason for reason in never_held | others if f"\n| `{reason}` | " not in GUIDE} == set()


def test_each_file_that_is_linked_is_there() -> None:
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", GUIDE)
    assert {link for link in links if not (SHIPPED / link).exists()} == set()


def test_everything_that_is_shipped_is_told_of() -> None:
    shipped = [*(SHIPPED / "otelcol").glob("*.yaml"), *(SHIPPED / "kubernetes").glob("*.yaml")]
    assert shipped
    assert [file.name for file in shipped if file.name not in GUIDE] == []


def test_the_figures_are_those_of_the_settings() -> None:
    limits, delivery = Limits(), Delivery()
    for figure in (
        f"about {limits.idle_ns // SECOND_NS} s after their last span",
        f"{limits.grace_ns // SECOND_NS} s where a call",
        f"{limits.hold_max_ns // SECOND_NS} s at most",
        f"`window.max_held` ({limits.held_bytes // MIB} MiB)",
        f"more than {limits.trace_spans:,} spans",
        f"for {delivery.drain_s:g} s (`drain`)",
        f"{delivery.give_up_s / 60:g} minutes by default",
        f"waits to be sent ({delivery.queue_bytes // MIB} MiB at most)",
        f"within {limits.skeleton_ns // SECOND_NS // 3_600} hours",
        f"are {JournalSettings().max_bytes // 2**30} GiB, its default bound",
    ):
        assert figure in GUIDE
