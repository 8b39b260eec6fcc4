"""The seams: every call that the SDK makes, each of which can be made to fail.

The SDK is imported in a rewritten form, in a process of its own: `work(x)` reads
`__seam__(7, work)(x)`, and `thing.name` reads `__look__(8, thing, "name").name`. So the seams are
whatever the source says, and a new one is under test from the day on which it is written.
"""

from __future__ import annotations

import ast
import functools
import importlib.abc
import importlib.machinery
import inspect
import sys
import types
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PACKAGE = "llmlat_otel"

UNTOUCHED = frozenset({"llmlat_otel.testing"})
"""The test kit runs in no application."""


class InjectedError(Exception):
    """The fault."""


@dataclass(frozen=True, slots=True)
class Site:
    """A call, or a look at an attribute, in the SDK's source.

    Attributes:
        module: It is in this one, such as `core.call`.
        where: The function it is in, such as `core.call.Call._open`.
        what: What it calls or looks at, as the source says it.
        line: In the module.
        is_call: Or else a look.
    """

    module: str
    where: str
    what: str
    line: int
    is_call: bool

    def __str__(self) -> str:
        return f"{self.where}:{self.line} {self.what}{'()' if self.is_call else ''}"


EACH = 0
"""Not one passage of a seam fails, but each."""


@dataclass(slots=True)
class Seams:
    """All sites of the rewritten SDK; which are reached, and which fail.

    Attributes:
        sites: By number.
        reached: How often each has been passed since the last `watch`.
        callees: What was called there, by the site's number: one of them.
        injected: How often any has failed since the last `arm`.
    """

    sites: list[Site] = field(default_factory=list)
    reached: Counter[int] = field(default_factory=Counter)
    callees: dict[int, str] = field(default_factory=dict)
    injected: int = 0
    _is_watching: bool = False
    _armed: dict[int, int] = field(default_factory=dict)
    _passed: Counter[int] = field(default_factory=Counter)

    def watch(self) -> None:
        """Count what is reached from here on."""
        self.reached.clear()
        self._is_watching = True

    def arm(self, ways: Mapping[int, int]) -> None:
        """Make sites fail from here on.

        Args:
            ways: By number: which passage of it fails, from 1; or `EACH`.
        """
        self._passed.clear()
        self.injected = 0
        self._armed = dict(ways)

    def disarm(self) -> None:
        """All is well again."""
        self._armed = {}
        self._is_watching = False

    def call(self, number: int, callee: Any) -> Any:
        """What is called instead of `callee`."""
        if self._is_watching:
            self.reached[number] += 1
            if number not in self.callees:
                self.callees[number] = origin(callee)
        return _raise if number in self._armed and self._fails(number) else callee

    def look(self, number: int, thing: Any, name: str) -> Any:
        """What is looked at instead of `thing`."""
        if not (self._is_watching or number in self._armed) or not _can_fail(thing, name):
            return thing
        if self._is_watching:
            self.reached[number] += 1
            self.callees[number] = type(thing).__module__
        return _Faulty() if number in self._armed and self._fails(number) else thing

    def _fails(self, number: int) -> bool:
        self._passed[number] += 1
        if self._armed[number] not in {EACH, self._passed[number]}:
            return False
        self.injected += 1
        return True


seams = Seams()


def _raise(*_: Any, **__: Any) -> Any:
    raise InjectedError


class _Faulty:
    def __getattribute__(self, name: str) -> Any:
        raise InjectedError


def origin(callee: Any) -> str:
    """What a callee is, by its module and name; an object that can be called, by its type."""
    while isinstance(callee, types.MethodType | functools.partial):
        callee = callee.__func__ if isinstance(callee, types.MethodType) else callee.func
    named = callee
    if isinstance(callee, types.BuiltinFunctionType) and not callee.__module__:
        named = type(callee.__self__)
    elif not isinstance(callee, type | types.FunctionType | types.BuiltinFunctionType):
        return f"{type(callee).__module__}.{type(callee).__qualname__}()"
    return f"{named.__module__}.{named.__qualname__}"


def _can_fail(thing: Any, name: str) -> bool:
    """Whether looking at an attribute runs code: of somebody else's class, or a property."""
    kind = type(thing)
    if isinstance(thing, type | types.ModuleType):
        return False
    root = kind.__module__.partition(".")[0]
    if root == PACKAGE:
        return isinstance(inspect.getattr_static(kind, name, None), property)
    return root not in sys.stdlib_module_names


class _Rewriter(ast.NodeTransformer):
    """Rewrites what is inside of functions; what runs at import has its own tests."""

    def __init__(self, module: str) -> None:
        self._path = [module.removeprefix(PACKAGE + ".")]
        self._depth = 0

    def _within(self, node: Any) -> Any:
        node.decorator_list = [self._outside(each) for each in node.decorator_list]
        self._path.append(node.name)
        is_function = not isinstance(node, ast.ClassDef)
        depth, self._depth = self._depth, self._depth + is_function if is_function else 0
        node.body = [self.visit(each) for each in node.body]
        self._depth = depth
        self._path.pop()
        return node

    def _outside(self, node: Any) -> Any:
        """A decorator belongs to the function around."""
        return self.visit(node)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _within  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self._depth += 1
        node.body = self.visit(node.body)
        self._depth -= 1
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        site = self._site(node, node.func, is_call=True)
        if self._depth == 0 or (isinstance(node.func, ast.Name) and node.func.id == "super"):
            return self.generic_visit(node)
        number = _added(site)
        if isinstance(node.func, ast.Attribute):  # The look belongs to the call.
            node.func.value = self.visit(node.func.value)
        else:
            node.func = self.visit(node.func)
        node.args = [self.visit(each) for each in node.args]
        node.keywords = [self.visit(each) for each in node.keywords]
        node.func = _call("__seam__", node, ast.Constant(number), node.func)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        site = self._site(node, node, is_call=False)
        self.generic_visit(node)
        if self._depth == 0 or not isinstance(node.ctx, ast.Load) or _is_super(node.value):
            return node
        number = ast.Constant(_added(site))
        node.value = _call("__look__", node, number, node.value, ast.Constant(node.attr))
        return node

    def _site(self, node: ast.expr, what: ast.expr, *, is_call: bool) -> Site:
        return Site(self._path[0], ".".join(self._path), ast.unparse(what), node.lineno, is_call)


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "super"


def _added(site: Site) -> int:
    seams.sites.append(site)
    return len(seams.sites) - 1


def _call(name: str, at: ast.expr, *args: ast.expr) -> ast.expr:
    call = ast.Call(ast.Name(name, ast.Load()), list(args), [])
    return ast.fix_missing_locations(ast.copy_location(call, at))


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles the rewritten source, and neither reads nor writes any cache of it."""

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        rewritten = ast.fix_missing_locations(_Rewriter(fullname).visit(tree))
        code: types.CodeType = compile(rewritten, path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module).update(__seam__=seams.call, __look__=seams.look)
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != PACKAGE or fullname in UNTOUCHED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(fullname, spec.loader.get_filename(fullname))
        return spec


def rewrite() -> None:
    """Import the SDK in its rewritten form from here on."""
    already = [name for name in sys.modules if name.partition(".")[0] == PACKAGE]
    assert not already, "the SDK is imported already"
    sys.meta_path.insert(0, _Finder())
