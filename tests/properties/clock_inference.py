"""Inferences on true time: streamed or whole, through a gateway or not, tried again or given up.

caller   send [first byte ..]  wait   first_content   stream            finalize
engine          [queue  prefill|token 1      decode         token n|detokenize]
order    first byte <= engine starts <= token 1 <= first content,  last text <= last event
"""

from __future__ import annotations

from typing import NamedTuple

from llmlat_processor.model import CLIENT, SERVER
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import (
    AttemptOutcome,
    Boundary,
    ContentKind,
    Evidence,
    OperationName,
    StreamEnd,
)
from tests.properties.clock_growth import Growth
from tests.properties.clock_hosts import MS
from tests.properties.clock_world import Operation


class Flow(NamedTuple):
    """The instants of one streamed answer, on true time, in the order in which they must be.

    Only `first_event` (a role chunk) can come before `token`, and `last_token` before `content`.
    """

    sent: int
    received: int
    token: int
    first_event: int
    content: int
    last_token: int
    text: int
    last_event: int


def _flow(growth: Growth, start: int, end: int) -> Flow:
    sent, received, token, content, last_token, text, last = growth.cuts(start, end, 7)
    if growth.rng.random() < 0.2:  # held back: the content comes when all tokens are there
        content = growth.rng.randint(token, last)
    role = growth.rng.choice((content, growth.rng.randint(received, content)))
    return Flow(sent, received, token, role, content, last_token, text, last)


# ── The two sides ────────────────────────────────────────────────────────────────────────────────


def _call(growth: Growth, parent: Operation, start: int, end: int) -> Operation:
    told = growth.ours(Boundary.CLIENT, OperationName.CHAT)
    if growth.rng.random() < 0.3:  # instrumented by somebody else: no phases
        told = {names.GEN_AI_OPERATION_NAME: OperationName.CHAT.value}
    call = growth.add(parent, parent.process, CLIENT, start, end, told)
    call.waits = True
    return call


def _is_ours(operation: Operation) -> bool:
    return names.LLMLAT_CONTRACT_VERSION in operation.told


def _streams(growth: Growth, call: Operation, flow: Flow, end: int) -> tuple[int, int | None, int]:
    """What a caller tells of a stream.

    Returns:
        when its first byte was sent, its first content came and its last event, as far as told.
    """
    call.told[names.GEN_AI_REQUEST_STREAM] = True
    if not _is_ours(call):
        return call.start, None, end
    sent = growth.rng.randint(flow.sent, max(flow.sent, flow.first_event))
    left, stopped = call.start, end
    if growth.phase(call, Phase.SEND, flow.sent, sent):
        left = flow.sent
    growth.phase(call, Phase.WAIT, sent, flow.first_event)
    growth.phase(call, Phase.FIRST_CONTENT, flow.first_event, flow.content)
    if growth.phase(call, Phase.STREAM, flow.content, flow.last_event):
        stopped = flow.last_event
    growth.phase(call, Phase.FINALIZE, flow.last_event, end)
    call.content = flow.content
    kind = growth.rng.choice((ContentKind.TEXT, ContentKind.TEXT, ContentKind.TOOL_CALL))
    call.told[names.LLMLAT_RESPONSE_FIRST_CONTENT_KIND] = kind.value
    return left, flow.content, stopped


def _engine(growth: Growth, parent: Operation, flow: Flow) -> Operation:
    """An engine's span; one with phases may end long after its last output."""
    place = growth.elsewhere(parent)
    if growth.rng.random() < 0.2:
        return growth.add(parent, place, SERVER, flow.received, growth.late(flow.text))
    told = growth.ours(Boundary.ENGINE)
    engine = growth.add(parent, place, SERVER, flow.received, growth.after(flow.text), told)
    queued = growth.cuts(flow.received, flow.token, 1)[0]
    growth.phase(engine, Phase.QUEUE, flow.received, queued)
    growth.phase(engine, Phase.PREFILL, queued, flow.token)
    decodes = growth.phase(engine, Phase.DECODE, flow.token, flow.last_token)
    detokenizes = growth.phase(engine, Phase.DETOKENIZE, flow.last_token, flow.text)
    if not decodes and not detokenizes:
        engine.end = growth.late(flow.text)
    return engine


