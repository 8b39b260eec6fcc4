"""What people search in a real Jaeger, and what they find."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest

from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase, critical_path_duration_attribute, finding_attribute
from llmlat_semconv.values import FindingKind
from tests.integration.jaeger.lanes import SERVICE
from tests.integration.jaeger.loop import Loop
from tests.integration.jaeger.sending import Sent, sent_as

pytestmark = pytest.mark.peers

DOMINANT = names.LLMLAT_CRITICAL_PATH_DOMINANT_PHASE
NEGATIVE_TRANSIT = finding_attribute(FindingKind.NEGATIVE_TRANSIT)
QUEUE = critical_path_duration_attribute(Phase.QUEUE)


@pytest.fixture(scope="module")
def adviser(shared_loop: Loop) -> Sent:
    """Its path: a queue of 610 ms at first, decode longest of all, no finding."""
    return _arrived(shared_loop, "call_worked_adviser")


@pytest.fixture(scope="module")
def impossible(shared_loop: Loop) -> Sent:
    """An engine that takes longer than the call of it; no queue on its path."""
    return _arrived(shared_loop, "call_negative_transit")


def _arrived(loop: Loop, case: str) -> Sent:
    sent = sent_as(case)
    loop.send(sent.request)
    loop.stored(sent.trace_id)
    return sent


@pytest.mark.parametrize("service", ["support-agent", SERVICE])
def test_by_what_dominates(service: str, loop: Loop, adviser: Sent, impossible: Sent) -> None:
    found = loop.jaeger.find(service, {DOMINANT: "decode"})
    assert adviser.trace_id in found
    assert impossible.trace_id not in found
    assert adviser.trace_id not in loop.jaeger.find(service, {DOMINANT: "queue"})


@pytest.mark.parametrize("service", ["app", SERVICE])
def test_by_the_kind_of_a_finding(
    service: str, loop: Loop, adviser: Sent, impossible: Sent
) -> None:
    found = loop.jaeger.find(service, {NEGATIVE_TRANSIT: "true"})
    assert impossible.trace_id in found
    assert adviser.trace_id not in found


def test_by_how_long_a_queue_was(loop: Loop, adviser: Sent, impossible: Sent) -> None:
    def longer_than(duration: str) -> set[bytes]:
        return loop.jaeger.find(SERVICE, operation="queue vllm", minDuration=duration)

    assert adviser.trace_id in longer_than("500ms")
    assert adviser.trace_id not in longer_than("611ms")
    assert impossible.trace_id not in longer_than("1ms")


def test_by_the_name_of_the_app_where_the_lane_is_searched(loop: Loop, adviser: Sent) -> None:
    assert adviser.trace_id in loop.jaeger.find(
        SERVICE, {names.LLMLAT_TRACE_ROOT_SERVICE: "support-agent"}, operation="critical path"
    )


def test_the_lane_stands_behind_the_services_and_lists_its_operations(
    loop: Loop, adviser: Sent
) -> None:
    services = sorted(loop.jaeger.get("/api/services")["data"])
    assert services[-1] == SERVICE
    asked = urlencode({"service": SERVICE})
    operations = {
        each["name"] for each in loop.jaeger.get(f"/api/v3/operations?{asked}")["operations"]
    }
    assert {"critical path", "queue vllm", "tool get_orders"} <= operations


def test_a_comparison_is_never_found_since_jaeger_knows_equal_strings_only(
    loop: Loop, adviser: Sent
) -> None:
    assert adviser.trace_id in loop.jaeger.find("support-agent", {QUEUE: "0.79"})
    for compared in (">0.5", "0.790", "790ms"):
        assert loop.jaeger.find("support-agent", {QUEUE: compared}) == set()


def test_in_this_version_api_v3_ignores_attributes_and_says_nothing(
    loop: Loop, adviser: Sent
) -> None:
    asked = urlencode(
        {
            "query.service_name": "support-agent",
            "query.start_time_min": "2020-01-01T00:00:00Z",
            "query.start_time_max": "2040-01-01T00:00:00Z",
            "query.num_traces": 100,
            "query.attributes": json.dumps({DOMINANT: "nothing"}),
        }
    )
    found = loop.jaeger.get(f"/api/v3/traces?{asked}")
    assert adviser.trace_id.hex() in json.dumps(found)
