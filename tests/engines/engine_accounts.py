"""What has come to a sink of each request of an engine: its span, its phases, and whose it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from llmlat_semconv import attributes as names
from llmlat_semconv.values import Boundary
from tests.faults.processor_run import wait_until
from tests.integration.jaeger.lanes import said
from tests.llmlat_processor.sink import Arrivals

NS_PER_S: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A phase of a request."""

    phase: str
    start_ns: int
    end_ns: int
    duration_s: float
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Account:
    """A request as its engine has told of it; its phases in the order of their starts."""

    name: str
    scope: str
    kind: int
    trace_id: str
    span_id: bytes
    parent_id: bytes
    start_ns: int
    end_ns: int
    facts: Mapping[str, Any]
    phases: tuple[Interval, ...]

    @property
    def end(self) -> str:
        told: str = self.facts[names.LLMLAT_STREAM_END]
        return told

    def of(self, phase: str) -> tuple[Interval, ...]:
        return tuple(each for each in self.phases if each.phase == phase)

    def length_s(self, phase: str) -> float:
        """All of a phase; 0 where it was not reached."""
        return sum(each.duration_s for each in self.of(phase))

    def is_of(self, answer: Mapping[str, Any]) -> bool:
        """Whether it is of the request that was answered so, or one of several of it."""
        told: str = self.facts[names.LLMLAT_REQUEST_ID]
        return told.startswith(f"{answer['id']}-")


def accounts(sink: Arrivals) -> list[Account]:
    """In the order in which they have come."""
    beneath: dict[bytes, list[Interval]] = {}
    requests = []
    for _, scope, span in list(sink.spans):
        facts = said(span.attributes)
        if names.LLMLAT_PHASE_NAME in facts:
            beneath.setdefault(span.parent_span_id, []).append(_interval(span, facts))
        elif facts.get(names.LLMLAT_BOUNDARY_NAME) == Boundary.ENGINE.value:
            requests.append((scope.scope.name, span, facts))
    return [_account(*request, beneath.get(request[1].span_id, ())) for request in requests]


def wait_for(sink: Arrivals, is_it: Callable[[Account], bool], count: int = 1) -> list[Account]:
    """The accounts that are so, once there are that many; no more of them may come with the last.

    The phases of a request are sent before its span is.
    """

    def found() -> list[Account]:
        return [each for each in accounts(sink) if is_it(each)]

    wait_until(lambda: len(found()) >= count, sink.names)
    assert len(found()) == count, found()
    return found()


def check_in_order(account: Account) -> None:
    """Phases lie within their request and follow one another; only decode is interrupted."""
    last = None
    for each in account.phases:
        assert account.start_ns <= each.start_ns <= each.end_ns <= account.end_ns, account
        if last is not None and each.phase == "preempted" and last.phase == "decode":
            assert each.end_ns <= last.end_ns, account
            continue
        assert last is None or last.end_ns <= each.start_ns, account
        last = each


def _interval(span: Span, facts: Mapping[str, Any]) -> Interval:
    start_ns, end_ns = span.start_time_unix_nano, span.end_time_unix_nano
    duration_s = facts[names.LLMLAT_PHASE_DURATION]
    is_cut = bool(facts.get(names.LLMLAT_PHASE_TRUNCATED))
    return Interval(facts[names.LLMLAT_PHASE_NAME], start_ns, end_ns, duration_s, is_cut)


def _account(scope: str, span: Span, facts: Mapping[str, Any], phases: Any) -> Account:
    return Account(
        name=span.name,
        scope=scope,
        kind=span.kind,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id,
        parent_id=span.parent_span_id,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        facts=facts,
        phases=tuple(sorted(phases, key=lambda each: (each.start_ns, -each.end_ns))),
    )
