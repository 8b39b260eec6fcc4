"""Instrumentation: a table of targets in, timed methods out, and back again."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from types import ModuleType
from typing import Any

from llmlat_otel.core.guard import guarded
from llmlat_otel.core.wrapping import Wrapper, when_imported, wrap
from llmlat_otel.errors import TargetError


@dataclass(frozen=True, slots=True)
class Target:
    """A method that is to be timed.

    Attributes:
        module: Where it is, as a path: the library is never imported by us.
        attribute: What it is called there, such as `Client.send`.
        wrapper: What takes its place.
    """

    module: str
    attribute: str
    wrapper: Wrapper

    @property
    def name(self) -> str:
        """The whole path."""
        return f"{self.module}.{self.attribute}"


@dataclass(frozen=True, slots=True)
class _Installed:
    owner: Any
    attribute: str
    original: Any
    replacement: Any


class Instrumentor:
    """Wraps the methods of a table, each as soon as its library has been imported.

    Args:
        targets: The table. What a library lacks is skipped, and noted at debug.
    """

    def __init__(self, targets: Iterable[Target]) -> None:
        self._targets = tuple(targets)
        self._installed: list[_Installed] = []
        self._is_active = False
        self._lock = threading.RLock()

    def instrument(self) -> None:
        """Time the targets from now on; a second time changes nothing."""
        with self._lock:
            if self._is_active:
                return
            self._is_active = True
            for target in self._targets:
                when_imported(target.module, self._hook(target))

    def uninstrument(self) -> None:
        """Put every original back; what somebody else has wrapped since stays, untimed."""
        with self._lock:
            self._is_active = False
            while self._installed:
                _restore(self._installed.pop())

    def _hook(self, target: Target) -> Any:
        def imported(module: ModuleType) -> None:
            guarded(target.name, self._install, target, module)

        return imported

    def _install(self, target: Target, module: ModuleType) -> None:
        with self._lock:
            owner, attribute, original = _resolve(target, module)
            if not self._is_active or any(
                each.owner is owner and each.attribute == attribute for each in self._installed
            ):
                return
            replacement = wrap(original, self._while_active(target.wrapper))
            setattr(owner, attribute, replacement)
            self._installed.append(_Installed(owner, attribute, original, replacement))

    def _while_active(self, wrapper: Wrapper) -> Wrapper:
        def switched(wrapped: Any, instance: Any, args: Any, kwargs: Any) -> Any:
            if not self._is_active:
                return wrapped(*args, **kwargs)
            return wrapper(wrapped, instance, args, kwargs)

        return switched


def _resolve(target: Target, module: ModuleType) -> tuple[Any, str, Any]:
    *owners, attribute = target.attribute.split(".")
    try:
        owner = reduce(getattr, owners, module)
        return owner, attribute, inspect.getattr_static(owner, attribute)
    except AttributeError as error:
        raise TargetError(target.module, target.attribute) from error


def _restore(installed: _Installed) -> None:
    owner, attribute = installed.owner, installed.attribute
    if inspect.getattr_static(owner, attribute, None) is not installed.replacement:
        return
    delattr(owner, attribute)
    if inspect.getattr_static(owner, attribute, None) is not installed.original:
        setattr(owner, attribute, installed.original)
