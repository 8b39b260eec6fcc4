"""Critical paths the slow and obvious way: the rules of docs/concepts.md, read one by one.

An independent oracle for case files: recursion, lists searched from end to end, own time tick by
tick, amounts in the case's own unit and no tolerance. test_paths_oracle.py lists what it has no
answer for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from llmlat_semconv import events
from llmlat_semconv.phases import FACTS, Phase
from llmlat_semconv.values import LinkRelationship, SectionLabel, TtftAbsence
from tests.cases.case_format import Case
from tests.properties.oracle_facts import (
    ENVELOPES_BY_NAME,
    LEAVES,
    NOTHING,
    Operation,
    Said,
    Section,
    before,
    first_shown,
    forest,
    is_call,
    joins,
    last_content,
    merged,
    order_of,
    shown_before,
    shows_content,
    without_first,
)
from tests.properties.oracle_reports import LAST_OUTPUTS, STREAMING, Callee, reported

PRECEDING: Final = (LinkRelationship.FOLLOWS.value, LinkRelationship.RETRY_OF.value)
FIRST_ENVELOPES: Final = frozenset(("wait", "upstream"))
NEXT_ENVELOPES: Final = FIRST_ENVELOPES | {"first_content"}
HOLD: Final = 5
UNOBSERVED: Final = SectionLabel.UNOBSERVED.value


@dataclass(slots=True)
class Oracle:
    """One case, explained."""

    case: Case
    operations: dict[str, Operation] = field(init=False)
    too_long: set[str] = field(default_factory=set)
    free: dict[Operation, int] = field(default_factory=dict)
    lent: dict[Operation, int] = field(default_factory=dict)
    sink: Operation | None = None

    def __post_init__(self) -> None:
        self.operations = forest(self.case)

    def e2e(self, root: Operation) -> list[Section]:
        """What the root's end waited for, in time order."""
        return merged(self.inside(root, root.end, root.start))

    def ttft(self, root: Operation) -> list[Section] | TtftAbsence:
        """What the first useful content waited for, or why there is none."""
        for event in root.raw.get("events", ()):
            if event["name"] == events.LLMLAT_FIRST_CONTENT:
                self.sink = root
                marked = shown_before(root, event["at"])
                return merged(self.inside(root, event["at"], root.start, marked))
        sink = root if shows_content(root) else first_shown(root)
        if isinstance(sink, TtftAbsence):
            return sink
        self.sink = sink
        return merged(self.climb(sink, sink.raw["first_useful_content"], None, root.start)[0])

    def said(self, after: Operation) -> Said:
        """Siblings that an operation explicitly waited for: where the edge leaves each."""
        named = [
            self.operations[link["to_span"]]
            for link in self.case.links
            if link["from_span"] == after.id and link["type"] in PRECEDING
        ]
        asked_for = after.raw.get("call_id") if after.raw.get("op") == "execute_tool" else None
        leaves = {before: (before, before.end) for before in named}
        siblings = after.parent.children if after.parent else []
        for chat in siblings if asked_for else []:
            for event in chat.raw.get("events", ()):
                if event["name"] == events.LLMLAT_TOOL_CALL and event["call_id"] == asked_for:
                    whole = event["at"] >= last_content(chat)
                    leaves[chat] = (chat, chat.end if whole else event["at"])
        return {before: at for before, at in leaves.items() if joins(before) is after.parent}

    def fits(self, call: Operation) -> bool:
        """Whether the whole of a call can be exchanged; if not, its callee is on no path."""
        sink, self.sink = self.sink, None
        self.inside(call, call.end, call.start)
        self.sink = sink
        return call.id not in self.too_long

    # ── The walk ─────────────────────────────────────────────────────────────────────────────────

    def inside(
        self, here: Operation, high: int, low: int, said: Said | None = None
    ) -> list[Section]:
        """The path through an operation between two instants of its clock."""
        if low > here.start:  # it is explained as a whole, then clipped
            return without_first(low - here.start, self.inside(here, high, here.start, said))
        own: list[tuple[int, int]] = []
        entered: list[tuple[int, list[Section]]] = []
        members = [each for each in self.operations.values() if joins(each) is here]
        cursor = high
        while cursor > low:
            chosen = before(members, cursor, said or {})
            if chosen is None or chosen[2] <= low:
                own.append((low, cursor))
                break
            member, first, leaves = chosen
            members.remove(member)
            own.append((leaves, cursor))
            sections, cursor, left = self.climb(first, leaves, here, low)
            # What was said holds until it is reached: siblings in between don't lift the bar.
            said = left if left or member in (said or {}) else said
            entered.append((cursor, sections))
        whole = (high, low) == (here.end, here.start)
        pieces = self.labelled(here, own, whole)
        if is_call(here):
            pieces = Exchange(self, here, high, pieces).done()
        timeline = [(at, [section]) for at, section in pieces] + entered
        timeline.sort(key=lambda item: item[0])
        return [section for _, sections in timeline for section in sections]

    def climb(
        self, entered: Operation, high: int, top: Operation | None, low: int
    ) -> tuple[list[Section], int, Said]:
        """Through an operation, then through its ancestors below `top` that were open then."""
        chain = [entered]
        for above in entered.ancestors():
            if above is top:
                break
            chain.append(above)
        sections: list[Section] = []
        cursor, said = high, NOTHING
        for position, here in enumerate(chain):
            floor = min(cursor, max(low, *(each.start for each in chain[position:])))
            if here is entered or here.end >= cursor:
                sections = self.inside(here, cursor, floor, said) + sections
                cursor, said = floor, self.said(here)
            else:
                said = NOTHING
        return sections, cursor, said

    # ── What own time is called ──────────────────────────────────────────────────────────────────

    def labelled(
        self, here: Operation, own: Sequence[tuple[int, int]], whole: bool
    ) -> list[tuple[int, Section]]:
        """Each tick by the phase that lies there; then durations, in the ticks that are left."""
        names = {tick: _placed_at(here, tick) for start, end in own for tick in range(start, end)}
        names = dict(sorted(names.items()))
        if whole:
            self.free[here] = sum(name is None for name in names.values())
        elif here.durations and here not in self.free:
            self.inside(here, here.end, here.start)
        if here.durations and sum(here.durations.values()) <= self.free[here]:
            left = _fill(here, here.durations, names, in_order=True)
            _fill(here, left if whole else {}, names, in_order=False)
        rest = UNOBSERVED
        if not here.children and not here.phases:
            rest = LEAVES.get(here.raw.get("op", ""), SectionLabel.WORK.value)
        return [(tick, Section(here.id, name or rest, 1)) for tick, name in names.items()]


