"""The compose file is one by the published specification, and its parts fit together."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from tests.deployment.files import OTELCOL, ROOT, SHIPPED, documents, program
from tests.repo.programs import Plant, run, run_well

COMPOSE = SHIPPED / "compose.yaml"
CHECK = (program("check-jsonschema"), "--builtin-schema", "vendor.compose-spec")
(WHOLE,) = documents(COMPOSE)
SERVICES = WHOLE["services"]


def test_it_is_a_compose_file() -> None:
    run_well(*CHECK, COMPOSE, cwd=ROOT)
    assert list(SERVICES) == ["processor", "queue-owner", "collector", "jaeger"]


def test_the_schema_finds_a_planted_fault(plant: Plant, tmp_path: Path) -> None:
    wrong = deepcopy(WHOLE)
    wrong["services"]["jaeger"]["port"] = ["127.0.0.1:16686:16686"]
    found = run(*CHECK, plant("compose.yaml", yaml.safe_dump(wrong)), cwd=tmp_path)
    assert found.returncode == 1
    assert "port" in found.stdout


@pytest.mark.parametrize("service", SERVICES)
def test_what_is_mounted_is_there(service: str) -> None:
    for mount in SERVICES[service].get("volumes", ()):
        source = mount.partition(":")[0]
        is_file = source.startswith("./")
        assert (SHIPPED / source).is_file() if is_file else source in WHOLE["volumes"]


@pytest.mark.parametrize(
    ("service", "config"), [("processor", "processor-inline.yaml"), ("collector", "inline.yaml")]
)
def test_each_variable_is_one_that_the_config_reads(service: str, config: str) -> None:
    text = (OTELCOL / config).read_text(encoding="utf-8")
    names = SERVICES[service]["environment"]
    assert [name for name in names if f"${{env:{name}:-" not in text] == []


def test_only_loopback_of_the_host_is_opened() -> None:
    published = [port for each in SERVICES.values() for port in each.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_whoever_listens_for_others_is_found_by_its_name() -> None:
    """What one sends to is what the other listens on."""
    sends, takes = SERVICES["collector"]["environment"], SERVICES["processor"]["environment"]
    assert (
        sends["PROCESSOR_OTLP_GRPC"].replace("processor", "0.0.0.0") == takes["PROCESSOR_OTLP_GRPC"]
    )
    assert (
        takes["COLLECTOR_OTLP_BACK"].replace("collector", "0.0.0.0") == sends["COLLECTOR_OTLP_BACK"]
    )
