"""What a case says of its operations, read slowly: who joins whom, and whose content is first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from llmlat_semconv.phases import ENVELOPES, FACTS, Phase
from llmlat_semconv.values import Boundary, OperationName, TtftAbsence
from tests.cases.case_format import Case, Json

INFERENCES: Final = ("chat", "text_completion", "generate_content")
LEAVES: Final = {"execute_tool": "tool", "retrieval": "retrieval"}
ENVELOPES_BY_NAME: Final = frozenset(phase.value for phase in ENVELOPES)


@dataclass(frozen=True, slots=True)
class Section:
    """So much of a path, who answers for it, and what it is called."""

    of: str
    label: str
    amount: int


@dataclass(eq=False, slots=True)
class Operation:
    """A span that is no phase, with the phases that label its time."""

    raw: Json
    parent: Operation | None = None
    children: list[Operation] = field(default_factory=list)
    placed: list[tuple[str, int, int]] = field(default_factory=list)

    @property
    def id(self) -> str:
        """Its name in the case."""
        return str(self.raw["id"])

    @property
    def start(self) -> int:
        """On its own clock."""
        return int(self.raw["start"])

    @property
    def end(self) -> int:
        """On its own clock."""
        return int(self.raw["end"])

    @property
    def host(self) -> str:
        """Where it ran, and by whose clock."""
        return str(self.raw.get("host"))

    @property
    def durations(self) -> dict[str, int]:
        """Phases without a place, in contract order."""
        known: dict[str, int] = self.raw.get("phases", {})
        return {phase: known[phase] for phase in sorted(known, key=order_of)}

    @property
    def phases(self) -> set[str]:
        """Every phase that was recorded."""
        return {phase for phase, _, _ in self.placed} | self.durations.keys()

    @property
    def is_inference(self) -> bool:
        """Whether it asks a model for something."""
        return self.raw.get("op") in INFERENCES

    @property
    def is_one_way(self) -> bool:
        """Whether nobody waits for it."""
        return bool(self.raw.get("async"))

    @property
    def is_remote(self) -> bool:
        """Whether its parent ran in another process."""
        if self.parent is None:
            return False
        kinds = (self.parent.raw.get("kind"), self.raw.get("kind"))
        return kinds == ("client", "server") or self.parent.host != self.host

    def ancestors(self) -> Iterator[Operation]:
        """From its parent up."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent

    def local_children(self) -> list[Operation]:
        """Of its own process."""
        return [child for child in self.children if not child.is_remote]

    def callees(self) -> list[Operation]:
        """Those of other processes that it waited for."""
        return [child for child in self.children if child.is_remote and not child.is_one_way]

    def local_descendants(self) -> Iterator[Operation]:
        """Everything below it in its process."""
        for child in self.local_children():
            yield child
            yield from child.local_descendants()

    def place_of(self, *phases: str) -> tuple[int, int] | None:
        """From the first to the last of these phases; None where none of them has a place."""
        found = [(start, end) for phase, start, end in self.placed if phase in phases]
        return (min(found)[0], max(end for _, end in found)) if found else None


def order_of(phase: str) -> int:
    """Position in the contract's table."""
    return FACTS[Phase(phase)].order


def is_call(operation: Operation) -> bool:
    """Whether an operation's waiting is exchanged for somebody else's work."""
    raw = operation.raw
    if raw.get("kind") == "client" or operation.is_inference or "reported" in raw:
        return True
    if operation.phases & ENVELOPES_BY_NAME:
        return True
    only = len(operation.callees()) == 1 and not operation.local_children()
    return only and raw.get("op") != OperationName.INVOKE_AGENT.value


def forest(case: Case) -> dict[str, Operation]:
    """The operations of a case by name."""
    found = {raw["id"]: Operation(raw) for raw in case.spans if "phase" not in raw}
    for raw in case.spans:
        above = found.get(raw["parent"])
        if above is not None and "phase" in raw:
            above.placed.append((raw["phase"], raw["start"], raw["end"]))
        elif above is not None:
            found[raw["id"]].parent = above
            above.children.append(found[raw["id"]])
    for operation in found.values():
        attempts = [child for child in operation.local_children() if "attempt" in child.raw]
        for callee in operation.callees() if attempts else []:
            callee.parent = min(attempts, key=lambda attempt: int(attempt.raw["attempt"]))
            callee.parent.children.append(callee)
            operation.children.remove(callee)
    for operation in _parents_first(found):
        _tell_who_was_answered(operation)
    return found


def _parents_first(found: Mapping[str, Operation]) -> list[Operation]:
    return sorted(found.values(), key=lambda operation: sum(1 for _ in operation.ancestors()))


def engine_phases(said: Mapping[str, int]) -> dict[str, int]:
    """What of a report is the engine's own."""
    return {p: n for p, n in said.items() if FACTS[Phase(p)].boundary == Boundary.ENGINE}


def _tell_who_was_answered(operation: Operation) -> None:
    """An engine's report that gateways passed on is about the last call before the engine."""
    told = engine_phases(operation.raw.get("reported", {}))
    here = operation
    while told and is_call(here):
        answered = [other for other in _next_calls(here) if not _went_wrong(other.raw)]
        if not here.callees() and not _attempts(here):
            if here is not operation:
                here.raw = {**here.raw, "reported": {**told, **here.raw.get("reported", {})}}
            return
        if len(answered) != 1 or engine_phases(answered[0].raw.get("reported", {})):
            return
        here = answered[0]


