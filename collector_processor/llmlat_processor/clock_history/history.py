"""All pairs of clocks: learns from the messages of traces, and answers for any two domains."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from llmlat_processor.clock_history.cones import Bound
from llmlat_processor.clock_history.epoch import Epoch
from llmlat_processor.clock_history.evidence import Evidence
from llmlat_processor.clock_history.pair import Became, Outcome, Pair
from llmlat_processor.clock_history.settings import DEFAULTS, HistorySettings
from llmlat_processor.model import UNKNOWN, Interval, Message
from llmlat_processor.model.clock_history import Step, Stretch

SERVICES: Final = 3
"""Names of services that are kept for one domain."""

NO_NAMES: Final[Mapping[str, Sequence[str]]] = {}


class ClockHistory:
    """What is known of clocks across traces; bounded, the pairs that are quiet longest go first."""

    def __init__(
        self,
        settings: HistorySettings = DEFAULTS,
        on_gone: Callable[[Stretch], None] | None = None,
    ) -> None:
        """Know nothing yet.

        Args:
            settings: assumptions and bounds.
            on_gone: is told of each window of time that has to make room.
        """
        self.settings = settings
        self.became: Counter[Became] = Counter()
        self.evicted = 0
        self.known: OrderedDict[tuple[str, str], Pair] = OrderedDict()
        self._steps: deque[Step] = deque(maxlen=settings.steps)
        self.on_gone = on_gone

    @property
    def steps(self) -> Sequence[Step]:
        """The newest steps, in the order in which they were found."""
        return tuple(self._steps)

    def pairs(self) -> Sequence[tuple[str, str]]:
        """The pairs of domains of which something is known, sorted."""
        return sorted(self.known)

    def services(self, first: str, second: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of services that were seen on each clock of a pair."""
        pair = self.known.get((first, second))
        return ((), ()) if pair is None else pair.services

    def interval(self, first: str, second: str, at_ns: int) -> Interval:
        """What clock of `second` - clock of `first` can be.

        Args:
            first: domain.
            second: domain.
            at_ns: reading of the clock of that domain of both whose name is the lesser one.
        """
        pair = self.known.get((min(first, second), max(first, second)))
        if pair is None:
            return UNKNOWN
        low_ns, high_ns = pair.interval(at_ns)
        if first < second:
            return Interval(low_ns, high_ns)
        return Interval(None if high_ns is None else -high_ns, None if low_ns is None else -low_ns)

    def stretches(self) -> Iterator[Stretch]:
        """What each window that is kept proves, pair by pair."""
        for first, second in self.pairs():
            for epoch in self.known[first, second].epochs:
                for window in epoch.windows:
                    yield epoch.stretch(first, second, window)

    def learn(
        self,
        trace_id: bytes,
        messages: Iterable[Message],
        services: Mapping[str, Sequence[str]] = NO_NAMES,
    ) -> None:
        """Take in what one trace tells.

        Args:
            trace_id: of the trace.
            messages: between its domains.
            services: names of services by domain.
        """
        told: dict[tuple[str, str], Evidence] = {}
        for message in messages:
            if message.sender == message.receiver:
                continue
            key = _key(message)
            evidence = told.get(key)
            if evidence is None:
                evidence = told[key] = Evidence(self.settings.drift_ppm)
            try:
                evidence.hear(trace_id, message, is_from_first=message.sender == key[0])
            except ValueError:
                self.became[Became.NO_TIME] += 1
        for key, evidence in told.items():
            if evidence.messages:
                self._learn(key, trace_id, evidence, services)

    def merge(self, other: ClockHistory) -> None:
        """Learn what another history keeps, as if its traces had come here; it stays as it is.

        What is known only gets tighter. Of the traces of the other those count whose bounds it
        still keeps, and its steps and counters remain its own.
        """
        for key, pair in other.known.items():
            names = dict(zip(key, pair.services, strict=True))
            for trace_id, evidence in _by_trace(pair, other.settings.drift_ppm):
                self._learn(key, trace_id, evidence, names)

    def put(self, key: tuple[str, str], pair: Pair) -> None:
        """Add a pair that was saved, as the one told of last."""
        self.known[key] = pair
        self._make_room()

    def put_step(self, step: Step) -> None:
        """Add a step that is known."""
        self._steps.append(step)

    def _learn(
        self,
        key: tuple[str, str],
        trace_id: bytes,
        evidence: Evidence,
        services: Mapping[str, Sequence[str]],
    ) -> None:
        pair = self.known.get(key)
        if pair is None:
            pair = self.known[key] = Pair(*key, self.settings)
            self._make_room()
        self.known.move_to_end(key)
        pair.services = (
            _merged(pair.services[0], services.get(key[0], ())),
            _merged(pair.services[1], services.get(key[1], ())),
        )
        self._note(pair, pair.learn(trace_id, evidence))

    def _note(self, pair: Pair, outcome: Outcome) -> None:
        self.became.update(outcome.became)
        if outcome.step is not None:
            self.put_step(outcome.step)
        if self.on_gone is not None:
            for epoch, windows in outcome.gone:
                for window in windows:
                    self.on_gone(epoch.stretch(pair.first, pair.second, window))

    def _make_room(self) -> None:
        while len(self.known) > self.settings.pairs:
            _, pair = self.known.popitem(last=False)
            self.evicted += 1
            gone = [(epoch, tuple(epoch.windows)) for epoch in pair.epochs]
            self._note(pair, Outcome(gone=[*gone]))


def _key(message: Message) -> tuple[str, str]:
    sender, receiver = message.sender, message.receiver
    return (sender, receiver) if sender < receiver else (receiver, sender)


def _merged(known: tuple[str, ...], more: Sequence[str]) -> tuple[str, ...]:
    """The first few of both in the order of names, whichever came first."""
    if set(known).issuperset(more):
        return known
    return tuple(sorted({*known, *more})[:SERVICES])


def _by_trace(pair: Pair, drift_ppm: int) -> Iterable[tuple[bytes, Evidence]]:
    """What each trace proved of a pair, in the order of time."""
    found: dict[tuple[int, bytes], Evidence] = {}
    for epoch in pair.epochs:
        for is_above, bound in _bounds(epoch):
            trace = found.setdefault((epoch.number, bound.trace), Evidence(drift_ppm))
            (trace.above if is_above else trace.below).add(bound)
            trace.messages += 1
    order = sorted(found.items(), key=lambda item: (item[0][0], min(item[1].instants_ns())))
    return [(trace_id, evidence) for (_, trace_id), evidence in order]


def _bounds(epoch: Epoch) -> Iterator[tuple[bool, Bound]]:
    for window in epoch.windows:
        yield from ((True, bound) for bound in window.evidence.above)
        yield from ((False, bound) for bound in window.evidence.below)
