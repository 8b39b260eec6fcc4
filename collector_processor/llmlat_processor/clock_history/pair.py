"""One pair of clocks over all traces: what is known, who contradicts it, and when that is a step.

A trace either agrees with all that is known, the drift granted, and is learned from; or it is the
odd one out and is held: it changes nothing of what is known. Whoever is wrong may be a bad span,
so nobody is believed alone:

    two that are held agree, and exclude what at least two others told    a step: a new epoch
    three that are held agree, and exclude what a single one told         that one is forgotten
    eight in a row are older than all that is kept                        the newest was no time

A step parts the time in two: all that it excludes is older than all that excludes it. Two accounts
that take turns are no step, whatever they tell apart (two hosts of one name, stamps that are
coarser than anybody knows):

    told  ──●──●─────●──●─────●──▶ t
    held  ────────○────────○─────▶

Unless nobody told the old account for eight in a row: then the first clock was set back, and what
it showed since then is less than what it had shown before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from llmlat_processor.clock_history.cones import MILLION, packed, unpacked, witness_of
from llmlat_processor.clock_history.epoch import LIVE, Epoch, Window
from llmlat_processor.clock_history.evidence import (
    Contradiction,
    Evidence,
    contradictions,
    widest,
)
from llmlat_processor.clock_history.settings import HistorySettings
from llmlat_processor.model import UNKNOWN, Interval
from llmlat_processor.model.clock_history import Step, Witness

AGREE: Final = 2
"""Traces on each side that make a step."""

OUTVOTE: Final = 3
"""Traces that agree against a single one."""

BEHIND: Final = 8
"""Traces in a row that may be older than what is known before it is the newest that is doubted."""

WITNESSES: Final = 4


class Became(Enum):
    """What became of the messages of a trace."""

    LEARNED = "learned"
    LATE = "late"
    HELD = "held"
    SELF_CONTRADICTING = "self_contradicting"
    FORGOTTEN = "forgotten"
    NO_TIME = "no_time"


class Held(NamedTuple):
    """A trace that contradicts what is known: what it proves where it does so the most.

    Its bounds are packed: thousands of pairs may each hold some.
    """

    trace_id: bytes
    messages: int
    above: bytes
    below: bytes

    @classmethod
    def of(cls, trace_id: bytes, evidence: Evidence) -> Held:
        """Hold what a trace proves."""
        above, below = packed(evidence.above), packed(evidence.below)
        return cls(trace_id, evidence.messages, above, below)

    def evidence(self, drift_ppm: int) -> Evidence:
        """What the trace proves, to be compared."""
        found = Evidence(drift_ppm)
        found.messages = self.messages
        for side, content in ((found.above, self.above), (found.below, self.below)):
            for bound in unpacked(content):
                side.add(bound)
        return found


@dataclass(slots=True)
class Outcome:
    """What learning from one trace did.

    Attributes:
        became: messages, by what became of them.
        gone: windows that had to go, each with the epoch that it was of.
        step: the step that is known now; None mostly.
    """

    became: Counter[Became] = field(default_factory=Counter)
    gone: list[tuple[Epoch, Sequence[Window]]] = field(default_factory=list)
    step: Step | None = None


class Pair:
    """Two clocks, the first of the lesser name."""

    __slots__ = ("behind", "epoch", "first", "former", "held", "second", "services", "settings")

    def __init__(self, first: str, second: str, settings: HistorySettings) -> None:
        """Know nothing yet."""
        self.first = first
        self.second = second
        self.settings = settings
        self.services: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        self.epoch = Epoch(0, 0, settings)
        self.former: Epoch | None = None
        self.held: tuple[Held, ...] = ()
        self.behind = 0

    @property
    def epochs(self) -> Iterable[Epoch]:
        """The one before the last step, as long as it is kept, and the present one."""
        return (self.epoch,) if self.former is None else (self.former, self.epoch)

    def interval(self, at_ns: int) -> Interval:
        """What θ can be at an instant of the first clock.

        before ──────●                 ●────────── since
                     │ nobody tells of │             in between it may have been either
        """
        epoch, former = self.epoch, self.former
        if epoch.number == 0 or at_ns >= epoch.since_ns:
            return epoch.interval(at_ns)
        if former is None:
            return UNKNOWN
        before = former.interval(at_ns)
        return before if at_ns <= former.until_ns else _either(before, epoch.interval(at_ns))

    def learn(self, trace_id: bytes, evidence: Evidence) -> Outcome:
        """Take in what one trace tells of these clocks."""
        outcome = Outcome()
        if any(contradictions(evidence, evidence)):  # the trace itself reports that
            outcome.became[Became.SELF_CONTRADICTING] += evidence.messages
        elif self._is_of_before(evidence):
            self._learn_late(evidence, outcome)
        else:
            contradiction = widest(self.epoch.contradictions(evidence))
            if contradiction is None:
                self._learn(evidence, outcome)
            else:
                self._hold(trace_id, evidence, contradiction, outcome)
        return outcome

    def _is_of_before(self, evidence: Evidence) -> bool:
        """Whether it came after the last step and is of before it; not too many in a row are."""
        is_before = self.epoch.number > 0 and evidence.newest_ns < self.epoch.since_ns
        return is_before and self.behind < BEHIND - 1

    def _learn(self, evidence: Evidence, outcome: Outcome) -> None:
        if self.epoch.is_behind(evidence):
            self.behind += 1
            if self.behind < BEHIND:
                outcome.became[Became.LATE] += evidence.messages
                return
            outcome.became[Became.NO_TIME] += 1
            outcome.gone.append((self.epoch, tuple(self.epoch.windows)))
            self.epoch.windows = []
        self.behind = 0
        self.epoch.since_ns = min(self.epoch.since_ns, evidence.newest_ns)
        outcome.became[Became.LEARNED] += evidence.messages
        outcome.gone.append((self.epoch, self.epoch.learn(evidence)))
        if len(self.epoch.windows) >= LIVE:
            self._let_former_go(outcome)

    def _learn_late(self, evidence: Evidence, outcome: Outcome) -> None:
        self.behind += 1
        former = self.former
        if former is None or former.is_behind(evidence) or any(former.contradictions(evidence)):
            outcome.became[Became.LATE] += evidence.messages
            return
        outcome.became[Became.LEARNED] += evidence.messages
        outcome.gone.append((former, former.learn(evidence)))

    def _let_former_go(self, outcome: Outcome) -> None:
        """One pair keeps two windows, whichever epochs they are of."""
        if self.former is not None:
            outcome.gone.append((self.former, tuple(self.former.windows)))
            self.former = None

    def _hold(
        self, trace_id: bytes, evidence: Evidence, found: Contradiction, outcome: Outcome
    ) -> None:
        """Keep the odd one apart, and see whether it is one of several by now."""
        outcome.became[Became.HELD] += evidence.messages
        evidence = evidence.at_instant(found.own.at_ns)
        # Whom an odd one contradicted may have gone with its window, and the oddness with it.
        odd = [
            (one, told)
            for one in self.held
            if one.trace_id != trace_id
            and any(self.epoch.contradictions(told := one.evidence(self.settings.drift_ppm)))
        ]
        odd = [*odd, (Held.of(trace_id, evidence), evidence)][-self.settings.held :]
        group = _agreeing([told for _, told in odd])
        is_settled = self._settle(group, outcome)
        self.held = tuple(one for one, told in odd if not (is_settled and told in group))

    def _settle(self, group: Sequence[Evidence], outcome: Outcome) -> bool:
        """Decide who is wrong, once enough agree that what is known is not what they saw."""
        if len(group) < AGREE:
            return False
        excluded = [each for one in group for each in self.epoch.excluded(one)]
        told_by = {each.own.trace for each in excluded}
        if len(told_by) >= AGREE:
            step = self._told(
                excluded, [each for one in group for each in self.epoch.contradictions(one)]
            )
            if step.after_ns > step.by_ns and not self._is_set_back():
                return False
            self._step(step, group, outcome)
        elif len(group) >= OUTVOTE:
            outcome.became[Became.FORGOTTEN] += len(told_by)
            for trace_id in told_by:
                self.epoch.drop_trace(trace_id)
        else:
            return False
        for one in group:
            outcome.gone.append((self.epoch, self.epoch.learn(one)))
        return True

    def _is_set_back(self) -> bool:
        """Whether it is the first clock that went back, and not two accounts that take turns."""
        self.behind += 1
        return self.behind >= BEHIND

    def _step(self, step: Step, group: Sequence[Evidence], outcome: Outcome) -> None:
        outcome.step = step
        self._let_former_go(outcome)
        self.former = self.epoch
        outcome.gone.append((self.former, self.former.end(step.after_ns)))
        since_ns = min(at_ns for one in group for at_ns in one.instants_ns())
        self.epoch = Epoch(self.former.number + 1, since_ns, self.settings)
        self.behind = 0

    def _told(self, old: Sequence[Contradiction], new: Sequence[Contradiction]) -> Step:
        most = max(new, key=lambda each: each.lacking)
        # What is excluded is too low an upper bound where the new one rose above it.
        amount_ns = most.lacking // MILLION * (-1 if most.is_above else 1)
        return Step(
            self.first,
            self.second,
            amount_ns,
            max(each.own.at_ns for each in old),
            min(each.own.at_ns for each in new),
            _witnesses(old),
            _witnesses(new),
        )


def _either(one: Interval, other: Interval) -> Interval:
    """From the lower of both low ends to the higher of both high ones."""
    lows, highs = (one.low_ns, other.low_ns), (one.high_ns, other.high_ns)
    return Interval(
        None if None in lows else min(low_ns for low_ns in lows if low_ns is not None),
        None if None in highs else max(high_ns for high_ns in highs if high_ns is not None),
    )


def _witnesses(found: Sequence[Contradiction]) -> tuple[Witness, ...]:
    """Of each trace what contradicts the most, the widest first."""
    by_trace: dict[bytes, Contradiction] = {}
    for each in sorted(found, key=lambda each: (-each.lacking, each.own)):
        by_trace.setdefault(each.own.trace, each)
    return tuple(witness_of(each.own) for each in [*by_trace.values()][:WITNESSES])


def _agreeing(odd: Sequence[Evidence]) -> list[Evidence]:
    """The newest, and those before it that contradict neither it nor each other."""
    group = [odd[-1]]
    for one in reversed(odd[:-1]):
        if not any(any(contradictions(one, other)) for other in group):
            group.append(one)
    return group
