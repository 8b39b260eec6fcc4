"""Transformers: `generate` of any model, and the loop in it that picks tokens."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from typing import Any, Final, cast

from llmlat_otel.core.attributes import text
from llmlat_otel.core.decoding import Decoding, Loop, Picks
from llmlat_otel.core.generations import begun, underway
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.instrumentor import Target
from llmlat_otel.core.wrapping import F, Wrapper, run_in

TARGET: Final = "transformers"

_UTILS: Final = "transformers.generation.utils"
_CRITERIA: Final = "transformers.generation.stopping_criteria"

_HUB_ID: Final = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
"""What a model is called on a hub; whatever else its configuration came from is a path."""

_UNTOLD: Final = ("cache_params", "state", "mems", "past_buckets_states")
"""Caches that do not tell how many tokens they hold."""


def _uncompiled(original: F, wrapper: Wrapper) -> F:
    """Wrap as a plain function that does nothing of its own within what torch compiles.

    A compiler reads through it: `is_compiling` is a constant to it. A proxy it would not know again
    (each look at a class makes another one), nor a bound method, which it looks up by its name.
    """
    is_compiling = getattr(
        getattr(sys.modules.get("torch"), "compiler", None), "is_compiling", bool
    )

    @functools.wraps(original)
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return original(self, *args, **kwargs)
        return wrapper(functools.partial(original, self), self, args, kwargs)

    return cast(F, method)


def _generate(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `generate`."""
    return run_in(guarded(TARGET, _begun, instance, kwargs), wrapped, args, kwargs)


def _begun(model: Any, kwargs: Any) -> Any:
    name = text(getattr(model.config, "name_or_path", None))
    is_name = name is not None and _HUB_ID.fullmatch(name)
    return begun(TARGET, name if is_name else None, kwargs.get("streamer"))


def _decode(
    picks: Picks, wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any
) -> Any:
    """Wraps the loops, which `generate` hands its inputs to once they are ready."""
    guarded(TARGET, _enter, picks, instance, args, kwargs)
    return wrapped(*args, **kwargs)


def _enter(picks: Picks, model: Any, args: Any, kwargs: Any) -> None:
    generation = underway()
    if generation is None:
        return
    ids, criteria = args[0] if args else kwargs["input_ids"], kwargs.get("stopping_criteria")
    if picks is Picks.TOKENS and _reads_late(ids.device):
        return
    rows, width = ids.shape[:2]
    prompt = guarded(TARGET, _prompt, model.config, width, kwargs) or (None, None)
    generation.enter(Loop(picks, rows, width, criteria, ids.device.type == "cpu", *prompt))


def _reads_late(device: Any) -> bool:
    """Whether a loop goes on before it has read what it picked: then nobody knows when that was."""
    deferred = getattr(sys.modules.get(_UTILS), "DeferredStopCheck", None)
    return deferred is not None and bool(deferred.is_supported(device, None, False, False))


def _prompt(config: Any, width: int, kwargs: Any) -> tuple[int, int] | None:
    """Of a row's prompt, the tokens to compute and those that a cache holds; None if not known.

    What is passed is the whole prompt or, beside a mask that is wider, what the cache lacks. What
    an encoder reads it has computed already.
    """
    cache, mask, embeds = map(kwargs.get, ("past_key_values", "attention_mask", "inputs_embeds"))
    is_told = cache is None or hasattr(cache, "get_seq_length")
    is_told = is_told and all(kwargs.get(each) is None for each in _UNTOLD)
    if config.is_encoder_decoder or not is_told:
        return None
    cached = 0 if cache is None else int(cache.get_seq_length())
    if embeds is not None:
        return embeds.shape[1] - cached, cached
    masked = getattr(kwargs.get("generation_config"), "_mask_length", width)
    is_whole = width == (masked if mask is None else mask.shape[-1])
    return width - cached if is_whole else width, cached


def _ask(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps the stopping criteria, which are asked after each token."""
    guarded(TARGET, _asked, instance, args)
    try:
        done = wrapped(*args, **kwargs)
    except BaseException:
        guarded(TARGET, _stopped, instance)
        raise
    guarded(TARGET, _answered, instance, done)
    return done


def _asked(criteria: Any, args: Any) -> None:
    generation, decoding = _underway()
    if decoding is not None:
        decoding.asked(criteria, args[0].shape[-1], generation.now_ns())


def _answered(criteria: Any, done: Any) -> None:
    _, decoding = _underway()
    if decoding is not None:
        decoding.answered(criteria, done)


def _stopped(criteria: Any) -> None:
    _, decoding = _underway()
    if decoding is not None:
        decoding.stopped(criteria)


def _underway() -> tuple[Any, Decoding | None]:
    generation = underway()
    return generation, None if generation is None else generation.decoding


def _go_on(wrapped: Callable[..., Any], _: Any, args: Any, kwargs: Any) -> Any:
    """Wraps what each loop asks before each round; a device has caught up when it is answered."""
    goes_on = wrapped(*args, **kwargs)
    guarded(TARGET, _went_round, *args[:2])
    return goes_on


def _went_round(is_finished: Any = None, is_synced: Any = None) -> None:
    generation, decoding = _underway()
    if decoding is not None:
        decoding.went_round(generation.now_ns(), is_last=bool(is_synced and is_finished))


_LOOPS: Final = {
    "_assisted_decoding": Picks.DRAFTED,
    "_beam_search": Picks.BEAMS,
    "_sample": Picks.TOKENS,
}
"""Those of all versions from 4.41 on; each may have others, which are not timed."""

TARGETS: Final = (
    Target(_UTILS, "GenerationMixin.generate", _generate, _uncompiled),
    Target(_UTILS, "GenerationMixin._has_unfinished_sequences", _go_on, _uncompiled),
    Target(_CRITERIA, "StoppingCriteriaList.__call__", _ask, _uncompiled),
    *(
        Target(_UTILS, f"GenerationMixin.{name}", functools.partial(_decode, picks), _uncompiled)
        for name, picks in _LOOPS.items()
    ),
)
