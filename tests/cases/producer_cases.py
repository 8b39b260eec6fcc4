"""Cases of other producers: what they send, as OTLP JSON, beside a call of ours, and what it means.

A look-alike is the same export from another scope: whose names they are decides what they mean.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from llmlat_processor.model import ExplainedTrace
from llmlat_processor.model import Path as CriticalPath
from llmlat_processor.pipeline import process
from llmlat_processor.wire import WireSpan, decode_json
from llmlat_semconv.aliases import PRODUCERS
from tests.cases.case_format import EXACT

FOLDER: Final = Path(__file__).parent / "producers"

KEYS: Final = {"name", "producer", "versions", "source", "note", "otlp", "expected", "look_alikes"}
EXPECTED: Final = {"e2e", "ttft", "findings", "unread", "operations", "absent"}
MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class ProducerCase:
    """One file, or one look-alike in it."""

    name: str
    file: Mapping[str, Any]
    otlp: Mapping[str, Any]
    expected: Mapping[str, Any]

    def spans(self) -> list[WireSpan]:
        """What comes in."""
        decoded = decode_json(json.dumps(self.otlp).encode())
        assert not decoded.damaged, decoded.damaged
        return decoded.spans

    def explained(self) -> ExplainedTrace:
        """What the processor says."""
        return process(self.spans(), EXACT)


def producer_cases() -> list[ProducerCase]:
    """All of them, the look-alikes among them."""
    cases: list[ProducerCase] = []
    for path in sorted(FOLDER.glob("*.json")):
        file = json.loads(path.read_text(encoding="utf-8"))
        cases.append(ProducerCase(path.stem, file, file["otlp"], file["expected"]))
        for number, other in enumerate(file["look_alikes"], 1):
            otlp = _moved(file["otlp"], scopes_of(file["producer"]), other["scope"])
            name = f"{path.stem}, look-alike {number}"
            cases.append(ProducerCase(name, file, otlp, other["expected"]))
    return cases


def scopes_of(producer: str) -> set[str]:
    """The scopes of a producer; a LookupError where there is none of that name."""
    found = [each for each in PRODUCERS if each.name == producer]
    if not found:
        raise LookupError(f"no producer {producer} in aliases.yaml")
    return {scope.name for scope in found[0].scopes}


def _moved(otlp: Mapping[str, Any], scopes: set[str], to: str) -> Mapping[str, Any]:
    """The same export, what came from these scopes from another one."""
    moved: dict[str, Any] = deepcopy(dict(otlp))
    for resource in moved["resourceSpans"]:
        for each in resource["scopeSpans"]:
            if each["scope"]["name"] in scopes:
                each["scope"]["name"] = to
    return moved


def said(expected: list[Mapping[str, Any]]) -> list[str]:
    """Sections as a file states them: `of label amount`, in milliseconds."""
    return [f"{each['of']} {each['label']} {each['amount']:g}" for each in expected]


def found(path: CriticalPath | None) -> list[str]:
    """The same of a path."""
    sections = path.sections if path is not None else ()
    return [f"{each.span.name} {each.label.value} {each.duration_ns / MS:g}" for each in sections]
