"""App → gateway → vLLM for real, and what `llmlat show` says of it beside what the engine says.

app                 gateway of examples/gateway-asgi          vLLM
 agent, chat ──────> gateway, chat ─────────────────────────> engine, or vLLM's own span
                                                                its phases: what all is held against
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from children import Children
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase, duration_attribute
from llmlat_semconv.values import FindingKind
from tests.engines.installed import ROOT, sends_to
from tests.engines.questions import QUESTIONS, Question
from tests.engines.vllm_server import FEW_BLOCKS, PATIENCE_S, SMALL_BUDGET, VllmServer
from tests.faults.processor_run import free_port, wait_until
from tests.llmlat_processor.http_sink import HttpSink, http_sink

APP, GATEWAY, ENGINE = "app", "gateway", "vllm"
NATIVE_SPAN: Final = "llm_request"
OF_ENGINE: Final = ("engine chat", NATIVE_SPAN)
MS: Final = 1_000_000
PHASES: Final = frozenset(phase.value for phase in Phase)

HONEST: Final = frozenset((FindingKind.STREAM_HELD.value,))
"""What may be found: a stream is held wherever few cores have too much to do."""

OPTIONS: Final = (
    *FEW_BLOCKS,
    *SMALL_BUDGET,
    "--max-num-seqs=4",
    "--scheduling-policy=priority",
)

ONE_CORE: Final = ("taskset", "--cpu-list", str(min(os.sched_getaffinity(0))))
"""A prefix: app and gateway have the other cores. Where an engine has all of them, its processes
look for work without a pause, and the others wait for hundreds of milliseconds here and there."""

PAIRS: Final = 3
ROUNDS: Final[Sequence[Sequence[Question]]] = (
    # Modules are imported, and the connections of all the rest are made.
    [Question(f"warm-up {number}", 8, 4) for number in range(9)],
    [Question("alone", 40, 30)],
    # 7 blocks of a prompt, four steps of its prefill; then the same prompt, of which one is left.
    *(
        [Question(f"{kind} {number}", 190, 2, about=str(number))]
        for number in range(PAIRS)
        for kind in ("cold", "cached")
    ),
    # Four at a time: whoever comes behind sixteen waits for all of their answers.
    [
        *(Question(f"ahead {number}", 8, 70, is_streamed=False) for number in range(16)),
        Question("queued", 8, 2, priority=1),
    ],
    # 12 blocks of 32 tokens for four requests: they last until each has 96 tokens. One is evicted
    # then, and waits until the others, who go on to 250, leave some to it.
    [
        *(Question(f"rival {each}", 45, 190, about=each, is_streamed=False) for each in "abc"),
        Question("evicted", 45, 80, about="d", priority=1),
    ],
)
"""What is asked of every server here."""

NAMES: Final = tuple(question.name for questions in ROUNDS for question in questions)

_AGENT: Final = "invoke_agent "
_GATEWAY: Final = ("-m", "uvicorn", "gateway:app", f"--app-dir={ROOT}/examples/gateway-asgi")


def spans_of(
    folder: Path, *, clock: Sequence[str] = (), is_native: bool = False, plugin: bool = True
) -> ExportTraceServiceRequest:
    """Start vLLM, ask everything, and end all: the spans of all processes.

    Args:
        folder: an empty one, for what they print.
        clock: a prefix, such as `OWN_CLOCK`.
        is_native: whether vLLM's own tracing is on.
        plugin: whether our code is in the engine.
    """
    with http_sink() as otlp:
        options = list(OPTIONS)
        environment = {**sends_to(otlp.url), "OTEL_SERVICE_NAME": ENGINE}
        if is_native:
            options.append(f"--otlp-traces-endpoint={otlp.url}/v1/traces")
            environment["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
        prefix = (*clock, *ONE_CORE)
        with VllmServer(
            folder, options, environment=environment, plugin=plugin, prefix=prefix
        ) as server:
            _ask(server, otlp, folder)
            # vLLM's own exporter does not send what it still has as it ends.
            wait_until(
                lambda: sum(name in OF_ENGINE for name in otlp.names()) >= len(NAMES),
                server.last_words,
                PATIENCE_S,
            )
            server.stop()
        return ExportTraceServiceRequest.FromString(b"".join(otlp.requests))


def _ask(server: VllmServer, otlp: HttpSink, folder: Path) -> None:
    common = sends_to(otlp.url)
    port = free_port()
    ours = os.pathsep.join(str(ROOT / each) for each in ("", "examples/jaeger"))
    with Children(folder) as children:
        gateway = children.start(
            GATEWAY,
            [sys.executable, *_GATEWAY, f"--port={port}"],
            **common,
            OTEL_SERVICE_NAME=GATEWAY,
            OPENAI_BASE_URL=f"{server.url}/v1",
        )
        gateway.listening(f"127.0.0.1:{port}")
        app = children.start(
            APP,
            [sys.executable, "-m", "tests.engines.asking"],
            **common,
            PYTHONPATH=ours,
            OTEL_SERVICE_NAME=APP,
            OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1",
            OPENAI_API_KEY="none",
            **{QUESTIONS: json.dumps(ROUNDS)},
        )
        app.finished(patience_s=PATIENCE_S)


class Account(NamedTuple):
    """One operation as its own spans tell of it.

    Attributes:
        span: of the operation.
        phases_ns: how long each phase took; `decode` without what the request was evicted for.
    """

    span: Span
    phases_ns: dict[str, int]

    def attribute(self, name: str) -> Any:
        """What the operation says."""
        return attribute(self.span.attributes, name)


class Seen(NamedTuple):
    """One trace.

    Attributes:
        document: `llmlat show --json` of it.
        accounts: of its operations, by their ids.
    """

    document: Mapping[str, Any]
    accounts: Mapping[str, Account]

    @property
    def account(self) -> Account:
        """The engine's."""
        (account,) = (each for each in self.accounts.values() if each.span.name in OF_ENGINE)
        return account

    @property
    def root(self) -> Any:
        """The only one."""
        (root,) = self.document["roots"]
        return root

    @property
    def operations(self) -> Any:
        """All of it, from the root on."""
        return self.document["operations"]

    @property
    def findings(self) -> Any:
        """What is wrong with it."""
        return self.document["findings"]

    def of_engine(self, path: str) -> list[Any]:
        """The sections of a path that lie in the engine's operation."""
        span_id = self.account.span.span_id.hex()
        return [each for each in self.root[path]["sections"] if each["span_id"] == span_id]

    def engine_ns(self, path: str) -> dict[str, int]:
        """How much of a path each phase of the engine takes."""
        return totals(
            (each["label"], each["duration_ns"])
            for each in self.of_engine(path)
            if each["label"] in PHASES
        )


