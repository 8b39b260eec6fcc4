"""The manifests are valid in every version that is supported, and say what they have to."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest

from llmlat_processor.settings import Delivery
from tests.deployment.files import OTELCOL, SHIPPED, documents

MANIFESTS = documents(SHIPPED / "kubernetes" / "processor.yaml")
VERSIONS = ("1.31", "1.34", kubernetes_validate.latest_version())


def one(kind: str) -> dict[str, Any]:
    """The only manifest of its kind."""
    (found,) = [each for each in MANIFESTS if each["kind"] == kind]
    return found


POD = one("StatefulSet")["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda each: str(each["kind"]))
def test_each_manifest_is_valid(manifest: dict[str, Any], version: str) -> None:
    assert kubernetes_validate.validate(manifest, version, strict=True)


def test_a_key_that_does_not_exist_is_found() -> None:
    wrong = deepcopy(one("StatefulSet"))
    wrong["spec"]["template"]["spec"]["containers"][0]["livenessprobe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_the_config_is_the_one_that_is_shipped() -> None:
    text = (OTELCOL / "processor-inline.yaml").read_text(encoding="utf-8")
    assert one("ConfigMap")["data"] == {"processor.yaml": text}


def test_each_variable_is_one_that_the_config_reads() -> None:
    text = one("ConfigMap")["data"]["processor.yaml"]
    names = [each["name"] for each in CONTAINER["env"]]
    assert [name for name in names if f"${{env:{name}:-" not in text] == []


def test_all_of_it_is_about_the_same_pods() -> None:
    labels = one("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    assert one("StatefulSet")["spec"]["selector"]["matchLabels"] == labels
    assert one("Service")["spec"]["selector"] == labels
    assert one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == labels
    assert one("StatefulSet")["spec"]["serviceName"] == one("Service")["metadata"]["name"]


def test_the_collector_asks_for_the_service_that_there_is() -> None:
    (sharded,) = documents(OTELCOL / "sharded.yaml")
    asked = sharded["exporters"]["load_balancing"]["resolver"]["dns"]["hostname"]
    about = one("Service")["metadata"]
    assert f"{about['name']}.{about['namespace']}.svc.cluster.local" in asked
    assert one("Service")["spec"]["clusterIP"] == "None"


def test_the_pod_may_do_nothing_but_its_work() -> None:
    assert POD["securityContext"]["runAsNonRoot"]
    assert not POD["automountServiceAccountToken"]
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_it_is_given_more_time_to_end_than_it_takes() -> None:
    assert POD["terminationGracePeriodSeconds"] >= 2 * Delivery().drain_s


def test_its_journal_is_on_a_volume_of_its_own() -> None:
    (claim,) = one("StatefulSet")["spec"]["volumeClaimTemplates"]
    places = {each["name"]: each["mountPath"] for each in CONTAINER["volumeMounts"]}
    state = {each["name"]: each["value"] for each in CONTAINER["env"]}["PROCESSOR_STATE"]
    assert places[claim["metadata"]["name"]] == state


@pytest.mark.parametrize("probe", ["startupProbe", "readinessProbe", "livenessProbe"])
def test_each_probe_asks_a_port_that_is_open(probe: str) -> None:
    ports = {each["name"]: each["containerPort"] for each in CONTAINER["ports"]}
    environment = {each["name"]: each["value"] for each in CONTAINER["env"]}
    asked = ports[CONTAINER[probe]["httpGet"]["port"]]
    assert environment["PROCESSOR_TELEMETRY"] == f"0.0.0.0:{asked}"
