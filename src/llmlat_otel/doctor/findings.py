"""What a process's health means: what is wrong with it, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

Report = Mapping[str, Any]
"""What `health()` returns, perhaps read from a file, perhaps by another version."""


class Finding(NamedTuple):
    """Something to know about a process.

    Attributes:
        what: What there is.
        advice: What to do about it; empty if there is nothing to do.
        is_wrong: Whether it ought not to be.
    """

    what: str
    advice: str = ""
    is_wrong: bool = True


_LISTENS = (
    "start a collector there (`llmlat watch` listens on 127.0.0.1:4317), or say where it is: "
    "OTEL_EXPORTER_OTLP_ENDPOINT"
)
_ADVICE: Final = (
    (r"refused", f"nothing listens there: {_LISTENS}"),
    (
        r"name resolution|name or service not known|nodename|dns|resolv",
        "that host has no address here: correct OTEL_EXPORTER_OTLP_ENDPOINT",
    ),
    (
        r"unauthenticated|permission_denied|\b401\b|\b403\b",
        "it wants to know who sends: set OTEL_EXPORTER_OTLP_HEADERS, such as `api-key=...`",
    ),
    (
        r"unimplemented|\b404\b|\b405\b|\b415\b|http1|socket closed|protocol|preface|goaway",
        "it speaks another protocol: OTEL_EXPORTER_OTLP_PROTOCOL is grpc (usually port 4317) or "
        "http/protobuf (usually 4318)",
    ),
    (
        r"ssl|certificate|tls|wrong_version",
        "is it http:// or https://? A certificate of one's own is named by "
        "OTEL_EXPORTER_OTLP_CERTIFICATE",
    ),
    (
        r"deadline|timed out|timeout|unreachable|no route",
        "nothing answers there in time: is the address right, and is a firewall in between?",
    ),
    (r"resource_exhausted|\b429\b", "it has too much to do, or the request is too large for it"),
)


def findings(report: Report) -> list[Finding]:
    """What there is to know about a process that has shown its health."""
    if not report.get("is_loaded", True):
        first = report.get("faults", {}).get("import", {}).get("first")
        what = f"llmlat_otel could not be imported and does nothing: {first or 'no reason known'}"
        return [Finding(what, "bring its dependencies up to date: pip install -U llmlat-otel")]
    return [
        *_of_instrumentors(report.get("instrumentors", {})),
        *_of_spans(report.get("spans", {})),
        *_of_settings(report.get("settings", {})),
        *_of_faults(report),
    ]


def advice_on(error: str) -> str:
    """What to do about an exporter's error; empty if that is not known."""
    return next((advice for sign, advice in _ADVICE if re.search(sign, error, re.IGNORECASE)), "")


def _of_instrumentors(instrumentors: Report) -> Iterator[Finding]:
    states = {t["state"] for each in instrumentors.values() for t in each["targets"]}
    if states == {"off"}:
        is_wanted = not all(each["is_disabled"] for each in instrumentors.values())
        what = "nothing is instrumented"
        if is_wanted:
            yield Finding(f"{what}: nobody has asked for it", "import llmlat_otel.auto")
        else:
            yield Finding(f"{what}: LLMLAT_DISABLED or OTEL_SDK_DISABLED says so", is_wrong=False)
    for each in instrumentors.values():
        yield from _of_targets(each)


def _of_targets(instrumentor: Report) -> Iterator[Finding]:
    of_libraries: dict[str, list[Report]] = {}
    for target in instrumentor["targets"]:
        of_libraries.setdefault(target["target"].partition(".")[0], []).append(target)
    for library, targets in of_libraries.items():
        for target in targets:
            if target["state"] == "failed":
                yield Finding(f"{target['target']} could not be wrapped", "see the faults")
            if target["state"] == "replaced":
                yield Finding(
                    f"somebody has replaced {target['target']} since it was wrapped",
                    "instrumentations are to be taken off in the reverse order",
                )
        if {target["state"] for target in targets} <= {"missing", "waiting"} and any(
            target["state"] == "missing" for target in targets
        ):
            version = instrumentor["libraries"].get(library, "")
            what = f"{library} {version} has none of the methods that are timed"
            yield Finding(what, "is it too old, too new, or another package of that name?")


def _of_spans(spans: Report) -> Iterator[Finding]:
    for each in spans.get("destinations", ()):
        where = f"{each['name']} at {each['endpoint']}" if "endpoint" in each else each["name"]
        last_error, at = (each.get("last_error", {}).get(key, "") for key in ("what", "at"))
        for what in ("failed", "rejected", "dropped"):
            if each.get(what):
                advice = advice_on(last_error)
                why = f"at last {at}: {last_error}"
                if what == "dropped":
                    why, advice = "the queue was full", "raise OTEL_BSP_MAX_QUEUE_SIZE"
                yield Finding(f"{each[what]} spans {what}, {where}, {why}", advice)


def _of_settings(settings: Report) -> Iterator[Finding]:
    for each in settings.get("refused", ()):
        yield Finding(each, "correct or unset it")


def _of_faults(report: Report) -> Iterator[Finding]:
    """Our own faults; that a version of a library lacks a method is none."""
    missing = {
        target["target"]
        for each in report.get("instrumentors", {}).values()
        for target in each["targets"]
        if target["state"] == "missing"
    }
    for target, fault in report.get("faults", {}).items():
        if target not in missing:
            times = "once" if fault["count"] == 1 else f"{fault['count']} times"
            what = f"a fault of ours, {times}, in {target}: {fault['first']}"
            yield Finding(what, "the program went on; please report it")
