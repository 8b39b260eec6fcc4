"""The scheduler's limits and one schedule written out."""

from __future__ import annotations

import pytest

from scheduler import Costs, Limits, Progress, Request, Scheduler

COSTS = Costs(step_ns=100, prefill_token_ns=10, decode_token_ns=1)


@pytest.mark.parametrize(("running", "step_tokens"), [(0, 4), (5, 4), (-1, 8)])
def test_limits_that_starve_a_sequence_are_refused(running: int, step_tokens: int) -> None:
    with pytest.raises(ValueError, match="running"):
        Limits(running, step_tokens)


@pytest.mark.parametrize(("prompt", "output"), [(0, 1), (1, 0)])
def test_a_request_has_a_prompt_and_output(prompt: int, output: int) -> None:
    with pytest.raises(ValueError, match="start at 1"):
        Request(1, prompt, output)


def test_a_long_prompt_is_prefilled_in_chunks_beside_a_sequence_that_decodes() -> None:
    scheduler = Scheduler(Limits(running=2, step_tokens=4), COSTS)
    scheduler.submit(Request(1, prompt_tokens=3, output_tokens=3))
    scheduler.submit(Request(2, prompt_tokens=5, output_tokens=1))
    scheduler.submit(Request(3, prompt_tokens=1, output_tokens=1))

    steps = []
    while (step := scheduler.plan()) is not None:
        steps.append((step.admitted, step.prefills, step.decodes, step.duration_ns))
        scheduler.commit(step)

    assert steps == [
        ((1, 2), ((1, 3), (2, 1)), (), 140),
        ((), ((2, 3),), (1,), 131),
        ((), ((2, 1),), (1,), 111),
        ((3,), ((3, 1),), (), 110),
    ]


def test_the_end_of_prefill_samples_the_first_token() -> None:
    scheduler = Scheduler(Limits(running=1, step_tokens=8), COSTS)
    scheduler.submit(Request(1, prompt_tokens=8, output_tokens=2))
    first = scheduler.plan()
    assert first is not None
    assert scheduler.commit(first) == [Progress(1, prefilled=8, sampled=1, finished=False)]


def test_without_requests_there_is_nothing_to_do() -> None:
    assert Scheduler(Limits(1, 1), COSTS).plan() is None