def _placed_at(here: Operation, tick: int) -> str | None:
    """The innermost phase span over a tick."""
    found = [phase for phase, start, end in here.placed if start <= tick < end]
    inner = [phase for phase in found if FACTS[Phase(phase)].nested_in]
    return next(iter([*inner, *found]), None)


def _fill(
    here: Operation, left: dict[str, int], names: dict[int, str | None], in_order: bool
) -> dict[str, int]:
    """Durations in contract order, each before the placed phases that follow it; what is left."""
    for tick, name in names.items():
        following = [order_of(phase) for phase, start, _ in here.placed if start > tick]
        limit = min(following, default=len(FACTS)) if in_order else len(FACTS)
        fitting = [phase for phase, amount in left.items() if amount and order_of(phase) < limit]
        if fitting and name is None:
            names[tick] = fitting[0]
            left[fitting[0]] -= 1
    return left


# ── What waiting is exchanged for ────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Exchange:
    """One call whose own time, tick by tick, is `pieces`; the path enters it at `high`."""

    oracle: Oracle
    call: Operation
    high: int
    pieces: list[tuple[int, Section]]

    def done(self) -> list[tuple[int, Section]]:
        """The callee in place of the envelopes, or the envelopes as they stand."""
        clipped = self.high < min(self.call.end, last_content(self.call))
        clipped = clipped or (self.call is self.oracle.sink)
        callees = self.call.callees()
        if not callees and "reported" not in self.call.raw:
            return self.pieces if clipped else self.with_consumer()
        if clipped and not (self.oracle.fits(self.call) and self.has_whole_wait()):
            return self.pieces
        for envelopes in self.envelopes(clipped, bool(callees)):
            mine = self.mine(envelopes)
            # What is bounded is cut only where nothing wider is left to be exchanged.
            room = None if clipped and envelopes is FIRST_ENVELOPES else len(mine)
            callee = (
                self.measured(callees[0], clipped)
                if callees
                else reported(self.call, room, clipped)
            )
            done = self.exchanged(mine, callee, clipped) if callee else None
            if done is not None:
                return done
        if not clipped:
            self.oracle.too_long.add(self.call.id)
        return self.pieces if callees and clipped else self.with_consumer()

    def envelopes(self, clipped: bool, is_measured: bool) -> Sequence[frozenset[str]]:
        """What may be exchanged: the narrower first, if there are two."""
        if clipped:
            return FIRST_ENVELOPES, ENVELOPES_BY_NAME
        if is_measured or not reported(self.call, None, clipped=False).is_part:
            return (ENVELOPES_BY_NAME,)
        sure = reported(self.call, 0, clipped=False).amount  # with all that is bounded cut away
        return (FIRST_ENVELOPES if sure <= len(self.mine(FIRST_ENVELOPES)) else NEXT_ENVELOPES,)

    def mine(self, envelopes: frozenset[str]) -> list[int]:
        """The ticks that may be exchanged; without envelopes, those under no phase."""
        if self.call.phases & ENVELOPES_BY_NAME:
            return self.under(*envelopes)
        return [at for at, one in self.pieces if one.label not in self.call.phases]

    def under(self, *labels: str) -> list[int]:
        """The call's own ticks under some labels."""
        return [at for at, section in self.pieces if section.label in labels]

    def has_whole_wait(self) -> bool:
        """Where the wait itself is cut, nothing says what of the callee lies in it."""
        lasted = sum(e - s for phase, s, e in self.call.placed if phase in FIRST_ENVELOPES)
        lasted += sum(n for phase, n in self.call.durations.items() if phase in FIRST_ENVELOPES)
        is_opaque = not self.call.phases & ENVELOPES_BY_NAME
        return is_opaque or (lasted > 0 and len(self.under(*FIRST_ENVELOPES)) == lasted)

    def with_consumer(self) -> list[tuple[int, Section]]:
        """Nobody answered for it: the end of the stream is the time that the reader held it."""
        streaming = self.under(*STREAMING)
        held = streaming[max(0, len(streaming) - self.call.raw.get("consumer", 0)) :]
        return [(at, self.own("consumer") if at in held else one) for at, one in self.pieces]

    def own(self, label: str, amount: int = 1) -> Section:
        """What the call itself answers for."""
        return Section(self.call.id, label, amount)

    def measured(self, callee: Operation, clipped: bool) -> Callee | None:
        """The callee's own path to its first output where clipped, else to its last."""
        edge = first_output(callee) if clipped else last_output(callee)
        if edge is None:
            return None
        instants = [edge[1]]
        stream = edge[0].place_of("upstream_stream")
        if clipped and stream and (edge[0].callees() or "reported" in edge[0].raw):
            instants += range(edge[1] + 1, stream[1] + 1)
        found = [self.to(callee, edge[0], instant) for instant in instants]
        same_clock = callee.host == self.call.host
        whole = next((s for s in found if not _stands(edge[0], s)), found[0])
        last_byte = not clipped and not edge[0].place_of("decode", "detokenize")
        place = callee.place_of("relay") or (0, 0)  # A gateway learns late that it has sent all.
        late = 0 if clipped else place[1] - place[0] + callee.durations.get("relay", 0)
        if not same_clock:
            return Callee(whole, ends_with_last_byte=last_byte, bounded=late)
        end = instants[found.index(whole)]
        return Callee(whole, callee.start, end, last_byte, bounded=late)

    def to(self, callee: Operation, at: Operation, instant: int) -> list[Section]:
        """Sections from a callee's start to an instant in it or in one of its descendants."""
        return merged(self.oracle.climb(at, instant, self.call, callee.start)[0])

    def exchanged(
        self, mine: list[int], callee: Callee, clipped: bool
    ) -> list[tuple[int, Section]] | None:
        """None where the callee doesn't fit."""
        need = max(0, callee.amount - len(mine))
        taken: list[int] = []
        for phase in ("finalize", "send"):
            place, own = self.call.place_of(phase), self.under(phase)
            if phase == "finalize" and not callee.ends_with_last_byte:
                continue
            if place and callee.start is not None and callee.end is not None:
                overlap = callee.end - place[0] if phase == "finalize" else place[1] - callee.start
            else:
                overlap = need - len(taken) - (callee.bounded if phase == "send" else 0)
                if clipped:  # no more than the whole call needs
                    overlap = min(overlap, self.oracle.lent.get(self.call, 0))
            overlap = min(len(own), max(0, overlap))
            taken += own[:overlap] if phase == "finalize" else own[len(own) - overlap :]
        send = self.under("send")
        if not clipped:
            self.oracle.lent[self.call] = len(set(taken) & set(send))
        callee = callee.giving_way(len(mine) + len(taken))
        surplus = len(mine) + len(taken) - callee.amount
        if surplus < 0:
            return None
        gone = {*mine, *taken}
        kept = [(at, section) for at, section in self.pieces if at not in gone]
        after_send = max((at + 1 for at in send), default=min(gone, default=0))
        position = _longest_run(mine) if mine else after_send
        if not callee.is_part:
            rest = list(self.rest(surplus, mine, clipped))
            return [(position, one) for one in [*callee.sections, *rest]] + kept
        # Nobody answers for what follows a part: it is called what it was.
        labels = dict(self.pieces)
        same = [self.own(labels[max(mine)].label, surplus)] if mine else []
        done = [(position, one) for one in [*callee.sections, *same]] + kept
        return done if clipped else self.consumed(done)

    def consumed(self, pieces: list[tuple[int, Section]]) -> list[tuple[int, Section]]:
        """The same with the end of what streams as the time that the reader held it."""
        owed, done = self.call.raw.get("consumer", 0), list[tuple[int, Section]]()
        for at, one in sorted(pieces, key=lambda piece: piece[0])[::-1]:
            is_mine = one.of == self.call.id and one.label in STREAMING
            taken = min(owed, one.amount) if is_mine else 0
            owed -= taken
            done.append((at, self.own("consumer", taken)))
            done.append((at, Section(one.of, one.label, one.amount - taken)))
        return done[::-1]

    def rest(self, surplus: int, mine: list[int], clipped: bool) -> Iterator[Section]:
        """What of the waiting the callee doesn't account for."""
        streaming = self.under(*STREAMING)
        known = self.call.phases & ENVELOPES_BY_NAME
        recorded = len(mine) if not known else len(set(streaming) & set(mine))
        # It is one amount for the whole stream: nobody knows how much came before a clip.
        consumer = 0 if clipped else min(surplus, recorded, self.call.raw.get("consumer", 0))
        held = min(surplus - consumer, self.hold()) if clipped else 0
        yield self.own("consumer", consumer)
        yield self.own("held", held)
        yield self.own("transit", surplus - consumer - held)

    def hold(self) -> int:
        """For how long tokens existed and the client had none."""
        decode = sum(
            end - start for c in self.call.callees() for p, start, end in c.placed if p == "decode"
        )
        had = sum(e - s for p, s, e in self.call.placed if p in ("first_content", "stream"))
        had += sum(self.call.durations.get(phase, 0) for phase in ("first_content", "stream"))
        streamed = self.call.raw.get("stream") and "stream" in self.call.phases
        return decode - had if streamed and decode - had > HOLD else 0


