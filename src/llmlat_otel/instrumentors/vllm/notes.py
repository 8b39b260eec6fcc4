"""Notes: what the scheduler has to tell of a request, on the way back with its outputs.

They travel as text among the trace headers that a request carries to the EngineCore and that come
back with each output, so that nothing of vLLM's own has to change:

    llmlat        domain;waiting;running                 told once, as it arrives
    llmlat-marks  q1000,s2500,p4000,s4800                each stamp as it is made, in ns
    llmlat-steps  64,64,7;3;8                            sizes of the chunks, their number; the
                                                         largest batch
    llmlat-news   {"id": {"llmlat": ..., ...}, ...}      the same of other requests, that have no
                                                         output yet
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from llmlat_otel.core.engine_timeline import Mark, Stamp

ARRIVAL: Final = "llmlat"
MARKS: Final = "llmlat-marks"
STEPS: Final = "llmlat-steps"
NEWS: Final = "llmlat-news"

ASKED: Final = "?"
"""What stands for the arrival until the scheduler has told of it."""

MARKS_MAX: Final = 64
"""What begins beyond it is not told: the text goes with each output."""

_ENDS: Final = frozenset((Mark.SCHEDULED, Mark.KV_PRESENT))
"""Marks that end what another has begun."""


class Notes(NamedTuple):
    """What a scheduler has told of a request; None and empty for what it has not.

    Attributes:
        domain_id: The clock domain of its stamps.
        waiting: Requests before this one, waiting as it arrived.
        running: Requests in the batch then.
        stamps: In their order.
        chunks: Prompt tokens of each step of the prefill, as far as there is room for them.
        chunk_count: How many steps there were.
        batch_max: The most requests that were in a batch with it.
    """

    domain_id: str | None = None
    waiting: int | None = None
    running: int | None = None
    stamps: tuple[Stamp, ...] = ()
    chunks: tuple[int, ...] = ()
    chunk_count: int | None = None
    batch_max: int | None = None


def arrival(domain_id: str, waiting: int, running: int) -> str:
    """The text of what is told as a request arrives."""
    return f"{domain_id};{waiting};{running}"


def with_mark(marks: str, mark: Mark, at_ns: int) -> str:
    """The text of the stamps with one more, if it says anything new and there is room for it."""
    if marks.rpartition(",")[2].startswith(mark.value):
        return marks
    if mark not in _ENDS and marks.count(",") >= MARKS_MAX:
        return marks
    one = f"{mark.value}{at_ns}"
    return f"{marks},{one}" if marks else one


def steps(chunks: list[int], chunk_count: int, batch_max: int) -> str:
    """The text of what was seen in its steps."""
    return f"{','.join(map(str, chunks))};{chunk_count};{batch_max}"


def news(of_others: Mapping[str, Mapping[str, str]]) -> str:
    """The text of what is told of other requests, by their ids."""
    told = {
        request_id: {name: headers[name] for name in (ARRIVAL, MARKS) if name in headers}
        for request_id, headers in of_others.items()
    }
    return json.dumps(told)


def read_news(headers: Mapping[str, str] | None) -> Mapping[str, Mapping[str, str]]:
    """What came with an output of another request."""
    text = None if headers is None else headers.get(NEWS)
    told: dict[str, dict[str, str]] = json.loads(text) if text else {}
    return told


def read(headers: Mapping[str, str] | None) -> Notes:
    """What came back with an output; what is no note of ours is left out."""
    if not headers:
        return Notes()
    notes = Notes()
    with suppress(ValueError):
        domain_id, waiting, running = headers.get(ARRIVAL, "").split(";")
        notes = Notes(domain_id, int(waiting), int(running))
    with suppress(ValueError):
        marks = [each for each in headers.get(MARKS, "").split(",") if each]
        notes = notes._replace(stamps=tuple((Mark(each[0]), int(each[1:])) for each in marks))
    with suppress(ValueError):
        chunks, count, batch_max = headers.get(STEPS, "").split(";")
        sizes = tuple(int(each) for each in chunks.split(",") if each)
        notes = notes._replace(chunks=sizes, chunk_count=int(count), batch_max=int(batch_max))
    return notes
