"""The emulated engine's scheduler: every request completes, in turn, within the batch's limits."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from scheduler import Costs, Limits, Request, Scheduler, Step

COSTS = Costs(step_ns=8_000_000, prefill_token_ns=1_500_000, decode_token_ns=5_000_000)
SIZES = st.tuples(st.integers(1, 90), st.integers(1, 12))


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    running = draw(st.integers(1, 5))
    return Limits(running, draw(st.integers(running, 40)))


@dataclass
class Run:
    """Requests that arrive between steps, run until nothing is left to do."""

    limits: Limits
    arrivals: list[list[Request]]
    steps: list[Step] = field(default_factory=list)
    batches: list[tuple[int, ...]] = field(default_factory=list)
    finished: list[int] = field(default_factory=list)

    def to_the_end(self) -> Run:
        scheduler = Scheduler(self.limits, COSTS)
        pending = list(self.arrivals)
        while True:
            for request in pending.pop(0) if pending else []:
                scheduler.submit(request)
            step = scheduler.plan()
            if step is None and not pending:
                return self
            if step is not None:
                self.steps.append(step)
                self.batches.append(scheduler.running)
                self.finished += [done.id for done in scheduler.commit(step) if done.finished]

    @property
    def requests(self) -> list[Request]:
        return [request for batch in self.arrivals for request in batch]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    waves = draw(st.lists(st.lists(SIZES, max_size=4), min_size=1, max_size=6))
    arrivals: list[list[Request]] = []
    number = 0
    for wave in waves:
        arrivals.append([Request(number + i, *size) for i, size in enumerate(wave)])
        number += len(wave)
    return Run(draw(limits()), arrivals).to_the_end()


@given(runs())
def test_every_request_completes_once(run: Run) -> None:
    assert sorted(run.finished) == [request.id for request in run.requests]


@given(runs())
def test_admission_is_first_in_first_out(run: Run) -> None:
    admitted = [request_id for step in run.steps for request_id in step.admitted]
    assert admitted == [request.id for request in run.requests]


@given(runs())
def test_the_batch_keeps_its_limits(run: Run) -> None:
    assert all(len(batch) <= run.limits.running for batch in run.batches)
    assert all(1 <= step.tokens <= run.limits.step_tokens for step in run.steps)


@given(runs())
def test_a_waiting_request_is_admitted_as_soon_as_there_is_a_place(run: Run) -> None:
    still_to_admit = {request.id for wave in run.arrivals for request in wave}
    for number, (step, batch) in enumerate(zip(run.steps, run.batches, strict=True)):
        still_to_admit -= set(step.admitted)
        arrived = {r.id for wave in run.arrivals[: number + 1] for r in wave}
        if arrived & still_to_admit:
            assert len(batch) == run.limits.running


@given(runs())
def test_tokens_are_conserved(run: Run) -> None:
    for request in run.requests:
        prefilled = sum(n for step in run.steps for i, n in step.prefills if i == request.id)
        decoded = sum(i == request.id for step in run.steps for i in step.decodes)
        assert prefilled == request.prompt_tokens
        assert decoded == request.output_tokens - 1  # the end of prefill samples the first


@given(runs())
def test_a_sequence_that_decodes_never_waits_for_another_ones_prompt(run: Run) -> None:
    decoding: set[int] = set()
    outputs = {request.id: request.output_tokens for request in run.requests}
    sampled = dict.fromkeys(outputs, 0)
    prompts = {request.id: request.prompt_tokens for request in run.requests}
    for step in run.steps:
        assert set(step.decodes) == decoding
        for request_id in step.decodes:
            sampled[request_id] += 1
        for request_id, tokens in step.prefills:
            prompts[request_id] -= tokens
            sampled[request_id] += prompts[request_id] == 0
        decoding = {i for i, left in prompts.items() if left == 0 and sampled[i] < outputs[i]}


@given(runs())
def test_a_step_takes_what_its_tokens_cost(run: Run) -> None:
    for step in run.steps:
        prompt_tokens = sum(tokens for _, tokens in step.prefills)
        assert step.duration_ns == (
            COSTS.step_ns
            + prompt_tokens * COSTS.prefill_token_ns
            + len(step.decodes) * COSTS.decode_token_ns
        )


@given(limits(), st.lists(SIZES, min_size=1, max_size=6), st.data())
def test_a_cancelled_request_leaves_and_the_others_complete(
    bounds: Limits, sizes: list[tuple[int, int]], data: st.DataObject
) -> None:
    scheduler = Scheduler(bounds, COSTS)
    for number, size in enumerate(sizes):
        scheduler.submit(Request(number, *size))
    victim = data.draw(st.sampled_from(range(len(sizes))))
    moment = data.draw(st.integers(0, 8))
    finished: list[int] = []
    number = 0
    while (step := scheduler.plan()) is not None:
        if number == moment:
            scheduler.cancel(victim)
        finished += [done.id for done in scheduler.commit(step) if done.finished]
        if number >= moment:
            assert victim not in scheduler.running + scheduler.waiting
        number += 1
    assert set(range(len(sizes))) - {victim} <= set(finished)
