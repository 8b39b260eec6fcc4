"""The demo's request in a real Jaeger, behind a real OpenTelemetry Collector.

Starts what `make demo` starts, and Jaeger and the Collector of examples/jaeger (built by
`make peers`); says what to search there, and leaves all of it running until Ctrl-C.

    adviser, gateway ──> collector ──> llmlat processor ──> collector ──> Jaeger
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

from rich.console import Console

from children import ChildError, Children
from llmlat_semconv.attributes import LLMLAT_CRITICAL_PATH_DOMINANT_PHASE, LLMLAT_SECTION_LABEL
from llmlat_semconv.phases import finding_attribute
from llmlat_semconv.spans import lane_span_name
from llmlat_semconv.values import FindingKind
from parties import adviser_asks, busy, start_engine, start_gateway
from progress import Progress
from staging import options_of, staged

sys.path.append(str(Path(__file__).parents[1] / "jaeger"))
from backends import (
    Addresses,
    MissingPeerError,
    collector,
    jaeger,
    processor,
)

__all__ = ["main"]

LANE = "~critical path"
PATIENCE_S = 300
EXAMPLES = """\
examples:
  %(prog)s                      a real 270M model under llama.cpp
  %(prog)s --engine emulated    no model: a scheduler that behaves like an engine's

exit codes: 0 ended by Ctrl-C, 1 something failed, 2 wrong usage, 130 interrupted before it was up
"""

_loopback = build_opener(ProxyHandler({}))  # whatever proxy the environment names


def main(argv: Sequence[str] | None = None) -> int:
    """Run it; returns the exit code."""
    options = options_of(__doc__, EXAMPLES).parse_args(argv)
    return staged(partial(_run, options))


def _run(options: argparse.Namespace, folder: Path, console: Console) -> None:
    addresses = Addresses.free()
    with Children(folder) as children:
        with Progress(console) as progress:
            progress.step("starting Jaeger, the Collector and llmlat processor")
            _start_backends(children, addresses, folder)
            progress.step(f"starting the model server ({options.engine}) and the gateway")
            server = start_engine(children, options.engine)
            client = start_gateway(children, server, addresses.otlp_grpc)
            progress.step("starting three busy colleagues, and the adviser beside them")
            with busy(children, server):
                adviser_asks(children, client, addresses.otlp_grpc, progress.step)
            progress.step("waiting until the trace is in Jaeger")
            trace = _wait_for_lane(addresses)
        _explain(addresses, trace, options.report)
        _say_what_to_search(addresses, trace, console)
        _say_what_else(addresses, trace, client, options.report, console)
        _wait_for_interrupt(console)
    console.print("Everything is stopped.")


def _start_backends(children: Children, addresses: Addresses, folder: Path) -> None:
    try:
        backends = {
            "jaeger": jaeger(addresses),
            "collector": collector(addresses, folder / "queue"),
        }
    except MissingPeerError as missing:
        raise ChildError(str(missing)) from missing
    between = children.start(
        "processor", processor(addresses, folder / "processor", "--jaeger-warnings")
    )
    between.listening(addresses.processor)
    for name, backend in backends.items():
        child = children.start(name, backend.command, **backend.environment)
        child.healthy(backend.ready)


def _wait_for_lane(addresses: Addresses) -> dict[str, Any]:
    """The adviser's trace, once its critical path is there."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for trace in _found(addresses, {"service": LANE}):
            if _is_whole(trace):
                return trace
        time.sleep(0.5)
    raise ChildError(f"no critical path came to Jaeger within {PATIENCE_S} s")


def _found(addresses: Addresses, asked: Mapping[str, str]) -> list[dict[str, Any]]:
    url = f"http://{addresses.jaeger_http}/api/traces?{urlencode(asked)}"
    try:
        with _loopback.open(url) as response:
            return list(json.load(response)["data"])
    except OSError as error:
        raise ChildError(f"Jaeger does not answer any more: {error}") from error


def _is_whole(trace: Mapping[str, Any]) -> bool:
    """Whether all is there that its spans point to: the collector's batches may part a trace."""
    ids = {span["spanID"] for span in trace["spans"]}
    return all(to["spanID"] in ids for span in trace["spans"] for to in span["references"])


