"""Events of Chrome's trace format: slices, instants, and the names of processes and threads.

`ts` and `dur` are microseconds. They count from the root's start, because an instant since the
epoch with nanoseconds does not fit the double that a viewer reads it into.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Final, NamedTuple, TypeAlias

Value: TypeAlias = "str | int | float | bool | list[str] | None"
Args: TypeAlias = Mapping[str, Value]
Event: TypeAlias = dict[str, object]

MICROSECOND_NS: Final = 1_000


class Thread(NamedTuple):
    """Where a slice is drawn."""

    pid: int
    tid: int


class Events:
    """The events of one file; processes and threads have numbers of their own, none used twice."""

    def __init__(self) -> None:
        self.listed: list[Event] = []
        self._numbers = count(1)  # 0 is the idle process, and the thread of its number is the main

    def process(self, name: str, labels: str = "") -> int:
        """A new process, below all that there are."""
        pid = next(self._numbers)
        self._describe("process_name", pid, pid, {"name": name})
        self._describe("process_sort_index", pid, pid, {"sort_index": pid})
        if labels:
            self._describe("process_labels", pid, pid, {"labels": labels})
        return pid

    def thread(self, pid: int, name: str) -> Thread:
        """A new thread, below those that the process has."""
        tid = next(self._numbers)
        self._describe("thread_name", pid, tid, {"name": name})
        self._describe("thread_sort_index", pid, tid, {"sort_index": tid})
        return Thread(pid, tid)

    def slice(
        self, thread: Thread, category: str, name: str, start_ns: int, duration_ns: int, args: Args
    ) -> None:
        """An interval."""
        event = _event("X", category, name, thread, start_ns, args)
        event["dur"] = microseconds(duration_ns)
        self.listed.append(event)

    def instant(self, thread: Thread, category: str, name: str, at_ns: int, args: Args) -> None:
        """A moment of a thread."""
        event = _event("i", category, name, thread, at_ns, args)
        event["s"] = "t"
        self.listed.append(event)

    def _describe(self, what: str, pid: int, tid: int, args: Args) -> None:
        self.listed.append({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": dict(args)})


def _event(kind: str, category: str, name: str, thread: Thread, at_ns: int, args: Args) -> Event:
    return {
        "ph": kind,
        "cat": category,
        "name": name,
        "pid": thread.pid,
        "tid": thread.tid,
        "ts": microseconds(at_ns),
        "args": {key: value for key, value in args.items() if value is not None},
    }


def microseconds(value_ns: int) -> int | float:
    """Microseconds that become the same nanoseconds again, up to 104 days."""
    whole, rest = divmod(value_ns, MICROSECOND_NS)
    return value_ns / MICROSECOND_NS if rest else whole
