"""Joins: which of its children an operation has waited for.

    agent   ──────┬─────────┬──▼──────        ▼ it has waited for both: one event, with their ids
      tool        ├─────────┘  │              (asyncio.gather)
      tool        ├────────────┘
      tool      ├───────────────────          fire and forget: not in any event

A child that runs in the parent's own thread or task needs no event: the parent cannot go on
meanwhile. Of the others this is what is known:

- asyncio: the parent is suspended, directly or not, on the task in which the child ends. A task
  that is over before the parent awaits it holds nobody up, and nothing tells that it was awaited:
  it is in no event, unless it belongs to a `TaskGroup` that the parent has left, or to a `gather`
  that the parent is suspended on. Nor is one that the parent awaits through what only it knows: a
  queue, an event, a callback of its own.
- threads: the parent has asked for the result of a future (`ThreadPoolExecutor`, its `map`, its
  `with` block), or joined the thread; late or not.

What was cancelled was not waited for: it was told to stop.
"""

from __future__ import annotations

import weakref
from asyncio import Task
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, cast

from opentelemetry import context as contexts
from opentelemetry.context import Context
from opentelemetry.trace import Span

from llmlat_otel.core import flows
from llmlat_otel.core.guard import guarded

EVENTS_MAX: Final = 64
"""Of one operation; the last one has whatever there is still room for."""

IDS_MAX: Final = 128
"""Of one event."""

TARGET: Final = "joins"

_KEY: Final = contexts.create_key("llmlat-joins")


class Child:
    """An operation that has ended elsewhere than its parent runs.

    Attributes:
        span_id: Its id.
        end_ns: When it ended.
        is_told: Whether its parent is known to have waited for it.
    """

    __slots__ = ("end_ns", "is_told", "span_id")

    def __init__(self, span_id: int, end_ns: int) -> None:
        self.span_id = span_id
        self.end_ns = end_ns
        self.is_told = False


Kept = dict["weakref.ref[object]", list[Child]]
"""What has ended in a flow, for as long as somebody can still wait for that."""

Tell = Callable[[tuple[str, ...], int], None]
"""Told of ids that were waited for, and when."""


