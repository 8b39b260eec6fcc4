"""What the builder is told to put together is what the tests have put together, and says so."""

from __future__ import annotations

import re

from tests.deployment.files import OTELCOL, ROOT, documents

BUILDER = OTELCOL / "builder.yaml"
GO_MOD = (ROOT / "tests" / "peers" / "collector" / "go.mod").read_text(encoding="utf-8")
NEVER_RUN = {"loadbalancingexporter", "tailsamplingprocessor"}
_KINDS = ("receivers", "processors", "exporters", "connectors", "extensions")


def test_each_module_is_pinned_as_it_is_tested_or_marked() -> None:
    """Everything that is not in the Collector of the tests carries the words."""
    pinned = set(re.findall(r"^\t(\S+ v\S+)$", GO_MOD, re.MULTILINE))
    lines = re.findall(r"- gomod: (\S+ v\S+)( # not run here)?$", BUILDER.read_text(), re.MULTILINE)
    assert lines
    marked = {module for module, mark in lines if mark}
    assert {module for module, _ in lines} - pinned == marked
    assert {module.split(" ")[0].rpartition("/")[2] for module in marked} == NEVER_RUN


def test_each_component_of_a_config_is_among_them() -> None:
    (built,) = documents(BUILDER)
    modules = " ".join(each["gomod"] for kind in _KINDS for each in built[kind])
    for name in ("inline", "tap", "sharded"):
        (config,) = documents(OTELCOL / f"{name}.yaml")
        used = {key.partition("/")[0] for kind in _KINDS for key in config.get(kind, ())}
        assert {each for each in used if not _is_in(each, modules)} == set()


def _is_in(component: str, modules: str) -> bool:
    """`otlp_grpc` is made by otlpexporter, `file_storage` by filestorage."""
    return component.removesuffix("_grpc").replace("_", "") in modules
