"""One run of the demo as a subprocess, and what has to hold of the trace that it explains."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llmlat_semconv.spans import (
    agent_span_name,
    gateway_span_name,
    retrieval_span_name,
    tool_span_name,
)
from llmlat_semconv.values import Evidence, SectionLabel

DEMO = Path(__file__).parents[2] / "examples" / "adviser" / "demo.py"
GATEWAY = gateway_span_name("/v1/chat/completions")
MARK = "ADVISER_DEMO_TEST"
PATIENCE_S = 1800.0


@dataclass(frozen=True)
class DemoRun:
    """The demo with arguments and additions to the environment; children inherit its mark."""

    folder: Path
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    program: Path = DEMO
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def report(self) -> Path:
        """The page, beside the folder for what has to be gone afterwards."""
        return self.folder.with_name(f"{self.folder.name}-report.html")

    def start(self) -> subprocess.Popen[str]:
        environment = {**os.environ, **self.environment}
        return subprocess.Popen(
            [sys.executable, str(self.program), f"--report={self.report}", *self.arguments],
            env={**environment, MARK: self.mark, "TMPDIR": str(self.folder), "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self) -> tuple[int, str, str]:
        process = self.start()
        output, errors = process.communicate(timeout=PATIENCE_S)
        return process.returncode, output, errors

    def leftovers(self) -> list[str]:
        """Processes that carry our mark still, and files that were not removed."""
        mark = f"{MARK}={self.mark}".encode()
        return [
            *(each.name for each in Path("/proc").glob("[0-9]*") if _carries(each, mark)),
            *(path.name for path in self.folder.iterdir()),
        ]


def _carries(process: Path, mark: bytes) -> bool:
    try:
        return mark in (process / "environ").read_bytes()
    except OSError:
        return False


def explained(output: str) -> dict[str, Any]:
    """The one trace that the demo printed."""
    (line,) = output.splitlines()
    document: dict[str, Any] = json.loads(line)
    return document


def check_explanation(document: dict[str, Any]) -> None:
    """Both paths tile their time, and every piece of evidence is called what it is."""
    (root,) = document["roots"]
    assert document["complete"]
    assert root["name"] == agent_span_name("adviser")
    assert root["e2e"]["duration_ns"] == root["duration_ns"]
    assert 0 < root["ttft"]["duration_ns"] < root["duration_ns"]
    for path in (root["e2e"], root["ttft"]):
        check_path(path)
    check_operations(document, root)
    check_hops(document)


def check_hops(document: dict[str, Any]) -> None:
    """Each call of the adviser goes through the gateway, whose call the engine has answered."""
    operations = {each["span_id"]: each for each in document["operations"]}
    services = {span_id: each["service"] for span_id, each in operations.items()}
    gateways = [each for each in operations.values() if each["name"] == GATEWAY]
    assert [services[each["parent_id"]] for each in gateways] == ["adviser", "adviser"]
    upstream = {
        span_id
        for span_id, each in operations.items()
        if operations.get(each["parent_id"], {}).get("name") == GATEWAY
    }
    assert len(upstream) == 2
    for path in (document["roots"][0]["e2e"], document["roots"][0]["ttft"]):
        by_engine = {
            each["span_id"]
            for each in path["sections"]
            if each["label"] == SectionLabel.PREFILL.value
        }
        assert by_engine == upstream


def check_path(path: dict[str, Any]) -> None:
    at_ns = 0
    for section in path["sections"]:
        assert section["start_ns"] == at_ns
        at_ns += section["duration_ns"]
    assert at_ns == path["duration_ns"] == sum(path["totals_ns"].values())
    assert path["totals_ns"][path["dominant"]] == max(path["totals_ns"].values())
    assert evidence_of(path, SectionLabel.QUEUE) == {Evidence.BOUNDED.value}
    assert evidence_of(path, SectionLabel.PREFILL) == {Evidence.REPORTED.value}
    assert evidence_of(path, SectionLabel.DECODE) == {Evidence.REPORTED.value}
    assert SectionLabel.TOOL.value in path["totals_ns"]


def evidence_of(path: dict[str, Any], label: SectionLabel) -> set[str]:
    return {each["evidence"] for each in path["sections"] if each["label"] == label.value}


def check_operations(document: dict[str, Any], root: dict[str, Any]) -> None:
    """The longer retrieval is on the path, the other one hidden beside it; the tool is on it."""
    ids = {operation["name"]: operation["span_id"] for operation in document["operations"]}
    accounts = root["operations"]
    policy, hidden = ids[retrieval_span_name("policy")], ids[retrieval_span_name("accounts")]
    assert accounts[policy]["e2e_self_ns"] > 0
    assert "e2e_self_ns" not in accounts[hidden]
    assert accounts[hidden]["slack_ns"] > 0
    assert accounts[ids[tool_span_name("get_orders")]]["e2e_self_ns"] > 0
    assert root["ledger"]["overlapped_ns"] > 0