def explained(spans: ExportTraceServiceRequest, folder: Path) -> dict[str, Seen]:
    """What the product says of the questions, by their names."""
    file = folder / "spans.pb"
    file.write_bytes(spans.SerializeToString())
    command = [str(Path(sys.executable).with_name("llmlat")), "show", "--json", str(file)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    accounts: dict[str, dict[str, Account]] = {}
    for each in _accounts(spans):
        accounts.setdefault(each.span.trace_id.hex(), {})[each.span.span_id.hex()] = each
    seen = {}
    for line in told.splitlines():
        document = json.loads(line)
        name: str = document["roots"][0]["name"]
        if name.startswith(_AGENT):
            seen[name.removeprefix(_AGENT)] = Seen(document, accounts[document["trace_id"]])
    return seen


def of_engine(spans: ExportTraceServiceRequest) -> Iterator[ResourceSpans]:
    """What the engine's processes have sent."""
    for each in spans.resource_spans:
        if attribute(each.resource.attributes, names.SERVICE_NAME) == ENGINE:
            yield each


def attribute(attributes: Iterable[Any], name: str) -> Any:
    """The value of an attribute; None if there is none."""
    for each in attributes:
        if each.key == name:
            return getattr(each.value, each.value.WhichOneof("value"))
    return None


def totals(amounts: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The sum of each label's amounts, in the order in which they appear first."""
    sums: dict[str, int] = {}
    for label, amount in amounts:
        sums[label] = sums.get(label, 0) + amount
    return sums


def _accounts(spans: ExportTraceServiceRequest) -> Iterator[Account]:
    below: dict[bytes, list[Span]] = {}
    operations = []
    for sent in spans.resource_spans:
        for span in (span for scope in sent.scope_spans for span in scope.spans):
            if _said(span, names.LLMLAT_PHASE_NAME) is None:
                operations.append(span)
            else:
                below.setdefault(span.parent_span_id, []).append(span)
    for span in operations:
        yield Account(span, _phases(span, below.get(span.span_id, ())))


def _phases(operation: Span, phases: Iterable[Span]) -> dict[str, int]:
    """From the phase spans, and from the attributes of those that are too short for one."""
    found = [(_said(each, names.LLMLAT_PHASE_NAME), _size_ns(each)) for each in phases]
    for phase in Phase:
        seconds = _said(operation, duration_attribute(phase))
        if seconds is not None:
            found.append((phase.value, round(seconds * 1e9)))
    sums = totals(found)
    if Phase.DECODE.value in sums:
        sums[Phase.DECODE.value] -= sums.get(Phase.PREEMPTED.value, 0)  # It lies within.
    return sums


def _size_ns(phase: Span) -> int:
    seconds: float = _said(phase, names.LLMLAT_PHASE_DURATION)
    return round(seconds * 1e9)


def _said(span: Span, name: str) -> Any:
    return attribute(span.attributes, name)
