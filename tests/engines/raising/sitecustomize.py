"""Whatever of llmlat-otel works on a request raises: Python imports this as it starts.

It does so where `PYTHONPATH` leads here; `RAISING` names a folder. While a file `always` lies in it
every function raises before it does its work, else each does now and then, before its work or
after it. Which there are is written into `seams`, and which have raised into one file per process.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

_PACKAGE: Final = "llmlat_otel"
_MODULES: Final = (
    "instrumentors.vllm.arrivals",
    "instrumentors.vllm.frontend",
    "instrumentors.vllm.notes",
    "instrumentors.vllm.requests",
    "instrumentors.vllm.scheduler",
    "core.engine_spans",
    "core.engine_timeline",
    "core.native_spans",
    "core.emit",
)
_GUARDS: Final = frozenset(("guarded", "replaced"))
_ERRORS: Final = (RuntimeError, KeyError, TypeError, MemoryError, StopIteration, AssertionError)
_SELDOM: Final = 40
"""One call in so many: what is called by others that raise is reached as well."""

_folder: Final = Path(os.environ["RAISING"])
_random: Final = random.Random(8)
_raised: set[str] = set()


def _raise(name: str) -> None:
    if name not in _raised:
        _raised.add(name)
        with (_folder / f"raised-{os.getpid()}").open("a") as file:
            file.write(f"{name}\n")
    raise _random.choice(_ERRORS)(name)


def _raising(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    calls = itertools.count(1)

    @functools.wraps(function)
    def raises(*args: Any, **kwargs: Any) -> Any:
        if (_folder / "always").exists():
            _raise(name)
        number = next(calls)
        if number == 2 or number % _SELDOM == 0:
            _raise(name)
        result = function(*args, **kwargs)
        if number == 4 or number % _SELDOM == _SELDOM // 2:
            _raise(name)
        return result

    return raises


def _seams(module: ModuleType, wrappers: set[Any]) -> Iterator[tuple[Any, str, Any]]:
    """Functions that a module has or calls, and methods of its classes; not what others call."""
    for name, value in list(vars(module).items()):
        home = getattr(value, "__module__", None) or ""
        if isinstance(value, FunctionType):
            if home.startswith(_PACKAGE) and name not in _GUARDS and value not in wrappers:
                yield module, name, value
        elif isinstance(value, type) and home == module.__name__ and name != "_Watcher":
            for method, function in list(vars(value).items()):
                code = getattr(getattr(function, "fget", function), "__code__", None)
                if code is not None and code.co_filename == module.__file__:
                    yield value, method, function


def _replace(owner: Any, attribute: str, what: Any, name: str) -> None:
    if isinstance(what, property):
        assert what.fget is not None
        setattr(owner, attribute, property(_raising(name, what.fget)))
    else:
        setattr(owner, attribute, _raising(name, what))


def _install() -> None:
    modules = [importlib.import_module(f"{_PACKAGE}.{each}") for each in _MODULES]
    targets = importlib.import_module(f"{_PACKAGE}.instrumentors.vllm.targets").TARGETS
    found = [each for module in modules for each in _seams(module, {t.wrapper for t in targets})]
    names = []
    for owner, attribute, what in found:
        of = what.__module__ if isinstance(owner, ModuleType) else owner.__qualname__
        name = f"{of.rpartition('.')[2]}.{attribute}"
        names.append(name)
        _replace(owner, attribute, what, name)
    (_folder / "seams").write_text("\n".join(names))


_install()
