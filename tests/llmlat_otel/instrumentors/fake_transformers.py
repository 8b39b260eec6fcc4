"""What of Transformers is timed, without torch: the order of calls in 4.x and in 5.x, by a clock.

generate ─ 2 ms ─> the loop: 30 ms for the prompt, 5 ms a step; a device answers 1 ms later
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # It is used where the SDK must not be imported yet.
    from llmlat_otel.testing import ManualClock

MS = 1_000_000
SETUP, PROMPT, STEP, DEVICE = 2 * MS, 30 * MS, 5 * MS, 1 * MS
PLACES = ("utils", "stopping_criteria")


class Rows:
    """A tensor of one number for each row, as far as it is needed."""

    def __init__(self, values):
        self.values = list(values)

    def __or__(self, other):
        return Rows(a or b for a, b in zip(self.values, other.values, strict=True))

    def __add__(self, other):
        return Rows(a + b for a, b in zip(self.values, other.values, strict=True))

    def __mul__(self, number):
        return Rows(each * number for each in self.values)

    def sum(self):
        return sum(self.values)


class Ids:
    """Token ids, of which nothing but the shape may be looked at."""

    def __init__(self, rows, width, device="cpu"):
        self.shape = (rows, width)
        self.device = SimpleNamespace(type=device)


class StoppingCriteriaList(list[Callable[..., "Rows"]]):
    def __call__(self, input_ids, scores, **kwargs):
        done = Rows([False] * input_ids.shape[0])
        for criterion in self:
            done = done | criterion(input_ids, scores, **kwargs)
        return done


class DeferredStopCheck:
    """In 5.x a loop may go on before it knows what it has picked."""

    @staticmethod
    def is_supported(device, cache, cache_is_returned, is_assistant):
        return device.type == "mps"


class GenerationMixin:
    """Its loops end as `ends` says: the tokens that each row gets."""

    def __init__(self, clock: ManualClock, ends=(4,), *, is_old=False, name="acme/tiny-1b"):
        self.clock = clock
        self.ends = ends
        self.is_old = is_old
        self.rounds_for_others = 0
        self.while_running: Callable[[], object] = lambda: None
        self.config = SimpleNamespace(name_or_path=name, is_encoder_decoder=False)

    def generate(self, inputs=None, generation_config=None, *, streamer=None, **kwargs):
        """As its users know it."""
        self.clock.advance(SETUP)
        if kwargs.get("handed_on"):
            return self.generate(inputs, generation_config, streamer=streamer)
        criteria = kwargs.pop("stopping_criteria", StoppingCriteriaList())
        prepared = StoppingCriteriaList([*criteria, self._is_row_done(inputs.shape[1])])
        loop = type(self)._sample if streamer else type(self)._loop_of(kwargs)
        given = {"stopping_criteria": prepared, "generation_config": generation_config, **kwargs}
        if streamer:
            given["streamer"] = streamer
        return loop(self, inputs, **given)

    @classmethod
    def _loop_of(cls, kwargs):
        return getattr(cls, kwargs.pop("loop", "_sample"))

    def _is_row_done(self, prompt):
        def is_done(ids, _):
            ends = islice(cycle(self.ends), ids.shape[0])
            return Rows(ids.shape[1] - prompt >= each for each in ends)

        return is_done

    def _has_unfinished_sequences(self, this_peer_finished, synced_gpus, device):
        if device.type != "cpu":
            self.clock.advance(DEVICE)
        if synced_gpus and this_peer_finished and self.rounds_for_others:
            self.rounds_for_others -= 1
            return True
        return not this_peer_finished

    def _forward(self, took):
        self.while_running()
        self.clock.advance(took)

    def _sample(self, input_ids, *, stopping_criteria, synced_gpus=False, streamer=None, **kwargs):
        ids, device, finished, left = input_ids, input_ids.device, False, list(self.ends)
        if not self.is_old:
            self._forward(PROMPT)
        is_first = True
        while self._has_unfinished_sequences(finished, synced_gpus, device=device):
            if self.is_old or not is_first:
                self._forward(PROMPT if is_first else STEP)
            is_first = False
            if synced_gpus and finished:
                continue
            ids = Ids(ids.shape[0], ids.shape[1] + 1, device.type)
            if streamer is not None and self.is_old:
                streamer.put(ids)
            done = stopping_criteria(ids, None)
            if streamer is not None and not self.is_old:
                streamer.put(ids)
            left = [a and not b for a, b in zip(left, done.values, strict=True)]
            finished = not any(left)
        if streamer is not None:
            streamer.end()
        return ids

    def _beam_search(self, input_ids, *, stopping_criteria, **kwargs):
        """In 4.x the criteria are not asked once the beams are done."""
        device, width, last = input_ids.device, input_ids.shape[1], self.ends[0]
        for number in range(last + 1):
            self._has_unfinished_sequences(number == last, False, device=device)
            if number < last:
                self._forward(STEP if number else PROMPT)
                width += 1
                if number + 1 < last:
                    stopping_criteria(Ids(2 * input_ids.shape[0], width), None)
        return Ids(input_ids.shape[0], width)

    def _assisted_decoding(self, input_ids, *, stopping_criteria, drafts, **kwargs):
        """In 4.x the criteria are asked of a draft as well, before anything is picked."""
        device, width, draft = input_ids.device, input_ids.shape[1], kwargs["assistant_model"]
        for number, picked in enumerate((*drafts, 0)):
            self._has_unfinished_sequences(number == len(drafts), False, device=device)
            if picked:
                draft.generate(Ids(1, width))
                stopping_criteria(Ids(1, width + 9), None)
                self._forward(STEP if number else PROMPT)
                width += picked
                stopping_criteria(Ids(1, width), None)
        return Ids(1, width)


class Llama(GenerationMixin):
    """A model of somebody's."""


class Streamer:
    """Is handed tokens; the one after so many is too much."""

    def __init__(self, clock, most=1_000, took=0):
        self.clock, self.most, self.took = clock, most, took

    def put(self, value):
        self.most -= 1
        self.clock.advance(self.took)
        if self.most < 0:
            raise ConnectionError("the user's words")

    def end(self):
        pass


def stops_after(rounds, error):
    """A criterion that raises an exception when it is asked once more than that."""
    left = [rounds]

    def criterion(ids, _):
        if not left[0]:
            raise error
        left[0] -= 1
        return Rows([False] * ids.shape[0])

    return StoppingCriteriaList([criterion])


@contextmanager
def installed() -> Iterator[None]:
    """The modules that Transformers has, in place of its own."""
    utils, criteria = (ModuleType(f"transformers.generation.{each}") for each in PLACES)
    vars(utils).update(GenerationMixin=GenerationMixin, DeferredStopCheck=DeferredStopCheck)
    vars(criteria).update(StoppingCriteriaList=StoppingCriteriaList)
    before = {each.__name__: sys.modules.get(each.__name__) for each in (utils, criteria)}
    sys.modules.update({each.__name__: each for each in (utils, criteria)})
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
