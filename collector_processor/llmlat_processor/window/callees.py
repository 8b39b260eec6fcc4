"""Which calls of a trace still miss their callee's spans, and whose are worth waiting for.

Caller and callee export by themselves, seconds apart, so a trace can look complete when half of
it is still to come. But a vendor's API never sends a span: who was asked a hundred times and
never told anything is not waited for any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from llmlat_processor.model import CLIENT, CONSUMER, PARENT_IS_REMOTE, SERVER, Span
from llmlat_semconv import attributes as names
from llmlat_semconv.values import OperationName

_INFERENCES: Final = {
    OperationName.CHAT.value,
    OperationName.TEXT_COMPLETION.value,
    OperationName.GENERATE_CONTENT.value,
}


Calls = Sequence[tuple[str, bool]]
"""The target of each call of a trace, and whether its callee has told of it."""


class Callees:
    """What is known of the targets of calls; bounded, the first ones forgotten first."""

    def __init__(self, hopeless_calls: int, targets: int) -> None:
        self._hopeless_calls = hopeless_calls
        self._most_targets = targets
        self._silent_calls: dict[str, int] = {}  # target -> calls in a row without a callee

    def are_missing(self, calls: Calls) -> bool:
        """Whether a call has no callee, although its target may have one."""
        return any(
            not answered and self._silent_calls.get(target, 0) < self._hopeless_calls
            for target, answered in calls
        )

    def learn(self, calls: Calls) -> None:
        """Remember which targets had a callee in a trace that is complete."""
        for target, answered in calls:
            silent = self._silent_calls.pop(target, 0)
            self._silent_calls[target] = 0 if answered else silent + 1
            if len(self._silent_calls) > self._most_targets:
                del self._silent_calls[next(iter(self._silent_calls))]


def calls_of(spans: Sequence[Span]) -> Calls:
    """The calls among the spans of a trace, and which of them were answered.

    A call that is made through another one (its transport, its attempts) is judged by that one,
    and the callee may hang under either.
    """
    calls = {
        span.span_id: span
        for span in spans
        if span.kind == CLIENT or (span.attributes and _is_inference(span))
    }
    if not calls:
        return ()
    answered = _answered(spans, calls)
    outer = {call.parent_id for call in calls.values()}
    return [
        (_target(call, calls), span_id in answered or call.parent_id in answered)
        for span_id, call in calls.items()
        if span_id not in outer
    ]


def _answered(spans: Sequence[Span], calls: Mapping[bytes, Span]) -> set[bytes]:
    """The ids of those under which there is a span of somebody else."""
    answered: set[bytes] = set()
    for span in spans:
        if span.kind in (SERVER, CONSUMER) or span.flags & PARENT_IS_REMOTE:
            answered.add(span.parent_id)
            continue
        caller, resource = calls.get(span.parent_id), span.resource
        if caller is None or caller.resource is resource:  # mostly: no need to compare texts
            continue
        if caller.resource.process != resource.process:
            answered.add(span.parent_id)
    return answered


def _is_inference(span: Span) -> bool:
    operation = span.attributes.get(names.GEN_AI_OPERATION_NAME)
    # What came over the wire may be a list, which no set can look up.
    is_inference = isinstance(operation, str) and operation in _INFERENCES
    return is_inference and span.kind not in (SERVER, CONSUMER)


def _target(call: Span, calls: Mapping[bytes, Span]) -> str:
    """Who was called: the address where it is known, else what the call is named."""
    address = call.attributes.get(names.SERVER_ADDRESS)
    if address is None and call.parent_id in calls:
        address = calls[call.parent_id].attributes.get(names.SERVER_ADDRESS)
    return str(address) if address else f"{call.resource.service} {call.name}"
