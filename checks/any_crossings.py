"""`Any` stands only where a foreign object crosses into the product."""

from pathlib import Path

from checks.syntax import imports
from checks.tree import PROCESSOR, PRODUCT, SDK, modules
from checks.violation import Violation

CROSSINGS = (
    f"{SDK}/asgi.py",
    f"{SDK}/core/attempt.py",
    f"{SDK}/core/bodies.py",
    f"{SDK}/core/call.py",
    f"{SDK}/core/exchanges.py",
    f"{SDK}/core/instrumentor.py",
    f"{SDK}/core/late_streams.py",
    f"{SDK}/core/manual.py",
    f"{SDK}/core/pulls.py",
    f"{SDK}/core/reported.py",
    f"{SDK}/core/steps.py",
    f"{SDK}/core/streams.py",
    f"{SDK}/core/upstream.py",
    f"{SDK}/core/wrapping.py",
    f"{SDK}/destinations.py",
    f"{SDK}/doctor/",
    f"{SDK}/instrumentors/",
    f"{SDK}/providing.py",
    f"{SDK}/stand_ins.py",
    f"{SDK}/testing.py",
    f"{SDK}/vitals.py",
    f"{PROCESSOR}/wire/",
)


def violations(root: Path) -> list[Violation]:
    """Modules that import `typing.Any` and meet no object of a user, a library or a file."""
    return [
        Violation(
            module.path,
            line,
            "imports Any",
            "what is Any is not checked, and neither is what it touches",
            "a type, a type variable or a protocol; object where nothing is asked of it",
        )
        for module in modules(root, *PRODUCT)
        if not module.path.startswith(CROSSINGS)
        for line, name in imports(module.tree)
        if name == "typing.Any"
    ]
