"""What the doctor has found, as text for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from llmlat_otel.doctor.findings import Finding, Report

if TYPE_CHECKING:
    from llmlat_otel.doctor.examination import Other

_SIGNS = {"good": ("32", "✓"), "bad": ("31", "✗"), "idle": ("2", "·")}


class Style(NamedTuple):
    """How text is drawn.

    Attributes:
        has_color: Whether escape codes may be written.
    """

    has_color: bool

    def sign(self, kind: str) -> str:
        """A sign for good, bad or idle."""
        code, sign = _SIGNS[kind]
        return self.paint(code, sign)

    def title(self, text: str) -> str:
        """A heading."""
        return self.paint("1", text)

    def paint(self, code: str, text: str) -> str:
        """Text in a colour, if there are any."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.has_color else text


def process_lines(report: Report, style: Style) -> Iterator[str]:
    """A process, as it has shown itself."""
    known = (
        ("llmlat-otel", report.get("version")),
        ("contract", report.get("contract")),
        ("Python", report.get("python")),
        ("process", report.get("pid")),
    )
    yield style.title(", ".join(f"{name} {value}" for name, value in known if value is not None))
    if "at" in report:
        yield f"  as of {report['at']}{', its end' if report.get('has_ended') else ''}"
    if "instrumentors" in report:
        yield style.title("instrumented")
        for name, each in report["instrumentors"].items():
            yield from _instrumentor_lines(name, each, style)
    if "spans" in report:
        yield style.title("spans")
        yield from _span_lines(report["spans"], style)
    if "settings" in report:
        yield style.title("settings")
        yield from (f"  {k}={v}" for k, v in report["settings"]["in_force"].items())


def other_lines(others: Iterable[Other], style: Style) -> Iterator[str]:
    """Instrumentations of others."""
    found = list(others)
    if found:
        yield style.title("other instrumentations that are installed")
        yield from (f"  {each.name}: {each.distribution} {each.version}".rstrip() for each in found)


def finding_lines(title: str, findings: Iterable[Finding], style: Style) -> Iterator[str]:
    """What there is to know, each with what to do about it."""
    found = list(findings)
    if found:
        yield style.title(title)
    for each in found:
        yield f"  {style.sign('bad' if each.is_wrong else 'good')} {each.what}"
        if each.advice:
            yield f"    → {each.advice}"


def _instrumentor_lines(name: str, instrumentor: Report, style: Style) -> Iterator[str]:
    if instrumentor["is_disabled"]:
        yield f"  {style.sign('idle')} {name}: switched off by the environment"
        return
    of_libraries: dict[str, list[Report]] = {}
    for target in instrumentor["targets"]:
        of_libraries.setdefault(target["target"].partition(".")[0], []).append(target)
    for library, targets in of_libraries.items():
        version = instrumentor["libraries"].get(library)
        if version is None:
            yield f"  {style.sign('idle')} {library}: not installed"
        else:
            yield from _library_lines(f"{library} {version}", targets, style)


def _library_lines(library: str, targets: list[Report], style: Style) -> Iterator[str]:
    states = Counter(target["state"] for target in targets)
    kind = "bad" if states["failed"] or states["replaced"] else "idle"
    if kind == "idle" and states["wrapped"]:
        kind = "good"
    if states["wrapped"]:  # Modules that nobody has imported, or that this version does not have.
        del states["waiting"]
    said = ", ".join(f"{count} {state}" for state, count in states.items())
    yield f"  {style.sign(kind)} {library}: {said}"
    others = dict.fromkeys(each for target in targets for each in target.get("others", ()))
    if others:
        yield f"      also wrapped by {', '.join(others)}"
    for target in targets:
        if target["state"] in {"missing", "failed", "replaced"}:
            yield f"      {target['state']}: {target['target']}"


def _span_lines(spans: Report, style: Style) -> Iterator[str]:
    yield f"  {spans['made']} made"
    if "provider" in spans:
        yield f"  to the provider that the application has set: {spans['provider']}"
    for each in spans.get("destinations", ()):
        counts = ("ended", "queued", "sent", "rejected", "failed", "dropped")
        said = ", ".join(f"{each[name]} {name}" for name in counts if name in each)
        kind = "bad" if any(each.get(name) for name in counts[3:]) else "good"
        where = f" at {each['endpoint']}" if "endpoint" in each else ""
        yield f"  {style.sign(kind)} {each['name']}{where}: {said}"
