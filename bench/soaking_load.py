"""The load of a soak: requests that are made ahead, and are of other traces each time.

    group 0   part 0 ── 350 ms ── part 1 ── 350 ms ── part 2        each part is a request; a trace
    group 1      part 0 ── 350 ms ── part 1 ── 350 ms ── part 2     is in one, two or all of them

What is made ahead is written once; ids and timestamps have their places in it, and only these are
written again. A trace's number is the end of its id; a span has it too, and which one of the trace
it is:

    trace id   8 bytes at random │ zeros │ number
    span id    number │ mark │ index

so that whoever sees a span knows which one it was, without a table of what has been sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from struct import Struct
from typing import Final, NamedTuple

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from bench.traces import MakeTrace, TraceBuilder, llm_trace, plain_trace, request_of
from llmlat_semconv import attributes as names

PARTS: Final = 3
MOST_SPANS: Final = 64
"""Of a trace, so that those that were seen are bits of a word."""

MARK: Final = b"\xc3\x5a\x96"
NUMBER_BYTES: Final = 4

_RANDOM_BYTES: Final = 8
_BETWEEN_BYTES: Final = 4
_SLOTS_BETWEEN: Final = 7
"""Between two parts of a group; no multiple of PARTS, so that each slot has one part."""

_PLAIN_SHARE: Final = 0.2
_GROUPS: Final = 8
_TIME: Final = Struct("<Q")
_STAMPS: Final = frozenset(
    (
        names.LLMLAT_CLOCK_MONOTONIC_START,
        names.LLMLAT_CLOCK_ANCHOR_MONOTONIC,
        names.LLMLAT_CLOCK_ANCHOR_WALL,
    )
)
_STAMP_BYTES: Final = 9


class Place(NamedTuple):
    """Where in a request an instant stands, and which."""

    at: int
    value_ns: int


@dataclass(frozen=True, slots=True)
class Part:
    """A request, and where in it there is what differs from one time to the next.

    Attributes:
        content: as it was made.
        numbers: where the numbers of its traces stand, by the place of the trace in its group.
        times: instants as fields of spans.
        stamps: instants as attributes.
        spans: how many there are.
    """

    content: bytes
    numbers: dict[int, list[int]]
    times: list[Place]
    stamps: list[Place]
    spans: int

    def written(self, first: int, shift_ns: int) -> bytes:
        """The request once more.

        Args:
            first: number of the first trace of the group.
            shift_ns: how much later all of it is.
        """
        content = bytearray(self.content)
        for place, at in self.numbers.items():
            number = (first + place).to_bytes(NUMBER_BYTES, "big")
            for begin in at:
                content[begin : begin + NUMBER_BYTES] = number
        for begin, value_ns in self.times:
            _TIME.pack_into(content, begin, value_ns + shift_ns)
        for begin, value_ns in self.stamps:
            content[begin : begin + _STAMP_BYTES] = _varint(value_ns + shift_ns)
        return bytes(content)


@dataclass(frozen=True, slots=True)
class Group:
    """Traces that are sent in the same requests.

    Attributes:
        parts: the requests.
        spans: how many each trace has, in all of them.
        last_ns: when the last of it ends, as it was made.
    """

    parts: Sequence[Part]
    spans: Sequence[int]
    last_ns: int


class Sending(NamedTuple):
    """A request to be sent.

    Attributes:
        content: the request.
        spans: how many are in it.
        traces: the numbers of those that it has something of.
        begun: how many spans each of the traces has that begin with it, by number from `first`.
        first: the number of the first of these.
    """

    content: bytes
    spans: int
    traces: Sequence[int]
    begun: Sequence[int]
    first: int


def groups(size: int, seed: int) -> list[Group]:
    """Make groups ahead; same seed, same bytes.

    Args:
        size: about how many spans are in a request.
        seed: of all that is random.
    """
    random = Random(seed)
    return [_group(random, size) for _ in range(_GROUPS)]


class Load:
    """Requests without an end, each of traces that were never sent before."""

    def __init__(self, made: Sequence[Group]) -> None:
        """Take what was made ahead."""
        self._made = made
        self._next = 0
        self._begun: dict[int, tuple[int, int]] = {}
        self._is_ending = False

    def end(self) -> None:
        """Begin no more traces; those that have begun are sent to their end."""
        self._is_ending = True

    def sendings(self, clock: Callable[[], int]) -> Iterator[Sending]:
        """The requests, until the end.

        Args:
            clock: the wall clock in ns; asked once for each group.
        """
        slot = 0
        while not self._is_ending or self._begun:
            part = slot % PARTS
            use = (slot - _SLOTS_BETWEEN * part) // PARTS
            if part == 0 and not self._is_ending:
                self._begin(use, clock())
            if use in self._begun:
                yield self._sending(use, part)
            slot += 1

    def _begin(self, use: int, now_ns: int) -> None:
        group = self._made[use % len(self._made)]
        self._begun[use] = self._next, now_ns - group.last_ns
        self._next += len(group.spans)

    def _sending(self, use: int, number: int) -> Sending:
        group = self._made[use % len(self._made)]
        part = group.parts[number]
        first, shift_ns = self._begun[use]
        if number == PARTS - 1:
            del self._begun[use]
        return Sending(
            part.written(first, shift_ns),
            part.spans,
            [first + place for place in part.numbers],
            group.spans if number == 0 else (),
            first,
        )


# ── Made ahead ───────────────────────────────────────────────────────────────────────────────────


def _group(random: Random, size: int) -> Group:
    portions: list[list[TraceBuilder]] = [[] for _ in range(PARTS)]
    spans: list[int] = []
    last_ns = 0
    while sum(spans) < PARTS * size:
        make: MakeTrace = plain_trace if random.random() < _PLAIN_SHARE else llm_trace
        trace = _numbered(make(random), len(spans))
        spans.append(sum(map(len, trace.by_service.values())))
        last_ns = max(last_ns, *(span.end_time_unix_nano for span in _spans(trace)))
        for portion, some in zip(portions, _cut(random, trace), strict=True):
            portion.extend(some)
    return Group([_part(portion) for portion in portions], spans, last_ns)


def _spans(trace: TraceBuilder) -> Iterator[Span]:
    return (span for spans in trace.by_service.values() for span in spans)


def _numbered(trace: TraceBuilder, place: int) -> TraceBuilder:
    """The same trace with ids that tell a number: here its place in the group."""
    number = place.to_bytes(NUMBER_BYTES, "big")
    trace_id = trace.trace_id[:_RANDOM_BYTES] + bytes(_BETWEEN_BYTES) + number
    ids = {
        span.span_id: number + MARK + index.to_bytes(1, "big")
        for index, span in enumerate(_spans(trace))
    }
    if len(ids) > MOST_SPANS:
        raise ValueError(f"a trace of {len(ids)} spans; a soak knows {MOST_SPANS} of one at most")
    for span in _spans(trace):
        span.trace_id = trace_id
        span.span_id = ids[span.span_id]
        span.parent_span_id = ids.get(span.parent_span_id, b"")
    return trace


def _cut(random: Random, trace: TraceBuilder) -> Iterator[list[TraceBuilder]]:
    """What each part has of a trace: spans go out as they end, in one, two or three portions."""
    owners = [(service, span) for service, spans in trace.by_service.items() for span in spans]
    owners.sort(key=lambda owner: owner[1].end_time_unix_nano)
    count = random.randint(1, PARTS)
    taking = sorted(random.sample(range(PARTS), count))
    for part in range(PARTS):
        if part not in taking:
            yield []
            continue
        turn = taking.index(part)
        some = owners[len(owners) * turn // count : len(owners) * (turn + 1) // count]
        by_service: dict[str, list[Span]] = {}
        for service, span in some:
            by_service.setdefault(service, []).append(span)
        yield [TraceBuilder(random, trace.trace_id, by_service)]


def _part(portion: Sequence[TraceBuilder]) -> Part:
    request = request_of(portion)
    content = request.SerializeToString()
    part = Part(content, {}, [], [], sum(1 for trace in portion for _ in _spans(trace)))
    end = 0
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            for span in scope_spans.spans:
                own = span.SerializeToString()
                begin = content.index(own, end)
                end = begin + len(own)
                _note(part, span, own, begin)
    return part


def _note(part: Part, span: Span, own: bytes, begin: int) -> None:
    """Note the places of a span that begins there."""
    number = span.span_id[:NUMBER_BYTES]
    at = part.numbers.setdefault(int.from_bytes(number, "big"), [])
    at.append(begin + own.index(span.trace_id) + len(span.trace_id) - NUMBER_BYTES)
    at += (begin + place for place in _all(own, number + MARK))
    times_ns = {span.start_time_unix_nano, span.end_time_unix_nano}
    times_ns.update(event.time_unix_nano for event in span.events)
    for value_ns in times_ns:
        part.times.extend(
            Place(begin + place, value_ns) for place in _all(own, _TIME.pack(value_ns))
        )
    for value_ns in {each.value.int_value for each in span.attributes if each.key in _STAMPS}:
        part.stamps.extend(Place(begin + place, value_ns) for place in _all(own, _varint(value_ns)))


def _all(content: bytes, wanted: bytes) -> Iterable[int]:
    at = content.find(wanted)
    while at >= 0:
        yield at
        at = content.find(wanted, at + len(wanted))


def _varint(value: int) -> bytes:
    """Of an instant in ns: those of these years and many others take nine bytes."""
    return bytes(
        (
            value & 0x7F | 0x80,
            value >> 7 & 0x7F | 0x80,
            value >> 14 & 0x7F | 0x80,
            value >> 21 & 0x7F | 0x80,
            value >> 28 & 0x7F | 0x80,
            value >> 35 & 0x7F | 0x80,
            value >> 42 & 0x7F | 0x80,
            value >> 49 & 0x7F | 0x80,
            value >> 56,
        )
    )