def _attempts(here: Operation) -> list[Operation]:
    return [child for child in here.local_children() if "attempt" in child.raw]


def _went_wrong(raw: Json) -> bool:
    return bool(raw.get("error") or raw.get("lost"))


def _next_calls(here: Operation) -> list[Operation]:
    """Its attempts; else the inferences of its callee, unless an engine was measured there."""
    if _attempts(here) or not here.callees():
        return _attempts(here)
    hop = [here.callees()[0], *here.callees()[0].local_descendants()]
    if any(engine_phases(dict.fromkeys(each.phases, 0)) for each in hop):
        return []
    return [each for each in hop[1:] if each.is_inference]


def merged(sections: Sequence[Section]) -> list[Section]:
    """Without those of no length; equal neighbours are one."""
    kept: list[Section] = []
    for one in sections:
        if kept and (kept[-1].of, kept[-1].label) == (one.of, one.label):
            kept[-1] = Section(one.of, one.label, kept[-1].amount + one.amount)
        elif one.amount:
            kept.append(one)
    return kept


def without_first(amount: int, sections: Sequence[Section]) -> list[Section]:
    """Sections from some time after their start on."""
    kept: list[Section] = []
    for section in sections:
        gone = min(amount, section.amount)
        kept.append(Section(section.of, section.label, section.amount - gone))
        amount -= gone
    return kept


Said = Mapping[Operation, tuple[Operation, int]]
"""Explicit predecessors: per sibling the operation that is entered, and at which instant."""

NOTHING: Final[Said] = {}


# ── Who is waited for ────────────────────────────────────────────────────────────────────────────


def joins(child: Operation) -> Operation | None:
    """The operation that waited for a local child; None for one that is off the path."""
    if child.parent is None or child.is_remote or child.is_one_way or _was_given_up(child):
        return None
    if child.end <= child.parent.end:
        return child.parent
    below = child.parent
    while below.parent is not None and not below.is_remote:
        below = below.parent
        if child.end <= below.end:
            return below
    return None


def _was_given_up(child: Operation) -> bool:
    """A hedge's loser; or cancelled, because a sibling answered while it ran."""
    if child.raw.get("lost"):
        return True
    siblings = child.parent.local_children() if child.parent else []
    return bool(child.raw.get("cancelled")) and any(
        child.start <= other.end <= child.end and not other.raw.get("cancelled")
        for other in siblings
        if other is not child
    )


def before(
    members: Sequence[Operation], cursor: int, said: Said
) -> tuple[Operation, Operation, int] | None:
    """Who was waited for last: the member, what of it is entered, and where the path leaves it."""
    since = max((at for _, at in said.values()), default=None)
    possible = [
        (each, *said.get(each, (each, each.end)))
        for each in members
        if each in said or since is None or each.start >= since
    ]
    # The latest end; of equals what was said, then the earlier start, then the smaller id.
    return min(
        (one for one in possible if one[2] <= cursor),
        key=lambda one: (-one[2], one[0] not in said, one[0].start, one[0].id.encode()),
        default=None,
    )


def last_content(call: Operation) -> float:
    """The end of what it was sent; never, for one that says nothing of that."""
    place = call.place_of(*ENVELOPES_BY_NAME)
    is_sure = place and not ENVELOPES_BY_NAME & call.durations.keys()
    return place[1] if place and is_sure else float("inf")


# ── Which content is the first ───────────────────────────────────────────────────────────────────


def is_streamed(operation: Operation) -> bool:
    """Whether its answer came in pieces."""
    return operation.is_inference and bool(operation.raw.get("stream"))


def shows_content(operation: Operation) -> bool:
    """Whether its first content is something that the user saw."""
    raw = operation.raw
    shown = "first_useful_content" in raw and not raw.get("first_is_tool_call")
    return is_streamed(operation) and shown


def below(root: Operation) -> Iterator[Operation]:
    """It and all its descendants."""
    yield root
    for child in root.children:
        yield from below(child)


def _answers(operation: Operation) -> bool:
    """Not for a tool, a retrieval or an agent that another agent asked."""
    above = [each.raw.get("op") for each in operation.ancestors()]
    return not set(above) & LEAVES.keys() and above.count(OperationName.INVOKE_AGENT.value) < 2


def first_shown(root: Operation) -> Operation | TtftAbsence:
    """The inference whose content was the first to be seen, or why there is none."""
    inferences = [each for each in below(root) if each.is_inference and _answers(each)]
    streamed = [each for each in inferences if is_streamed(each)]
    shown = [each for each in streamed if shows_content(each)]
    if shown:
        return min(shown, key=lambda each: (each.raw["first_useful_content"], each.id))
    if not inferences:
        return TtftAbsence.NO_INFERENCE
    if not streamed:
        return TtftAbsence.NOT_STREAMED
    asked = any("first_useful_content" in each.raw for each in streamed)
    return TtftAbsence.ONLY_TOOL_CALLS if asked else TtftAbsence.CHUNK_ONLY


def shown_before(root: Operation, at: int) -> Said:
    """The streamed inference that the app's mark followed, as an explicit predecessor."""
    found = [
        (each.raw["first_useful_content"], each)
        for each in below(root)
        if each is not root
        and is_streamed(each)
        and each.raw.get("first_useful_content", at + 1) <= at
    ]
    if not found:
        return NOTHING
    shown, inference = max(found, key=lambda one: (one[0], one[1].id))
    return {[inference, *inference.ancestors()][-2]: (inference, shown)}