def _explain(addresses: Addresses, trace: Mapping[str, Any], report: Path) -> None:
    """What Jaeger has of it, explained on the terminal and as a page."""
    report.parent.mkdir(parents=True, exist_ok=True)
    show = [_llmlat(), "show", _source(addresses, trace)]
    for command in (show, [*show, f"--html={report}"]):
        ended = subprocess.run(command, check=False).returncode
        if ended:
            raise ChildError(f"llmlat show ended with status {ended}")


def _say_what_to_search(addresses: Addresses, trace: Mapping[str, Any], console: Console) -> None:
    """Searches of which each finds the trace."""
    api = f"http://{addresses.jaeger_http}/api/traces"
    says = _lane_root(trace)
    dominant = says[LLMLAT_CRITICAL_PATH_DOMINANT_PHASE]
    section = _longest_section(trace, dominant)
    half = f"{section['duration'] // 2_000}ms"
    lines = [
        "",
        f"Jaeger, at http://{addresses.jaeger_http}, has this trace: {trace['traceID']}",
        "What people search there, and what finds it:",
        "",
        f"requests dominated by {dominant}:",
        _curl(api, service="adviser", tags=_json(LLMLAT_CRITICAL_PATH_DOMINANT_PHASE, dominant)),
        f"{section['operationName']} for {half} or longer:",
        _curl(api, service=LANE, operation=section["operationName"], minDuration=half),
        *(
            line
            for kind in FindingKind
            if finding_attribute(kind) in says
            for line in (
                f"requests with the finding {kind.value}:",
                _curl(api, service="adviser", tags=_json(finding_attribute(kind), "true")),
            )
        ),
        "",
        "These parameters are the fields of the search form in Jaeger's UI, which comes with its",
        "releases and not with the one that `make peers` builds. More: examples/jaeger/README.md",
    ]
    _print(console, lines)


def _say_what_else(
    addresses: Addresses,
    trace: Mapping[str, Any],
    client: Mapping[str, str],
    report: Path,
    console: Console,
) -> None:
    otlp = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{addresses.otlp_grpc}",
        "OTEL_SERVICE_NAME": "my-app",
    }
    exports = (f"  export {name}={value}" for name, value in {**client, **otlp}.items())
    shown = shlex.join([os.path.relpath(_llmlat()), "show", _source(addresses, trace)])
    lines = [
        "",
        f"The trace as a page, with what would have helped: {report}",
        "The picture above, once more:",
        f"  {shown}",
        "For an app of your own, with one import:",
        *exports,
        "",
    ]
    _print(console, lines)


def _print(console: Console, lines: Sequence[str]) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _llmlat() -> str:
    return str(Path(sys.executable).with_name("llmlat"))


def _source(addresses: Addresses, trace: Mapping[str, Any]) -> str:
    return f"jaeger://{addresses.jaeger_http}/{trace['traceID']}"


def _lane_root(trace: Mapping[str, Any]) -> dict[str, str]:
    """The attributes of the lane's root."""
    (root,) = (span for span in trace["spans"] if span["operationName"] == lane_span_name())
    return _tags(root)


def _longest_section(trace: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Of the sections with a label; of all, where the path has it in slivers only."""
    labels = {span["spanID"]: _tags(span).get(LLMLAT_SECTION_LABEL) for span in trace["spans"]}
    sections = [span for span in trace["spans"] if labels[span["spanID"]]]
    return max(sections, key=lambda span: (labels[span["spanID"]] == label, span["duration"]))


def _tags(span: Mapping[str, Any]) -> dict[str, str]:
    return {tag["key"]: str(tag["value"]) for tag in span["tags"]}


def _json(key: str, value: str) -> str:
    return json.dumps({key: value})


def _curl(url: str, **asked: str) -> str:
    """A search as a command that prints the ids of what it finds."""
    fields = " ".join(
        f"--data-urlencode {shlex.quote(f'{name}={value}')}" for name, value in asked.items()
    )
    return f"""  curl -sG {url} {fields} | grep -o '"traceID":"[0-9a-f]*"' | sort -u"""


def _wait_for_interrupt(console: Console) -> None:
    """Until Ctrl-C, which is how this ends when all is well."""
    try:
        # Plainly: what rich is interrupted in, it may print again with the next words.
        print("Everything goes on until Ctrl-C.", file=console.file, flush=True)
        threading.Event().wait()
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    sys.exit(main())
