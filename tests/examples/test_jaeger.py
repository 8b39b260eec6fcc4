"""examples/jaeger: its files are valid, agree with each other, and name what there is."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

from backends import HERE, Addresses, binary, collector, jaeger
from llmlat_processor.cli import main
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase, duration_attribute, reported_duration_attribute
from tests.integration.jaeger.sending import sent_as

VARIABLE = re.compile(r"\$\{env:(\w+):-([^}]*)\}")
NAMES = {value for key, value in vars(names).items() if key.isupper()}


@pytest.fixture(autouse=True)
def _programs_that_need_not_be_there(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a command consists of can be looked at without the program."""
    if request.node.get_closest_marker("peers") is None:
        monkeypatch.setattr("backends.binary", Path)


def defaults(file: str) -> dict[str, str]:
    """The variables of a configuration, with their defaults."""
    return dict(VARIABLE.findall((HERE / file).read_text(encoding="utf-8")))


@pytest.mark.peers
@pytest.mark.parametrize("peer", ["collector", "jaeger"])
def test_a_configuration_is_valid_without_any_variable(peer: str) -> None:
    command = [str(binary(peer)), "validate", f"--config={HERE / f'{peer}.yaml'}"]
    validated = subprocess.run(command, capture_output=True, text=True, check=False)
    assert validated.returncode == 0, validated.stderr


def test_every_variable_is_set_by_what_starts_them_and_has_the_same_default() -> None:
    addresses = Addresses()
    for file, backend in (
        ("collector.yaml", collector(addresses, Path("collector-queue"))),
        ("jaeger.yaml", jaeger(addresses)),
    ):
        assert defaults(file).keys() == backend.environment.keys()
        for name, value in defaults(file).items():
            if value.startswith("127."):
                assert backend.environment[name] == value


def test_nothing_listens_anywhere_but_on_loopback() -> None:
    for file in ("collector.yaml", "jaeger.yaml"):
        text = VARIABLE.sub(r"\2", (HERE / file).read_text(encoding="utf-8"))
        endpoints = _values(yaml.safe_load(text), "endpoint")
        assert endpoints
        assert [each for each in endpoints if not each.startswith("127.0.0.1:")] == []


def _values(configuration: Any, key: str) -> list[str]:
    if not isinstance(configuration, dict):
        return []
    here = [configuration[key]] if key in configuration else []
    return here + [found for each in configuration.values() for found in _values(each, key)]


def test_what_goes_in_does_not_come_out_of_the_same_pipeline() -> None:
    configuration = yaml.safe_load((HERE / "collector.yaml").read_text(encoding="utf-8"))
    pipelines = configuration["service"]["pipelines"]
    assert pipelines["traces/in"]["receivers"] == ["otlp"]
    assert pipelines["traces/in"]["exporters"] == ["otlp_grpc/llmlat"]
    assert pipelines["traces/out"]["receivers"] == ["otlp/back"]
    assert pipelines["traces/out"]["exporters"] == ["otlp_grpc/jaeger"]


def test_free_ports_are_all_different() -> None:
    free = asdict(Addresses.free())
    assert len(set(free.values())) == len(fields(Addresses))


def test_the_ui_links_from_attributes_that_there_are() -> None:
    configuration = json.loads((HERE / "jaeger-ui.json").read_text(encoding="utf-8"))
    for prefix in configuration["topTagPrefixes"]:
        assert [each for each in NAMES if each.startswith(prefix)]
    of_trace, *of_tags = _link_patterns()
    assert of_trace["type"] == "traces"
    assert _parameters(of_trace) == {"traceID"}
    for pattern in of_tags:
        assert pattern["type"] == "tags", "the name that every version of the UI knows"
        assert pattern["key"] in NAMES
        assert _parameters(pattern) == {"trace.traceID", pattern["key"]}


def test_what_dominates_leads_to_its_row_on_the_page_of_the_trace(tmp_path: Path) -> None:
    _, pattern, _ = _link_patterns()
    spans, page = tmp_path / "spans.pb", tmp_path / "page.html"
    spans.write_bytes(sent_as("call_worked_adviser").request.SerializeToString())
    assert main(["show", str(spans), "--html", str(page)]) == 0
    row = pattern["url"].partition("html#")[2].replace(f"#{{{pattern['key']}}}", "decode")
    assert f'id="{row}"' in page.read_text(encoding="utf-8")


def test_a_section_leads_to_each_form_in_which_a_span_tells_of_a_phase() -> None:
    *_, pattern = _link_patterns()
    url = pattern["url"].replace(f"#{{{names.LLMLAT_SECTION_LABEL}}}", "queue")
    assert pattern["key"] == names.LLMLAT_SECTION_LABEL
    assert unquote(url.partition("?uiFind=")[2]).split() == [
        f"{names.LLMLAT_PHASE_NAME}=queue",
        duration_attribute(Phase.QUEUE),
        reported_duration_attribute(Phase.QUEUE),
    ]


def _link_patterns() -> list[dict[str, str]]:
    configuration = json.loads((HERE / "jaeger-ui.json").read_text(encoding="utf-8"))
    return list(configuration["linkPatterns"])


def _parameters(pattern: dict[str, str]) -> set[str]:
    return set(re.findall(r"#\{([^{}]*)\}", pattern["url"] + pattern["text"]))
