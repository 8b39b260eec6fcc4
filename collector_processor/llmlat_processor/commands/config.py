"""`llmlat config`: whether a config file can be used and what would run, and its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TextIO

from llmlat_processor.config.deployment import Configured, read
from llmlat_processor.config.problems import ConfigError, Problem
from llmlat_processor.config.schema import json_schema
from llmlat_processor.config.units import duration_text, seconds_text, size_text
from llmlat_processor.settings import (
    Deployment,
    Destination,
    Explained,
    Listener,
    Mode,
    Protocol,
)

DONE: Final = 0
UNUSABLE: Final = 1

SAYS: Final = "llmlat config"


def load(path: str, environ: Mapping[str, str]) -> Configured:
    """Read a config file, and look at the files that it names.

    Args:
        path: of the file.
        environ: variables that it refers to, and that stand in where it is silent.

    Raises:
        ConfigError: it cannot be read, or not be used.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        fault = Problem(0, "", f"{error.strerror or error}; name a config file that can be read")
        raise ConfigError(path, [fault]) from None
    return read(path, content, environ, _fault_of)


def check(path: str, environ: Mapping[str, str], out: TextIO, err: TextIO, *, as_json: bool) -> int:
    """Say what a config file would run, or all that is wrong with it.

    Args:
        path: of the file.
        environ: as for `load`.
        out: for what would run, and for JSON in any case.
        err: for problems and warnings.
        as_json: one JSON document instead of text.
    """
    try:
        configured = load(path, environ)
    except ConfigError as error:
        if as_json:
            _write({"file": path, "ok": False, "problems": _listed(error.problems)}, out)
        else:
            print(error, file=err)
        return UNUSABLE
    said = summary(configured.deployment)
    if as_json:
        warnings = _listed(configured.warnings)
        _write({"file": path, "ok": True, "warnings": warnings, "summary": said}, out)
    else:
        warn(path, configured.warnings, err)
        print(said, file=out)
    return DONE


def warn(path: str, warnings: Sequence[Problem], err: TextIO) -> None:
    """Say what works, and somebody should know."""
    for warning in warnings:
        print(f"{warning.placed(path)} (a warning)", file=err)


def write_schema(out: TextIO) -> int:
    """Write the JSON Schema of config files."""
    json.dump(json_schema(), out, indent=2)
    out.write("\n")
    return DONE


def summary(deployment: Deployment) -> str:
    """What would run, in one paragraph, with all that is in force; no secret is in it."""
    return " ".join(_sentences(deployment))


def _sentences(deployment: Deployment) -> Iterator[str]:
    window, views = deployment.settings.window, deployment.settings.views
    named = (("gRPC", deployment.grpc), ("HTTP", deployment.http))
    received = [f"over {how} on {_listening(one)}" for how, one in named if one is not None]
    largest = size_text(deployment.settings.max_message_bytes)
    yield f"{deployment.mode.value}: receives OTLP {' and '.join(received)}, up to {largest}."
    if deployment.spans is not None:
        yield f"Spans go {_sending(deployment.spans)}."
    if deployment.derived is not None:
        yield f"Lanes go {_sending(deployment.derived)}."
    elif deployment.mode is Mode.INLINE and views.lane:
        yield "Lanes go with them."
    yield (
        f"A trace goes after {duration_text(window.idle_ns)} of quiet "
        f"({duration_text(window.grace_ns)} where a callee is missing), no span is held for longer "
        f"than {duration_text(window.hold_max_ns)}, at most {size_text(window.held_bytes)} in all "
        f"and {window.trace_spans:,} spans of one trace."
    )
    explained = "every trace" if views.explained is Explained.ALL else "traces with GenAI in them"
    lane = "with" if views.lane else "without"
    warnings = ", findings as warnings for Jaeger" if views.jaeger_warnings else ""
    yield f"Explained is {explained}, {lane} a lane{warnings}."
    yield from _kept(deployment)
    yield from _told(deployment)
    many = "1 worker" if deployment.workers == 1 else f"{deployment.workers} workers"
    yield f"{many}."


def _kept(deployment: Deployment) -> Iterator[str]:
    journal, state = deployment.journal, deployment.state
    if journal is None:
        is_copy = deployment.mode is Mode.TAP
        lost = (
            "the spans are safe elsewhere" if is_copy else "what is held is lost with the process"
        )
        yield f"No journal: {lost}."
    else:
        yield (
            f"A journal of up to {size_text(journal.max_bytes)} "
            f"(durability {journal.durability.value}) in {state}."
        )
    if journal is None and state is not None:
        yield f"State of clocks in {state}."


def _told(deployment: Deployment) -> Iterator[str]:
    metering, telemetry = deployment.metering, deployment.telemetry
    place = "nowhere" if telemetry is None else f"on {_listening(telemetry)}"
    most = f"up to {metering.max_series:,} series each"
    yield f"Health, metrics ({most}) and status are told {place}."
    if metering.destination is not None:
        every = seconds_text(metering.interval_s)
        yield f"Metrics go every {every} {_sending(metering.destination)}."


def _listening(listener: Listener) -> str:
    how = "in the clear"
    if listener.tls is not None:
        how = "TLS" if listener.tls.client_authorities is None else "mutual TLS"
    return f"{listener.address} ({how}{', a token' if listener.token else ''})"


def _sending(destination: Destination) -> str:
    delivery = destination.delivery
    how = "gRPC" if destination.protocol is Protocol.GRPC else "HTTP"
    details = ["in the clear" if destination.tls is None else "TLS"]
    if destination.token:
        details.append("a token")
    if destination.headers:
        details.append(f"headers {', '.join(sorted(destination.headers))}")
    details += [
        f"compression {destination.compression.value}",
        f"requests up to {size_text(delivery.request_bytes)}",
        f"a queue of {size_text(delivery.queue_bytes)}",
        f"given up after {seconds_text(delivery.give_up_s)}",
    ]
    return f"to {destination.endpoint} over {how} ({', '.join(details)})"


def _fault_of(file: Path) -> str:
    """Why a file cannot be read; empty where it can."""
    try:
        with file.open("rb"):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _listed(problems: Sequence[Problem]) -> list[dict[str, object]]:
    return [
        {"line": problem.line or None, "key": problem.key, "problem": problem.words}
        for problem in problems
    ]


def _write(document: Mapping[str, object], out: TextIO) -> None:
    json.dump(document, out)
    out.write("\n")