def _end_of(operation: Operation, *phases: Phase) -> int | None:
    """Where the last of some phases ends, if it is told."""
    return max((p.end for p in operation.phases if p.phase in phases), default=None)


def _concludes(
    growth: Growth, call: Operation, engine: Operation, told: tuple[int, int | None, int]
) -> None:
    """What the text lets be concluded of a caller and its engine."""
    left, content, stopped = told
    growth.asks(call, left, engine)
    output = _end_of(engine, Phase.DECODE, Phase.DETOKENIZE)
    if output is None:
        growth.answers(engine, engine.end, call, call.end, tail=True)
    else:
        growth.answers(engine, output, call, stopped)
    token = _end_of(engine, Phase.PREFILL)
    if token is not None and content is not None:
        growth.answers(engine, token, call, content)


# ── Shapes ───────────────────────────────────────────────────────────────────────────────────────


def inference(growth: Growth, parent: Operation, start: int, end: int) -> None:
    """A streamed inference and its engine, with or without an HTTP span between them."""
    call = _call(growth, parent, start, end)
    flow = _flow(growth, start, end)
    told = _streams(growth, call, flow, end)
    above = call
    if growth.rng.random() < 0.3:  # the transport's span ends at the headers
        above = growth.add(call, call.process, CLIENT, flow.sent, flow.first_event)
    engine = _engine(growth, above, flow)
    _concludes(growth, call, engine, told)
    if _is_ours(engine) and growth.rng.random() < 0.1:  # the engine's own account of itself
        native = growth.add(above, engine.process, SERVER, flow.received, growth.late(flow.text))
        growth.asks(call, told[0], native)


def whole_answer(growth: Growth, parent: Operation, start: int, end: int) -> None:
    """An inference that is not streamed: one body, parsed in `finalize`."""
    call = _call(growth, parent, start, end)
    flow = _flow(growth, start, end)
    left = start
    if _is_ours(call):
        sent = growth.rng.randint(flow.sent, flow.last_event)
        if growth.phase(call, Phase.SEND, flow.sent, sent):
            left = flow.sent
        growth.phase(call, Phase.WAIT, sent, flow.last_event)
        growth.phase(call, Phase.FINALIZE, flow.last_event, end)
    _concludes(growth, call, _engine(growth, call, flow), (left, None, end))


def through_a_gateway(growth: Growth, parent: Operation, start: int, end: int) -> None:
    """Client, gateway, engine; what the gateway knows of its last byte is measured or bounded."""
    call = _call(growth, parent, start, end)
    sent, received, flushed = growth.cuts(start, end, 3)
    inner = _flow(growth, received, flushed)
    admitted, routed = growth.cuts(received, inner.sent, 2)
    last = growth.cuts(max(inner.text, inner.content), flushed, 1)[0]
    seen = growth.cuts(max(inner.content, inner.first_event), end, 1)[0]
    stopped = growth.cuts(max(seen, inner.text), end, 1)[0]
    role = growth.rng.choice((seen, growth.rng.randint(received, seen)))
    outer = inner._replace(
        sent=sent, received=received, first_event=role, content=seen, last_event=stopped
    )
    left, _, _ = _streams(growth, call, outer, end)
    gateway = growth.add(
        call, growth.elsewhere(call), SERVER, received, flushed, growth.ours(Boundary.GATEWAY)
    )
    growth.asks(call, left, gateway)
    growth.phase(gateway, Phase.ADMISSION, received, admitted)
    growth.phase(gateway, Phase.ROUTE, admitted, routed)
    if growth.rng.random() < 0.2:
        _failed_before(growth, gateway, admitted, routed)
    upstream = growth.add(
        gateway,
        gateway.process,
        CLIENT,
        routed,
        last,
        growth.ours(Boundary.GATEWAY, OperationName.CHAT),
    )
    upstream.waits = True
    upstream.told[names.GEN_AI_REQUEST_STREAM] = True
    heard = _relays(growth, gateway, upstream, inner, last, flushed)
    begun, heard_last = heard
    # A gateway that passes its caller's context on unchanged: the engine hangs too high.
    bypassed = growth.rng.random() < 0.1
    engine = _engine(growth, call if bypassed else upstream, inner)
    if bypassed:  # which of both answered the caller is not known
        growth.asks(call, left, engine)
    else:
        _concludes(growth, upstream, engine, (begun, None, heard_last))
    _ends_at_some_time(growth, gateway, flushed)


