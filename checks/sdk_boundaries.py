"""What one file of the SDK may do and no other: clock, signals, proxies, the OpenTelemetry SDK."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from checks.syntax import imports, is_within, last_name
from checks.tree import SDK, Module, modules
from checks.violation import Violation


@dataclass(frozen=True, slots=True)
class Boundary:
    """Names that only some files may import, and methods that only they may call."""

    owners: tuple[str, ...]
    imported: tuple[str, ...]
    called: tuple[str, ...]
    why: str
    fix: str
    free: tuple[str, ...] = ()  # parts of what is imported that anybody may import


BOUNDARIES = (
    Boundary(
        owners=("core/clock.py",),
        imported=("time",),
        called=(),
        why="one clock, anchored and bounded; a second way to read time cannot be trusted or faked",
        fix="take the clock, or a reading of it, as an argument",
    ),
    Boundary(
        owners=(
            "core/emit.py",
            "core/engine_spans.py",
            "core/outputs.py",
            "core/server_spans.py",
            "providing.py",
            "testing.py",
        ),
        imported=(
            "opentelemetry.trace",
            "opentelemetry.metrics",
            "opentelemetry._logs",
            "opentelemetry._events",
        ),
        called=(
            "add_event",
            "add_link",
            "create_counter",
            "create_histogram",
            "get_current_span",
            "get_meter",
            "get_tracer",
            "record_exception",
            "set_attribute",
            "set_attributes",
            "set_status",
            "start_as_current_span",
            "start_span",
            "update_name",
        ),
        why="a recording becomes telemetry in one place, so cost and faults have one place too",
        fix="hand the recording to core/emit.py",
        free=(  # propagation carries no signal, and types are named where a span is handed on
            "opentelemetry.trace.INVALID_SPAN",
            "opentelemetry.trace.NonRecordingSpan",
            "opentelemetry.trace.SpanContext",
            "opentelemetry.trace.TraceFlags",
            "opentelemetry.metrics.MeterProvider",
            "opentelemetry.trace.propagation",
            "opentelemetry.trace.Span",
            "opentelemetry.trace.TracerProvider",
        ),
    ),
    Boundary(
        owners=("providing.py", "testing.py"),
        imported=("opentelemetry.sdk",),
        called=(),
        why="a library works with whatever provider the app has set; only the one import makes one",
        fix="use the OpenTelemetry API, through core/emit.py",
    ),
    Boundary(
        owners=("core/wrapping.py",),
        imported=(
            "wrapt.BaseObjectProxy",
            "wrapt.BoundFunctionWrapper",
            "wrapt.CallableObjectProxy",
            "wrapt.FunctionWrapper",
            "wrapt.ObjectProxy",
            "wrapt.PartialCallableObjectProxy",
            "wrapt.proxies",
            "wrapt.wrappers",
        ),
        called=(
            "BaseObjectProxy",
            "BoundFunctionWrapper",
            "CallableObjectProxy",
            "FunctionWrapper",
            "ObjectProxy",
            "PartialCallableObjectProxy",
        ),
        why="sync, async, stream and abandoned calls share one call path, or they drift apart",
        fix="wrap through core/wrapping.py",
    ),
)


def violations(root: Path) -> list[Violation]:
    """Imports and calls in the SDK outside the files that own them."""
    return [
        Violation(module.path, line, what, boundary.why, boundary.fix)
        for module in modules(root, SDK)
        for boundary in BOUNDARIES
        if module.path.removeprefix(f"{SDK}/") not in boundary.owners
        for line, what in _crossings(module, boundary)
    ]


def _crossings(module: Module, boundary: Boundary) -> Iterator[tuple[int, str]]:
    lines = {
        line: f"imports {name}"
        for line, name in imports(module.tree)
        if any(is_within(name, owned) for owned in boundary.imported)
        and not any(is_within(name, free) for free in boundary.free)
    }
    for used in (expression for node in ast.walk(module.tree) for expression in _uses(node)):
        if last_name(used) in boundary.called:
            lines.setdefault(used.lineno, f"uses {last_name(used)}")
    yield from sorted(lines.items())


def _uses(node: ast.AST) -> list[ast.expr]:
    """What is called or inherited from; our own emitter may be asked by anybody."""
    if isinstance(node, ast.ClassDef):
        return node.bases
    if isinstance(node, ast.Call):
        owner = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        return [] if last_name(owner) == "emitter" else [node.func]
    return []