def _longest_run(ticks: Sequence[int]) -> int:
    """Where the longest stretch of consecutive ticks begins; the first of equals."""
    here = set(ticks)
    return max(
        (tick for tick in ticks if tick - 1 not in here),
        key=lambda start: (next(n for n in range(len(here) + 1) if start + n not in here), -start),
    )


def _stands(call: Operation, sections: Sequence[Section]) -> bool:
    """Whether a gateway's own waiting could not be exchanged."""
    return any((one.of, one.label) == (call.id, "upstream") for one in sections)


def last_output(callee: Operation) -> tuple[Operation, int] | None:
    """Where a callee's account ends."""
    edge = _edge(callee, LAST_OUTPUTS)
    return edge or (callee, callee.end)


def first_output(callee: Operation) -> tuple[Operation, int] | None:
    """Where a callee first had something to say."""
    return _edge(callee, ("prefill", "upstream"))


def _edge(callee: Operation, phases: Sequence[str]) -> tuple[Operation, int] | None:
    """On the callee, else on what it ran in its process; the latest of several."""
    for group in ([callee], list(callee.local_descendants())):
        found = [(each, each.place_of(*phases)) for each in group]
        edges = [(each, place[1]) for each, place in found if place]
        if edges:
            return max(edges, key=lambda edge: edge[1])
    return None
