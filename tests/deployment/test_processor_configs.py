"""The processor reads the configs that are shipped, and finds nothing to say about them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from llmlat_processor.config.deployment import read
from llmlat_processor.settings import Deployment, Mode
from llmlat_processor.window import SECOND_NS
from tests.deployment.files import OTELCOL, SHIPPED, documents
from tests.deployment.files import Mapping as Manifest

NO_VARIABLES: Mapping[str, str] = {}


def deployed(name: str, environ: Mapping[str, str] = NO_VARIABLES) -> Deployment:
    """What a config says; it may neither be wrong nor worth a warning."""
    content = (OTELCOL / f"processor-{name}.yaml").read_bytes()
    configured = read(name, content, environ, lambda _: "there is no such file")
    assert configured.warnings == ()
    return configured.deployment


def test_inline_sends_the_spans_on_and_keeps_a_journal() -> None:
    made = deployed("inline")
    assert made.mode is Mode.INLINE
    assert made.grpc
    assert made.grpc.address == "127.0.0.1:4327"
    assert made.spans
    assert made.spans.endpoint == "127.0.0.1:4337"
    assert made.journal
    assert made.spans.delivery.give_up_s == 86_400


def test_a_tap_sends_lanes_only_and_waits_for_long_agents() -> None:
    made = deployed("tap")
    assert made.mode is Mode.TAP
    assert made.spans is None
    assert made.derived
    assert made.derived.endpoint == "127.0.0.1:4337"
    assert made.journal is None
    assert made.settings.window.hold_max_ns == 600 * SECOND_NS


@pytest.mark.parametrize("name", ["inline", "tap"])
def test_by_itself_nothing_is_open_but_loopback(name: str) -> None:
    made = deployed(name)
    for listener in (made.grpc, made.http, made.telemetry):
        assert listener is None or listener.address.startswith("127.0.0.1:")


def env_of_compose() -> Manifest:
    """The variables that the container gets."""
    (compose,) = documents(SHIPPED / "compose.yaml")
    return dict(compose["services"]["processor"]["environment"])


def env_of_kubernetes() -> Manifest:
    """Those of the pod."""
    manifests = documents(SHIPPED / "kubernetes" / "processor.yaml")
    (stateful,) = [each for each in manifests if each["kind"] == "StatefulSet"]
    (container,) = stateful["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"]}


@pytest.mark.parametrize("variables", [env_of_compose(), env_of_kubernetes()])
def test_in_a_container_it_is_reached_from_outside(variables: Manifest) -> None:
    made = deployed("inline", variables)
    assert made.grpc
    assert made.grpc.address == "0.0.0.0:4317"
    assert made.telemetry
    assert made.telemetry.address == "0.0.0.0:8889"


@pytest.mark.parametrize(("name", "config"), [("inline", "inline"), ("tap", "tap")])
def test_both_sides_mean_the_same_ports(name: str, config: str) -> None:
    made = deployed(name)
    text = (OTELCOL / f"{config}.yaml").read_text(encoding="utf-8")
    destination = made.spans or made.derived
    assert made.grpc
    assert f"${{env:PROCESSOR_OTLP_GRPC:-{made.grpc.address}}}" in text
    assert destination
    assert f"${{env:COLLECTOR_OTLP_BACK:-{destination.endpoint}}}" in text
