"""One run of an example as a newcomer starts it, and what it says afterwards."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmlat_semconv.phases import Phase
from llmlat_semconv.values import SectionLabel

ROOT = Path(__file__).parents[2]
PATIENCE_S = 600

LABELS = {each.value for each in (*Phase, *SectionLabel)}

Json = dict[str, Any]


@dataclass(frozen=True)
class Explained:
    """The one trace of an example, as `llmlat watch --json` writes it, and what it printed."""

    document: Json
    printed: str

    @property
    def root(self) -> Json:
        """Its only root."""
        (root,) = self.document["roots"]
        return dict(root)

    def names(self) -> set[str]:
        """The names of its operations."""
        return {each["name"] for each in self.document["operations"]}

    def named(self, name: str) -> list[Json]:
        """Operations by name."""
        return [each for each in self.document["operations"] if each["name"] == name]

    def one(self, name: str) -> Json:
        """The operation of that name."""
        (found,) = self.named(name)
        return found

    def above(self, operation: Json) -> list[str]:
        """The names above an operation, the nearest one first."""
        by_id = {each["span_id"]: each for each in self.document["operations"]}
        names = []
        while operation := by_id.get(operation["parent_id"], {}):
            names.append(operation["name"])
        return names

    def path_ns(self, goal: str, operation: Json) -> int | None:
        """An operation's own time on a path; None if it is not on it."""
        account: dict[str, int] = self.root["operations"][operation["span_id"]]
        return account.get(f"{goal}_self_ns")

    def evidence(self, goal: str, label: str) -> set[str]:
        """On what the sections with a label rest, on a path."""
        sections = self.root[goal]["sections"]
        return {each["evidence"] for each in sections if each["label"] == label}


def start(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    """The runner of examples, in a session of its own, without a model server of ours."""
    hidden = ("OPENAI_", "LLMLAT_")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    return subprocess.Popen(
        [sys.executable, str(ROOT / "examples" / "offline.py"), *arguments],
        env={**inherited, "COLUMNS": "100", "NO_COLOR": "1", **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Its exit code, what it printed, and its errors; nothing that it started runs on."""
    printed, errors = process.communicate(timeout=PATIENCE_S)
    assert not is_alive(process.pid), "processes of the example are left"
    return process.returncode, printed, errors


def is_alive(session: int) -> bool:
    """Whether anything of a session is left."""
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return False
    return True


def explained(example: str) -> Explained:
    """Run an example that has to succeed."""
    code, printed, errors = finish(start(example, "--json"))
    assert (code, errors) == (0, "")
    said, *traces = re.split(r"^(?=\{)", printed, flags=re.MULTILINE)
    (trace,) = map(json.loads, traces)  # all of it is one trace
    return Explained(trace, said)


def drawn_operations(readme: Path) -> set[str]:
    """The operations that a document's picture of a trace has rows for."""
    text = readme.read_text(encoding="utf-8")
    rows = re.findall(r"^[● ][◆ ] [│├└ ]*([A-Za-z]\S*(?: \S+)*)  .*\d m?s\b", text, re.MULTILINE)
    return set(rows) - LABELS
