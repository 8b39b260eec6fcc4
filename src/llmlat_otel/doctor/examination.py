"""The doctor's own process as the patient: its libraries, its environment and a test span."""

# ruff: noqa: PLC0415 - nothing is imported before it is asked for: that is what is examined
from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import Any, Final, NamedTuple

from llmlat_otel import flush, health, tool
from llmlat_otel.core.guard import guarded
from llmlat_otel.doctor.findings import Finding, Report, advice_on

TEST_SPAN: Final = "llmlat-doctor"
PATIENCE_S: Final = 15.0


class Other(NamedTuple):
    """Another instrumentation that is installed."""

    name: str
    distribution: str
    version: str


class Examination(NamedTuple):
    """What was found out.

    Attributes:
        report: The health of this process, when a test span was sent.
        others: Instrumentations of others for OpenTelemetry that are installed.
        answers: What each destination said of the test span.
    """

    report: Report
    others: tuple[Other, ...]
    answers: tuple[Finding, ...]


def examine() -> Examination:
    """Instrument every library that is installed here, and send a span with the same settings."""
    for logger in ("opentelemetry", "llmlat_otel"):  # What they log is in the report.
        logging.getLogger(logger).addHandler(logging.NullHandler())
        logging.getLogger(logger).propagate = False
    import_module("llmlat_otel.auto")
    guarded("doctor", _import_libraries)
    with tool(TEST_SPAN):
        pass
    flush(PATIENCE_S)
    report = health()
    return Examination(report, tuple(_others()), tuple(_answers(report)))


def _import_libraries() -> None:
    """Modules that a version does not have stay unimported, and those that nobody wants timed."""
    from llmlat_otel.instrumentation import states

    for instrumentor in states():
        wanted = () if instrumentor.is_disabled else instrumentor.targets
        for module in dict.fromkeys(target.module for target in wanted):
            try:
                import_module(module)
            except ImportError:
                continue


def _others() -> Iterator[Other]:
    for entry in sorted(entry_points(group="opentelemetry_instrumentor"), key=lambda e: e.name):
        name = entry.dist.name if entry.dist is not None else ""
        if entry.module.partition(".")[0] != "llmlat_otel":
            try:
                yield Other(entry.name, name, version(name) if name else "")
            except PackageNotFoundError:
                yield Other(entry.name, name, "")


def _answers(report: Report) -> Iterator[Finding]:
    spans = report.get("spans", {})
    if "provider" in spans:
        yield Finding(f"spans go to the provider {spans['provider']}", is_wrong=False)
    elif not spans.get("destinations"):
        what = "spans go nowhere, unless the application sets a provider"
        yield Finding(what, "see OTEL_TRACES_EXPORTER and OTEL_SDK_DISABLED", is_wrong=False)
    for each in spans.get("destinations", ()):
        yield _answer(each)


def _answer(destination: dict[str, Any]) -> Finding:
    where = f"{destination['name']} at {destination.get('endpoint', 'an address it does not tell')}"
    error = destination.get("last_error", {}).get("what", "no answer in time")
    if destination.get("sent"):
        return Finding(f"{where} has accepted the test span", is_wrong=False)
    said = "has refused the test span" if destination.get("rejected") else "has not taken it"
    return Finding(f"{where} {said}: {error}", advice_on(error))
