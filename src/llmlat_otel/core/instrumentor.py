"""Instrumentation: a table of targets in, timed methods out, and back again."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import reduce
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from llmlat_otel.core.guard import guarded
from llmlat_otel.core.wrapping import Wrapper, when_imported, wrap
from llmlat_otel.errors import TargetError


class Target(NamedTuple):
    """A method that is to be timed.

    Attributes:
        module: Where it is, as a path: the library is never imported by us.
        attribute: What it is called there, such as `Client.send`.
        wrapper: What takes its place.
        wrap: Puts it there.
    """

    module: str
    attribute: str
    wrapper: Wrapper
    wrap: Callable[[Any, Wrapper], Any] = wrap

    @property
    def name(self) -> str:
        """The whole path."""
        return f"{self.module}.{self.attribute}"


class State(str, Enum):
    """What has become of a target."""

    OFF = "off"
    """Nobody has asked for it."""
    WAITING = "waiting"
    """Its module has not been imported."""
    WRAPPED = "wrapped"
    MISSING = "missing"
    """The library has no such method."""
    FAILED = "failed"
    """It could not be wrapped; the count of faults says why."""
    REPLACED = "replaced"
    """Somebody has put something else in its place since, which may or may not call it."""


class TargetState(NamedTuple):
    """A target, and what has become of it.

    Attributes:
        module: Where it is.
        attribute: What it is called there.
        state: What has become of it.
        others: The modules of others whose wrappers are around it.
    """

    module: str
    attribute: str
    state: State
    others: tuple[str, ...]


class _Installed(NamedTuple):
    target: Target
    owner: Any
    attribute: str
    original: Any
    replacement: Any


_lock = threading.RLock()


def _renew_lock() -> None:
    """A thread that held it at the fork is not there to let it go."""
    global _lock  # noqa: PLW0603 - one per process
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class Instrumentor:
    """Wraps the methods of a table, each as soon as its library has been imported.

    Args:
        targets: The table. What a library lacks is skipped, and noted at debug.
    """

    def __init__(self, targets: Iterable[Target]) -> None:
        self.targets = tuple(targets)
        self._installed: list[_Installed] = []
        self._awaited: set[str] = set()
        self._is_active = False

    def instrument(self) -> None:
        """Time the targets from now on; a second time changes nothing."""
        with _lock:
            if self._is_active:
                return
            self._is_active = True
        for target in self.targets:
            guarded(target.name, self._follow, target)

    def uninstrument(self) -> None:
        """Put every original back; what somebody else has wrapped since stays, untimed."""
        with _lock:
            self._is_active = False
            kept = [
                each
                for each in reversed(self._installed)
                if not guarded(each.target.name, _restored, each)
            ]
            self._installed = kept[::-1]

    def states(self) -> Iterator[TargetState]:
        """What has become of each target."""
        for target in self.targets:
            found = guarded(target.name, self._state, target)
            yield found or TargetState(target.module, target.attribute, State.FAILED, ())

    def _follow(self, target: Target) -> None:
        """Wrap a target now or when its module is imported; one hook lasts for all times."""
        module = sys.modules.get(target.module)
        if module is not None:
            self._install(target, module)
        elif target.name not in self._awaited:
            self._awaited.add(target.name)
            when_imported(target.module, self._hook(target))

    def _hook(self, target: Target) -> Any:
        def imported(module: ModuleType) -> None:
            self._awaited.discard(target.name)
            if self._is_active:
                guarded(target.name, self._install, target, module)

        return imported

    def _install(self, target: Target, module: ModuleType) -> None:
        # Outside the lock: a lazy module may import at a look, and so take the locks of imports.
        owner, attribute, original = _resolve(target, module)
        with _lock:
            if not self._is_active or any(
                each.owner is owner and each.attribute == attribute for each in self._installed
            ):
                return
            replacement = target.wrap(original, self._while_active(target.wrapper))
            installed = _Installed(target, owner, attribute, original, replacement)
            setattr(owner, attribute, replacement)
            self._installed.append(installed)

    def _while_active(self, wrapper: Wrapper) -> Wrapper:
        def switched(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            if not self._is_active:
                return wrapped(*args, **kwargs)
            return wrapper(wrapped, instance, args, kwargs)

        return switched

    def _state(self, target: Target) -> TargetState:
        module = sys.modules.get(target.module)
        state: State = State.WAITING
        others: tuple[str, ...] = ()
        if not self._is_active:
            state = State.OFF
        elif module is not None:
            state, others = self._state_in(target, module)
        return TargetState(target.module, target.attribute, state, others)

    def _state_in(self, target: Target, module: ModuleType) -> tuple[State, tuple[str, ...]]:
        try:
            owner, attribute, found = _resolve(target, module)
        except TargetError:
            return State.MISSING, ()
        layers = list(_layers(found))
        others = tuple(dict.fromkeys(_others(layers, target.module)))
        for installed in self._installed:  # A class may have two homes, and be two targets.
            if installed.owner is owner and installed.attribute == attribute:
                is_there = any(each is installed.replacement for each in layers)
                return State.WRAPPED if is_there else State.REPLACED, others
        return State.FAILED, others


def _resolve(target: Target, module: ModuleType) -> tuple[Any, str, Any]:
    *owners, attribute = target.attribute.split(".")
    try:
        owner = reduce(getattr, owners, module)
        return owner, attribute, inspect.getattr_static(owner, attribute)
    except AttributeError as error:
        raise TargetError(target.module, target.attribute) from error


def _layers(function: Any) -> Iterator[Any]:
    """A function, what it wraps, and so on; wrappers that do not say what they wrap end it."""
    for _ in range(64):  # Some wrap in a circle.
        yield function
        function = getattr(function, "__wrapped__", None)
        if function is None:
            return


def _others(layers: Iterable[Any], module: str) -> Iterator[str]:
    """The modules that wrappers come from, the library's own and ours left out."""
    ours = (__name__.partition(".")[0], module.partition(".")[0])
    for layer in layers:
        home = _home(layer)
        if home and home.partition(".")[0] not in ours:
            yield home


def _home(layer: Any) -> str | None:
    """Where a wrapper was written; `__module__` says where what it wraps was."""
    wrapper = getattr(layer, "_self_wrapper", None)  # wrapt's
    if wrapper is not None:
        named = wrapper if hasattr(wrapper, "__qualname__") else type(wrapper)
        return str(named.__module__)
    if type(layer) is FunctionType:
        return str(layer.__globals__.get("__name__"))
    return None


def _restored(installed: _Installed) -> bool:
    """Put an original back; True once that is done. At no time is there neither of the two."""
    owner, attribute, original = installed.owner, installed.attribute, installed.original
    if inspect.getattr_static(owner, attribute, None) is installed.replacement:
        setattr(owner, attribute, original)
        bases = getattr(owner, "__mro__", (owner,))[1:]
        if any(vars(base).get(attribute) is original for base in bases):
            delattr(owner, attribute)  # It was inherited.
    return True