class Joins:
    """What an operation has waited for. Its methods are called under the guard.

    Children may end in any thread; what waits for them is looked at, and told, in the thread that
    the operation runs in.

    Args:
        span_id: Of the operation.
        enclosing: Of the operation around it, which waits for what this one waits for.
        now_ns: Reads the clock.
        tell: Told of what was waited for; before the operation ends.
    """

    __slots__ = (
        "__weakref__",
        "_batch",
        "_batch_ns",
        "_choices",
        "_elsewhere",
        "_events_left",
        "_kept",
        "_now_ns",
        "_point",
        "_room",
        "_tell",
        "enclosing",
        "flow",
        "is_open",
        "span_id",
    )

    def __init__(
        self, span_id: int, enclosing: Joins | None, now_ns: Callable[[], int], tell: Tell
    ) -> None:
        self.span_id = span_id
        self.enclosing = enclosing
        self.flow: object = None
        self.is_open = True
        self._now_ns = now_ns
        self._tell = tell
        self._kept: Kept = {}
        self._choices: dict[int, tuple[list[Child], flows.Chain]] = {}
        self._elsewhere: list[Child] = []  # Was waited for, as another thread has found.
        self._batch: list[str] = []
        self._batch_ns = 0
        self._events_left = EVENTS_MAX
        self._point = 0
        self._room = EVENTS_MAX * IDS_MAX  # No more of them can be told of.

    # The operation itself

    def begin(self) -> None:
        """The operation runs here from now on."""
        self.flow = flows.current()

    def pause(self) -> None:
        """The operation does not run."""
        self.flow = None

    def close(self) -> None:
        """The operation is about to end."""
        if self._elsewhere:
            self._joined(self._elsewhere, id(self._elsewhere))
        if self._kept:
            here = flows.current()
            left = [each for each in self._things() if flows.has_left(each, here)]
            self._joined(self._taken(left), id(here))
        self.is_open = False
        if self._batch:
            self._flush()
        self._kept.clear()
        self._elsewhere.clear()
        self._choices.clear()
        self._tell = _nobody

    # Its children

    def ended(self, span: Span, end_ns: int, flow: object = None) -> None:
        """A span has ended that may be a child's.

        Args:
            span: The span.
            end_ns: When.
            flow: The task or future that it has ended with; if None, what is running.
        """
        if flow is None:
            flow = flows.current()
        if flow is None or flow is self.flow or not self.is_open:
            return
        parent = getattr(span, "parent", None)
        if parent is not None and parent.span_id == self.span_id:
            self._see_to([Child(span.get_span_context().span_id, end_ns)], flow)

    def waited_for(self, things: Iterable[object]) -> None:
        """Whoever runs here has waited, at once, for some futures or threads that are over."""
        here = flows.current()
        for each in self._and_enclosing():
            each._waited(things, here)

    def _and_enclosing(self) -> Iterator[Joins]:
        joins: Joins | None = self
        while joins is not None:
            yield joins
            joins = joins.enclosing

    def _waited(self, things: Iterable[object], here: object) -> None:
        if not self._kept:
            return
        works = [work for thing in things for work in flows.over_with(thing)]
        children = self._taken(works)
        if not children:
            return
        if here is self.flow:
            self._joined(children, id(works[0]), self._now_ns())
        elif here is not None:  # What waits for this in turn has waited for them.
            self._see_to(children, here)

    def _see_to(self, children: list[Child], flow: object) -> None:
        """Look now, or as soon as the loop that may know of a wait has time."""
        self._room -= len(children)
        if self._room < 0:
            return
        loop = flows.loop_to_ask(flow, self.flow)
        if loop is None:
            self._look(children, flow)
            return
        self._keep(children, (flow, *flows.homes((flow,))))
        if not loop.is_closed():
            loop.call_soon_threadsafe(guarded, TARGET, self._look, children, flow, 1)

    def _look(self, children: list[Child], flow: object, kept: int = 0) -> None:
        """Find out whether the operation waits for a flow in which children have ended.

        Args:
            children: The children.
            flow: The flow.
            kept: Under how many things they have been kept, the flow first.
        """
        if not self.is_open:
            return
        chain = flows.chain(flow, self.flow)
        if not chain.is_met:
            things = chain.things[kept:]
            self._keep(children, (*things, *flows.homes(things)))
        elif not flows.is_here(self.flow):
            self._elsewhere.extend(children)
        elif chain.choice is not None:
            self._choices[id(children)] = (children, chain)
            follow = partial(_chosen, weakref.ref(self), id(children))
            flows.when_done(chain.things[chain.choice - 1], follow)
        else:
            self._joined([*self._earlier(chain.things), *children], id(chain.things[-1]))

    def _keep(self, children: list[Child], things: Iterable[object]) -> None:
        """The operation may yet come to wait for one of these."""
        kept = self._kept
        for thing in things:
            known = kept.get(weakref.ref(thing))
            if known is not None:
                known.extend(children)
            else:
                kept[weakref.ref(thing, partial(_forget, kept))] = [*children]
                if isinstance(self.flow, Task):
                    flows.when_done(thing, partial(_over, weakref.ref(self)))

    def _earlier(self, things: tuple[object, ...]) -> Iterable[Child]:
        """What has ended in a flow before the operation came to wait for it, as it does now."""
        if not self._kept:
            return ()
        if id(things[-1]) != self._point:
            things += tuple(each for thing in things for each in flows.gathered(thing))
        return self._taken(things)

    def over(self, thing: object) -> None:
        """A task is done in which children had ended before."""
        if self.is_open and self._kept and flows.is_awaited(thing, self.flow):
            self._joined(self._taken([thing]), id(thing), self._now_ns())

    def chosen(self, choice: int) -> None:
        """A task is done that was waited for together with others, for one of them."""
        children, chain = self._choices.pop(choice, (None, None))
        if children and chain and self.flow is not None and chain.holds():
            self._joined(children, id(chain.things[-1]), self._now_ns())

    def _things(self) -> list[object]:
        return [thing for each in tuple(self._kept) if (thing := each()) is not None]

    def _taken(self, things: Iterable[object]) -> list[Child]:
        kept = self._kept
        return [child for thing in things for child in kept.pop(weakref.ref(thing), ())]

    # What is told of them

    def _joined(self, children: Iterable[Child], point: int, at_ns: int = 0) -> None:
        """Add to what one wait was for.

        Another one has an event of its own, while there is room, if it took any time: not if all
        that it was for had ended before the one before it was over.

        Args:
            children: What was waited for.
            point: Identifies the wait.
            at_ns: When it was over; if 0, when the last of the children ended.
        """
        untold = [child for child in dict.fromkeys(children) if not child.is_told]
        if not untold:
            return
        latest_ns = max(child.end_ns for child in untold)
        is_other = point != self._point and latest_ns > self._batch_ns
        if is_other and self._events_left > 1:
            self._flush()
        self._point = point
        for child in untold:
            if len(self._batch) >= IDS_MAX:
                self._flush()
            child.is_told = True
            self._batch.append(f"{child.span_id:016x}")
            self._batch_ns = max(self._batch_ns, at_ns, latest_ns)

    def _flush(self) -> None:
        if self._batch and self._events_left:
            self._events_left -= 1
            self._tell(tuple(self._batch), self._batch_ns)
        self._batch, self._batch_ns = [], 0


def enclosing(context: Context | None = None) -> Joins | None:
    """The joins of the operation that a context belongs to; the current one, if None."""
    return cast("Joins | None", contexts.get_value(_KEY, context))


def within(joins: Joins, context: Context) -> Context:
    """The context of an operation's block, for its children to find it by."""
    return contexts.set_value(_KEY, joins, context)


def child_ended(context: Context, span: Span, end_ns: int) -> None:
    """A span that was started in a context has ended, here and now.

    Args:
        context: Of its parent.
        span: The span.
        end_ns: When it ended.
    """
    around = enclosing(context)
    if around is not None:
        around.ended(span, end_ns)


def _forget(kept: Kept, thing: weakref.ref[object]) -> None:
    kept.pop(thing, None)


def _nobody(_: tuple[str, ...], __: int) -> None:
    """Told of what comes too late."""


def _over(joins: weakref.ref[Joins], thing: object) -> None:
    """A callback of the loop: it keeps nothing alive."""
    found = joins()
    if found is not None:
        guarded(TARGET, found.over, thing)


def _chosen(joins: weakref.ref[Joins], choice: int, _: object) -> None:
    found = joins()
    if found is not None:
        guarded(TARGET, found.chosen, choice)
