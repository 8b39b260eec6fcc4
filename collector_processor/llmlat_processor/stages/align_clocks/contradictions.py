"""What no offsets can explain: the messages that prove it, and whether a stepped clock would.

one call              the callee took longer than its caller waited
two domains           each call is possible, all of them together are not
three or more         each two are possible, all together are not
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Final, NamedTuple

from llmlat_processor.model import Finding, Message
from llmlat_processor.offsets import Pair, tightest_of
from llmlat_processor.stages.align_clocks.messages import Exchange
from llmlat_semconv.values import FindingKind

CALLS_BESIDE_A_STEP: Final = 2
"""So many bounds of either kind before and after it tell a step from one bad span."""


def of_one_exchange(exchange: Exchange, drift_ppm: int) -> Finding | None:
    """A callee that took longer than its caller waited; no offset of the clocks matters here."""
    request = exchange.request
    for answer in exchange.answers:
        waited_ns = answer.arrived_ns - request.left_ns
        taken_ns = answer.left_ns - request.arrived_ns
        granted_ns = answer.epsilon_ns + answer.tail_ns + max(0, waited_ns) * drift_ppm // 1_000_000
        if taken_ns > waited_ns + request.epsilon_ns + granted_ns:
            return Finding(
                FindingKind.NEGATIVE_TRANSIT,
                request.arrived,
                waited_ns - taken_ns,
                (request.arrived, request.left),
                request.epsilon_ns + granted_ns,
                proof=(request, answer),
            )
    return None


class Settled(NamedTuple):
    """The tightest messages of two domains that are consistent, and what is wrong with others."""

    messages: Iterable[Message]
    finding: Finding | None


def of_two_domains(messages: Sequence[Message], steady: Container[str]) -> Settled:
    """Messages between two domains, in both directions, that may contradict each other.

    Args:
        messages: all of them.
        steady: domains of monotonic clocks, which are never stepped.

    Where one step of a clock explains all of them, those before it are kept: they are about the
    start of the trace. Where nothing explains them nobody knows which are wrong: none is kept.
    """
    proof = tuple(tightest_of(messages).values())
    if len(proof) == 1 or sum(message.limit_ns for message in proof) >= 0:
        return Settled(proof, None)
    before = _before_a_step(messages, steady)
    if before is None:
        return Settled((), found(FindingKind.INFEASIBLE_OFFSET, proof))
    return Settled(tightest_of(before).values(), found(FindingKind.CLOCK_STEP, proof))


def found(kind: FindingKind, proof: tuple[Message, ...]) -> Finding:
    """A violation, with the messages that go round in a circle as its certificate."""
    witnesses = dict.fromkeys(each for m in proof for each in (m.left, m.arrived))
    return Finding(
        kind,
        proof[0].left,
        sum(message.limit_ns for message in proof),
        tuple(witnesses),
        sum(message.epsilon_ns + message.tail_ns + message.drift_ns for message in proof),
        proof=proof,
    )


def _before_a_step(messages: Sequence[Message], steady: Container[str]) -> Sequence[Message] | None:
    """The messages before the one instant that splits all of them into two possible halves.

    A clock that was stepped has stamps out of order: by a steady one they are in order. Of two that
    are not nobody knows which it was; where the order by each says another thing, there is a step
    but no before.
    """
    pair = sorted(messages[0][:2])
    clocks = [domain for domain in pair if domain in steady] or pair
    if len(clocks) == len(pair) and pair[0] in steady:
        return None  # neither can be stepped
    halves = [_first_half(_in_order(messages, domain)) for domain in clocks]
    if not any(halves):
        return None
    return halves[0] if all(set(half) == set(halves[0]) for half in halves) else ()


def _first_half(in_order: Sequence[Message]) -> Sequence[Message]:
    """Up to where both halves are possible and tell enough; nothing without such a place."""
    ahead, behind = _possible_up_to(in_order), _possible_up_to(in_order[::-1])
    senders = [message.sender for message in in_order]
    pair = sorted(in_order[0][:2])
    before, after = Counter[str](), Counter(senders)
    for split, sender in enumerate(senders):
        if len(in_order) - behind <= split <= ahead and all(
            min(before[domain], after[domain]) >= CALLS_BESIDE_A_STEP for domain in pair
        ):
            return in_order[:split]
        before[sender] += 1
        after[sender] -= 1
    return ()


def _in_order(messages: Iterable[Message], domain: str) -> Sequence[Message]:
    """By the time at which each left or arrived by the clock of one of the two domains."""

    def at(message: Message) -> tuple[int, Message]:
        return (message.left_ns if message.sender == domain else message.arrived_ns), message

    return sorted(messages, key=at)


def _possible_up_to(messages: Sequence[Message]) -> int:
    """How many of the first messages are possible together."""
    least: dict[Pair, int] = {}
    for number, message in enumerate(messages):
        pair, limit = message[:2], message.limit_ns
        least[pair] = min(limit, least.get(pair, limit))
        back = least.get(pair[::-1])
        if back is not None and least[pair] + back < 0:
            return number
    return len(messages)
