"""How it goes: what is timed, what has become of the spans, which faults there were.

Shown by `health()`, and with `LLMLAT_HEALTH=PATH` to others, such as `llmlat doctor`.
"""

# ruff: noqa: PLC0415 - what may be missing or broken is imported under the guard
from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from llmlat_otel.core.guard import faults, first_faults, guarded
from llmlat_otel.loading import API
from llmlat_otel.settings import HEALTH
from llmlat_otel.version import VERSION

if TYPE_CHECKING:
    from llmlat_otel.vitals_file import HealthFile

_PYTHON: Final = ".".join(str(each) for each in sys.version_info[:3])

Report = dict[str, Any]


def health() -> Report:
    """How it goes in this process, as a dict that can be written as JSON.

    What is not known is absent, never 0. Times are ISO 8601 in UTC, durations seconds.

    Returns:
        `version`, `contract`, `python`, `pid`, `at`, `is_loaded` (False: the SDK could not be
        imported and does nothing), `instrumentors`, `spans`, `settings`, `faults`.
    """
    return guarded("health", _health) or {}


def _health() -> Report:
    report: Report = {
        "version": VERSION,
        "python": _PYTHON,
        "pid": os.getpid(),
        "is_loaded": API in sys.modules,
    }
    sections: Mapping[str, Callable[[], object]] = {
        "at": _now,
        "contract": _contract,
        "instrumentors": _instrumentors,
        "spans": _spans,
        "settings": _settings,
    }
    for name, section in sections.items() if report["is_loaded"] else ():
        found = guarded("health", section)
        if found is not None:
            report[name] = found
    first = first_faults()
    report["faults"] = {
        target: {"count": count, "first": first.get(target)} for target, count in faults().items()
    }
    return report


def _now() -> str:
    from llmlat_otel.core.runtime import runtime

    clock = runtime().clock
    return _time(clock.anchor().wall_at(clock.now_ns()))


def _time(wall_ns: int) -> str:
    from datetime import datetime, timezone

    at = datetime.fromtimestamp(wall_ns // 1_000_000_000, timezone.utc)
    return at.isoformat().replace("+00:00", "Z")


def _contract() -> str:
    from llmlat_semconv.version import CONTRACT_VERSION

    return CONTRACT_VERSION


def _instrumentors() -> Report:
    from llmlat_otel.instrumentation import states

    report: Report = {}
    for each in states():
        modules = dict.fromkeys(target.module.partition(".")[0] for target in each.targets)
        libraries = {name: version for name in modules if (version := _version(name)) is not None}
        targets = [
            {"target": f"{target.module}.{target.attribute}", "state": target.state.value}
            | ({"others": list(target.others)} if target.others else {})
            for target in each.targets
        ]
        report[each.name] = {
            "is_disabled": each.is_disabled,
            "libraries": libraries,
            "targets": targets,
        }
    return report


_versions: dict[str, str | None] = {}


def _version(library: str) -> str | None:
    """A library's version; None where it is not installed. One that is imported says it itself."""
    if library in sys.stdlib_module_names:
        return _PYTHON
    said = getattr(sys.modules.get(library), "__version__", None)
    if isinstance(said, str):
        return said
    if library not in _versions:
        from importlib.metadata import PackageNotFoundError, version

        try:
            _versions[library] = version(library)
        except PackageNotFoundError:
            _versions[library] = None
    return _versions[library]


def _spans() -> Report:
    from llmlat_otel.core.runtime import runtime
    from llmlat_otel.exporting import destinations

    emitter = runtime().emitter
    theirs, ours = emitter.their_provider(), destinations()
    report: Report = {"made": emitter.spans_made()}
    if theirs is not None:
        report["provider"] = f"{type(theirs).__module__}.{type(theirs).__qualname__}"
    if ours is not None:
        report["destinations"] = [_account(each) for each in ours]
    return report


def _account(destination: object) -> Report:
    """The account of one exporter; what could not be heard is left out."""
    names = ("name", "endpoint", "ended", "queued", "sent", "rejected", "failed", "dropped")
    found = {name: getattr(destination, name) for name in names}
    report: Report = {name: value for name, value in found.items() if value is not None}
    last_error: tuple[str, int] | None = getattr(destination, "last_error")  # noqa: B009
    if last_error is not None:
        report["last_error"] = {"what": last_error[0], "at": _time(last_error[1])}
    return report


def _settings() -> Report:
    from llmlat_otel import exporting, instrumentation
    from llmlat_otel.core.runtime import runtime

    settings = runtime().settings
    refused = (*settings.refused, *instrumentation.refused(), *exporting.refused())
    return {"in_force": settings.in_force(), "refused": list(refused)}


class _Shown:
    """The file in which this process shows its health, if it was asked to."""

    file: HealthFile | None = None
    follows_forks = False

    def show(self) -> None:
        """Show it from now on."""
        path = os.environ.get(HEALTH, "").strip()
        if path:
            from llmlat_otel.vitals_file import HealthFile

            self.file = HealthFile(path, health)
            self.file.begin()
            if not self.follows_forks and hasattr(os, "register_at_fork"):
                self.follows_forks = True
                os.register_at_fork(after_in_child=self.forked)

    def forked(self) -> None:
        """A child shows its own."""
        if self.file is not None:
            guarded("health", self.show)


_shown = _Shown()


def keep_to_ourselves() -> None:
    """Show it to nobody: a doctor who looks at others is none of them."""
    if _shown.file is not None:
        _shown.file.stop()
        _shown.file = None


guarded("health", _shown.show)
