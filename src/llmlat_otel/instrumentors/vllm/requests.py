"""One request in vLLM: what the API process sees of it, and its account once it is over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from llmlat_otel.core.attributes import NS_PER_S, Attributes
from llmlat_otel.core.engine_spans import Caller, EngineAccount
from llmlat_otel.core.engine_timeline import Mark, Outputs, Stamp, phases_of
from llmlat_otel.core.recording import PhaseInterval
from llmlat_otel.core.runtime import Runtime
from llmlat_otel.instrumentors.vllm import notes
from llmlat_otel.instrumentors.vllm.arrivals import Arrival
from llmlat_otel.instrumentors.vllm.notes import Notes
from llmlat_semconv import attributes as names
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import OperationName, StreamEnd

PROVIDER: Final = "vllm"

_MARKS: Final = {"QUEUED": Mark.QUEUED, "SCHEDULED": Mark.SCHEDULED, "PREEMPTED": Mark.EVICTED}
"""vLLM's own events, by their names."""


def core_ns(seconds: float) -> int:
    """A stamp of the EngineCore's in ns; it is read in seconds, and 0.0 says that there is none."""
    return round(seconds * NS_PER_S)


class Request:
    """A request between `add_request` and its end. Its methods are called under the guard.

    Args:
        sdk: The running SDK.
        request: vLLM's own.
        caller: Who asks.
        arrival: How it has come, if that was seen.
        model: The name of the model.
    """

    __slots__ = (
        "_accepted_ns",
        "_added_ns",
        "_arrival",
        "_cached",
        "_events",
        "_first_ns",
        "_headers",
        "_last_ns",
        "_model",
        "_operation",
        "_outputs",
        "_prompt_tokens",
        "_request_id",
        "_sdk",
        "_tokens",
        "anchor",
        "caller",
        "is_written",
    )

    def __init__(
        self, sdk: Runtime, request: Any, caller: Caller, arrival: Arrival | None, model: str | None
    ) -> None:
        self._sdk = sdk
        self.caller = caller
        self.anchor = sdk.clock.anchor()
        self.is_written = False
        self._model = model
        self._added_ns = sdk.clock.now_ns()
        self._arrival = arrival
        self._accepted_ns = self._added_ns
        if arrival is not None and not arrival.ended:
            self._accepted_ns = arrival.accepted_ns
        self._operation = OperationName.TEXT_COMPLETION if arrival is None else arrival.operation
        if request.sampling_params is None:
            self._operation = OperationName.EMBEDDINGS
        prompt = request.prompt_token_ids
        self._prompt_tokens = None if prompt is None else len(prompt)
        self._request_id = getattr(request, "external_req_id", None) or request.request_id
        self._headers: Any = None
        self._events: list[Stamp] = []
        self._cached: int | None = None
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self._tokens = 0
        self._outputs = 0

    def told(self, headers: Mapping[str, str]) -> None:
        """Notes of the scheduler's have come, with an output of this request or of another."""
        self._headers = {**self._headers, **headers} if self._headers else headers

    def received(self, output: Any, at_ns: int) -> None:
        """An output of the EngineCore has come back.

        Args:
            output: It.
            at_ns: When its tokens were sampled, on the EngineCore's clock.
        """
        headers, events = output.trace_headers, output.events
        if headers:
            self.told(headers)
        if events:
            self._note(events)
        count = len(output.new_token_ids)
        if not count and output.pooling_output is None:
            return
        if self._first_ns is None:
            self._first_ns = at_ns
            stats = getattr(output, "prefill_stats", None)
            of = output if stats is None else stats
            self._cached = getattr(of, "num_cached_tokens", None)
        self._last_ns = at_ns
        self._tokens += count
        self._outputs += 1

    def _note(self, events: Iterable[Any]) -> None:
        for event in events:
            mark = _MARKS.get(event.type.name)
            if mark is not None and event.timestamp:
                self._events.append((mark, core_ns(event.timestamp)))

    # Once it is over

    def account(self, end: StreamEnd, error_type: str | None = None) -> EngineAccount:
        """What there is to say of it."""
        end_ns = self._sdk.clock.now_ns()
        if self._arrival is not None:
            self._arrival.ended.append(self._request_id)
        told = notes.read(self._headers)
        is_ours = told.domain_id == self._sdk.clock.domain_id
        # Nobody else's clock tells when we have given up.
        given_up_ns = end_ns if end is not StreamEnd.COMPLETE and is_ours else None
        outputs = Outputs(self._first_ns, self._last_ns)
        stamps = _all_of(told.stamps, self._events)
        reached = phases_of(stamps, outputs, given_up_ns)
        here = (*self._before(), *reached, *self._after(end, end_ns)) if is_ours else self._before()
        return EngineAccount(
            operation=self._operation,
            model=self._model,
            start_ns=self._accepted_ns,
            end_ns=end_ns,
            phases=here,
            facts=self._facts(told, stamps, is_ours=is_ours),
            end=end,
            elsewhere=() if is_ours or self._sdk.settings.are_phases_off else reached,
            error_type=error_type,
            provider=PROVIDER,
        )

    def _before(self) -> tuple[PhaseInterval, ...]:
        return _interval(Phase.TOKENIZE, self._accepted_ns, self._added_ns)

    def _after(self, end: StreamEnd, end_ns: int) -> tuple[PhaseInterval, ...]:
        if end is not StreamEnd.COMPLETE or self._last_ns is None or not self._tokens:
            return ()
        return _interval(Phase.DETOKENIZE, self._last_ns, end_ns)

    def _facts(self, told: Notes, stamps: Sequence[Stamp], *, is_ours: bool) -> Attributes:
        facts: dict[str, Any] = {
            names.LLMLAT_REQUEST_ID: self._request_id,
            names.LLMLAT_ENGINE_REQUESTS_WAITING: told.waiting,
            names.LLMLAT_ENGINE_REQUESTS_RUNNING: told.running,
            names.LLMLAT_BATCH_SIZE_MAX: told.batch_max,
        }
        if self._first_ns is not None:
            facts[names.LLMLAT_PREFILL_CACHED_TOKENS] = self._cached
            if self._prompt_tokens is not None and self._cached is not None:
                computed = max(self._prompt_tokens - self._cached, 0)
                facts[names.LLMLAT_PREFILL_COMPUTED_TOKENS] = computed
            if is_ours:
                taken_ns = self._first_ns - self._accepted_ns
                facts[names.LLMLAT_ENGINE_TIME_TO_FIRST_TOKEN] = taken_ns / NS_PER_S
        if self._tokens:
            facts[names.LLMLAT_DECODE_TOKENS] = self._tokens - 1
            facts[names.LLMLAT_DECODE_STEPS] = self._outputs - 1
        if told.chunks:
            facts[names.LLMLAT_PREFILL_CHUNK_COUNT] = told.chunk_count
            facts[names.LLMLAT_PREFILL_CHUNK_SIZES] = told.chunks
        if stamps:
            facts[names.LLMLAT_PREEMPTION_COUNT] = _evictions(stamps)
        return {name: value for name, value in facts.items() if value is not None}


def _all_of(told: Sequence[Stamp], events: Sequence[Stamp]) -> Sequence[Stamp]:
    """The stamps of vLLM's own events, or ours where these tell of more.

    Events come only where statistics are kept. Some versions tell of an eviction by them only; of
    the next turn of an input that streams all. Where both tell of the same, vLLM's own readings of
    the clock are those that its statistics and its span are made of.
    """
    states = _MARKS.values()
    if sum(mark in states for mark, _ in told) > len(events):
        return told
    transfers = (each for each in told if each[0] not in states)
    return sorted((*events, *transfers), key=itemgetter(1))


def _evictions(stamps: Iterable[Stamp]) -> int:
    return sum(mark is Mark.EVICTED for mark, _ in stamps)


def _interval(phase: Phase, start_ns: int, end_ns: int) -> tuple[PhaseInterval, ...]:
    return (PhaseInterval(phase, start_ns, end_ns, 0, False),) if end_ns > start_ns else ()
