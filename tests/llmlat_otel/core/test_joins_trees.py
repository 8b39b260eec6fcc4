"""Whatever tree of operations and tasks: who was waited for is in an event, and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import llmlat_otel
from llmlat_otel.core.guard import faults
from llmlat_otel.core.instrumentor import Instrumentor
from llmlat_otel.instrumentors.threads import TARGETS
from llmlat_otel.testing import recorded
from tests.llmlat_otel.waiting import TOGETHER, joined, pass_time, task, turns


@dataclass(frozen=True)
class Tree:
    """An operation.

    Attributes:
        own: Operations that run in its own task, before all others.
        left: Operations in tasks that nobody waits for.
        waited_for: Operations in tasks, or tasks of tasks, that are waited for together.
        way: How.
        depth: How many tasks deep each of them is.
        turns: How long it runs itself.
    """

    own: tuple[Tree, ...]
    left: tuple[Tree, ...]
    waited_for: tuple[Tree, ...]
    way: str
    depth: int
    turns: int


def trees(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    few = st.lists(inner, max_size=2).map(tuple)
    return st.builds(
        Tree, few, few, few, st.sampled_from(sorted(TOGETHER)), st.integers(1, 3), st.integers(0, 3)
    )


TREES = st.recursive(
    st.builds(Tree, *[st.just(())] * 3, st.just("gather"), st.just(1), st.integers(0, 3)),
    trees,
    max_leaves=12,
)


class Run:
    """Runs a tree, and knows what each operation is to say."""

    def __init__(self) -> None:
        self.left: list[asyncio.Task[Any]] = []
        self.expected: dict[str, list[str]] = {}

    async def run(self, tree: Tree, name: str) -> None:
        with llmlat_otel.tool(name):
            for number, inner in enumerate(tree.own):
                await self.run(inner, f"{name}.own{number}")
            self.left += [task(each) for each in self._tasks(tree.left, name, "left", 1)]
            waited_for = list(self._tasks(tree.waited_for, name, "waited", tree.depth))
            if waited_for:
                await TOGETHER[tree.way](*waited_for)
            await turns(tree.turns)
            pass_time()
        self.expected[name] = [f"{name}.waited{number}" for number in range(len(waited_for))]

    def _tasks(self, inner: tuple[Tree, ...], name: str, kind: str, depth: int) -> Iterator[Any]:
        for number, each in enumerate(inner):
            yield self._deep(each, f"{name}.{kind}{number}", depth)

    async def _deep(self, tree: Tree, name: str, depth: int) -> None:
        await turns(1)  # Whoever waits has had the time to say so to asyncio.
        if depth > 1:
            await task(self._deep(tree, name, depth - 1))
        else:
            await self.run(tree, name)


@given(TREES)
def test_each_operation_names_those_that_it_has_waited_for(tree):
    before = faults()
    with recorded() as record:
        run = Run()

        async def main():
            await run.run(tree, "root")
            for each in run.left:  # It grows meanwhile.
                await each

        asyncio.run(main())
    said = {name: joined(record, f"execute_tool {name}") for name in run.expected}
    assert said == run.expected
    assert faults() == before


@given(
    st.lists(st.sampled_from(("result", "exception", "nothing")), max_size=9),
    st.lists(st.booleans(), min_size=9, max_size=9),
    st.booleans(),
)
def test_each_operation_names_those_in_a_pool_that_it_has_asked_for(asked, failing, inner):
    instrumentor = Instrumentor(TARGETS)
    instrumentor.instrument()
    try:
        with recorded() as record, ThreadPoolExecutor(3) as pool:
            _ask(pool, asked, failing, inner)
    finally:
        instrumentor.uninstrument()
    expected = [str(number) for number, how in enumerate(asked) if how != "nothing"]
    assert joined(record) == expected


def _ask(pool: ThreadPoolExecutor, asked: list[str], failing: list[bool], inner: bool) -> None:
    with llmlat_otel.agent("adviser"):
        futures = [pool.submit(_work, str(n), failing[n]) for n in range(len(asked))]
        for future, how in zip(futures, asked, strict=True):
            with llmlat_otel.phase("tool") if not inner else llmlat_otel.tool("asking"):
                if how == "exception" or (how == "result" and future.exception() is not None):
                    future.exception()
                elif how == "result":
                    future.result()


def _work(name: str, failing: bool) -> None:
    with llmlat_otel.tool(name):
        pass_time()
        if failing:
            raise LookupError(name)