def _relays(
    growth: Growth, gateway: Operation, upstream: Operation, flow: Flow, last: int, flushed: int
) -> tuple[int, int]:
    """The phases of a gateway's call and of its relay; first byte sent and last event received."""
    begun, heard = upstream.start, upstream.end
    if growth.phase(upstream, Phase.UPSTREAM, flow.sent, flow.first_event):
        begun = flow.sent
    if growth.phase(upstream, Phase.UPSTREAM_STREAM, flow.first_event, last):
        heard = last
    if growth.rng.random() < 0.5:
        growth.phase(gateway, Phase.RELAY, last, flushed)
    else:  # it learns late that its last byte has gone
        known = growth.after(flushed, 50 * MS)
        gateway.end = max(gateway.end, known)
        growth.phase(gateway, Phase.RELAY, last, known, Evidence.BOUNDED)
    return begun, heard


def _ends_at_some_time(growth: Growth, gateway: Operation, flushed: int) -> None:
    relays = [phase for phase in gateway.phases if phase.phase is Phase.RELAY]
    if not relays:
        gateway.end = growth.late(flushed)
    elif relays[0].evidence is Evidence.MEASURED:
        # A bound only where the relay does not have to give way; test_clocks_by_hand has that.
        gateway.end = growth.after(flushed)


def _failed_before(growth: Growth, gateway: Operation, start: int, end: int) -> None:
    """A call upstream that failed before the one that did not; what it asked for goes on."""
    told = growth.ours(Boundary.GATEWAY, OperationName.CHAT)
    failed = growth.add(gateway, gateway.process, CLIENT, start, end, told)
    failed.is_error = True
    began = growth.cuts(start, end, 1)[0]
    server = growth.add(failed, growth.elsewhere(failed), SERVER, began, growth.after(began))
    growth.asks(failed, start, server)


def attempts(growth: Growth, parent: Operation, start: int, end: int) -> None:
    """Two attempts: the first timed out, and its engine did not hear of that."""
    call = _call(growth, parent, start, end)
    first, failed, second, done = growth.cuts(start, end, 4)
    for number, begun, last in ((1, first, failed), (2, second, done)):
        told = growth.ours(Boundary.CLIENT) | {names.LLMLAT_ATTEMPT_NUMBER: number}
        attempt = growth.add(call, call.process, CLIENT, begun, last, told)
        attempt.waits = True
        flow = _flow(growth, begun, last)
        if number == 1:
            attempt.is_error = True
            attempt.told[names.LLMLAT_ATTEMPT_OUTCOME] = AttemptOutcome.FAILED.value
            received = growth.cuts(begun, last, 1)[0]
            server = growth.add(
                attempt, growth.elsewhere(attempt), SERVER, received, growth.after(last)
            )
            growth.asks(attempt, begun, server)
        else:
            told_of = _streams(growth, attempt, flow, last)
            _concludes(growth, attempt, _engine(growth, attempt, flow), told_of)


def cancelled(growth: Growth, parent: Operation, start: int, end: int) -> None:
    """A stream that its caller left in one of four ways; the engine writes on."""
    call = growth.add(
        parent,
        parent.process,
        CLIENT,
        start,
        end,
        growth.ours(Boundary.CLIENT, OperationName.CHAT),
    )
    flow = _flow(growth, start, end)
    ways = (StreamEnd.CANCELLED, StreamEnd.CLOSED_EARLY, StreamEnd.ABANDONED, StreamEnd.FAILED)
    way = growth.rng.choice(ways)
    call.told[names.LLMLAT_STREAM_END] = way.value
    call.is_error = way is StreamEnd.FAILED
    left, _, _ = _streams(growth, call, flow._replace(last_event=end), end)
    last_token = growth.after(max(flow.last_token, end))
    goes_on = flow._replace(last_token=last_token, text=last_token, last_event=last_token)
    engine = _engine(growth, call, goes_on)
    growth.asks(call, left, engine)
