"""The token-level scheduler of the emulated engine: continuous batching as a pure state machine.

Nothing here reads a clock or sleeps. The caller asks for the next step, lets the step's service
time pass, and commits it; what happened to each request comes back as progress::

    plan()    admit from the queue (first in, first out, while a place is free), then fill one
              step: a token for every sequence that decodes, a chunk of prompt for the others
    commit()  prompt chunks are in the cache, tokens are sampled, finished sequences leave

A prompt longer than what is left of a step's token budget is prefilled in chunks, so that the
sequences that decode never stall behind it: chunked prefill, as vLLM and llama.cpp do it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Costs", "Limits", "Progress", "Request", "Scheduler", "Step"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much runs at once: sequences in the batch, and tokens computed in one step.

    Raises:
        ValueError: fewer tokens a step than sequences would leave one of them without its token.
    """

    running: int
    step_tokens: int

    def __post_init__(self) -> None:
        if not 1 <= self.running <= self.step_tokens:
            raise ValueError(f"need 1 <= running <= step_tokens, got {self}")


@dataclass(frozen=True, slots=True)
class Costs:
    """The service time of a step, in nanoseconds: a base, and a share for each token."""

    step_ns: int
    prefill_token_ns: int
    decode_token_ns: int


@dataclass(frozen=True, slots=True)
class Request:
    """What the scheduler needs to know of a request: how many tokens go in and come out.

    Raises:
        ValueError: a request without a prompt or without output.
    """

    id: int
    prompt_tokens: int
    output_tokens: int

    def __post_init__(self) -> None:
        if self.prompt_tokens < 1 or self.output_tokens < 1:
            raise ValueError(f"token counts start at 1, got {self}")


@dataclass(frozen=True, slots=True)
class Step:
    """One pass of the batch: prompt tokens by request, requests that decode, the time it takes."""

    admitted: tuple[int, ...]
    prefills: tuple[tuple[int, int], ...]
    decodes: tuple[int, ...]
    duration_ns: int

    @property
    def tokens(self) -> int:
        """Tokens computed in this step."""
        return sum(count for _, count in self.prefills) + len(self.decodes)


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a request stands after a step."""

    id: int
    prefilled: int
    sampled: int
    finished: bool


@dataclass(slots=True)
class _Sequence:
    """A request in the batch, with the tokens that it still needs."""

    request: Request
    prefilled: int = 0
    sampled: int = 0

    @property
    def decodes(self) -> bool:
        return self.prefilled == self.request.prompt_tokens

    def prefill(self, tokens: int) -> None:
        self.prefilled += tokens
        # The pass that completes the prompt samples the first token: the end of prefill.
        self.sampled += self.decodes

    def progress(self) -> Progress:
        finished = self.sampled == self.request.output_tokens
        return Progress(self.request.id, self.prefilled, self.sampled, finished)


class Scheduler:
    """A queue in front of a batch; the batch moves one step at a time."""

    def __init__(self, limits: Limits, costs: Costs) -> None:
        self._limits = limits
        self._costs = costs
        self._waiting: deque[Request] = deque()
        self._running: dict[int, _Sequence] = {}

    @property
    def waiting(self) -> tuple[int, ...]:
        """Requests in the queue, the next to be admitted first."""
        return tuple(request.id for request in self._waiting)

    @property
    def running(self) -> tuple[int, ...]:
        """Requests in the batch, in the order of their admission."""
        return tuple(self._running)

    def submit(self, request: Request) -> None:
        """Put a request at the end of the queue."""
        self._waiting.append(request)

    def cancel(self, request_id: int) -> None:
        """Forget a request, wherever it is; one that has finished is forgotten already."""
        self._running.pop(request_id, None)
        self._waiting = deque(r for r in self._waiting if r.id != request_id)

    def plan(self) -> Step | None:
        """Admit what fits and lay out the next step; None when there is nothing to do."""
        admitted = tuple(self._admit())
        decodes = tuple(i for i, sequence in self._running.items() if sequence.decodes)
        prefills = tuple(self._chunks(self._limits.step_tokens - len(decodes)))
        if not decodes and not prefills:
            return None
        return Step(admitted, prefills, decodes, self._duration_ns(prefills, decodes))

    def commit(self, step: Step) -> list[Progress]:
        """The step has been computed: move its requests on, and take out those that are done."""
        for request_id, tokens in step.prefills:
            if request_id in self._running:
                self._running[request_id].prefill(tokens)
        for request_id in step.decodes:
            if request_id in self._running:
                self._running[request_id].sampled += 1
        touched = [i for i, _ in step.prefills] + list(step.decodes)
        progress = [self._running[i].progress() for i in touched if i in self._running]
        for done in progress:
            if done.finished:
                del self._running[done.id]
        return progress

    def _admit(self) -> Iterator[int]:
        while self._waiting and len(self._running) < self._limits.running:
            request = self._waiting.popleft()
            self._running[request.id] = _Sequence(request)
            yield request.id

    def _chunks(self, budget: int) -> Iterator[tuple[int, int]]:
        for request_id, sequence in self._running.items():
            chunk = min(budget, sequence.request.prompt_tokens - sequence.prefilled)
            if chunk > 0:
                budget -= chunk
                yield request_id, chunk

    def _duration_ns(self, prefills: tuple[tuple[int, int], ...], decodes: tuple[int, ...]) -> int:
        costs = self._costs
        prompt_tokens = sum(tokens for _, tokens in prefills)
        return (
            costs.step_ns
            + prompt_tokens * costs.prefill_token_ns
            + len(decodes) * costs.decode_token_ns
        )
