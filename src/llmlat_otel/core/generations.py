"""Generations: one call of a model's own `generate` in this process, and the span that it becomes.

    generate    ┬──────────┬─────────────────┬─────┬─>
                begun      its loop: see     ends  it returns
                           `decoding`

A generation within another, of a draft or of a part, is that one's own time. What a generation
hands on before its loop is entered is itself, going on elsewhere.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Final, TypeVar

from opentelemetry.context import Context

from llmlat_otel.core import joins
from llmlat_otel.core.attempt import is_cancellation
from llmlat_otel.core.attributes import NS_PER_S, Attributes, error_type
from llmlat_otel.core.decoding import Decoding, Loop
from llmlat_otel.core.engine_spans import Caller, EngineAccount, caller, write_engine
from llmlat_otel.core.foreign import is_suppressed
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.runtime import runtime
from llmlat_semconv import attributes as names
from llmlat_semconv.values import OperationName, StreamEnd

T = TypeVar("T")

_STREAMER: Final = ("put", "end")
"""What a generation calls of what is handed its tokens."""

_current: ContextVar[Generation | None] = ContextVar("llmlat-generation", default=None)


def begun(target: str, model: str | None, streamer: object) -> Generation | _Within | None:
    """A generation that begins; None where the one that is begun goes on, or none is to be timed.

    Args:
        target: What is being timed, for the count of faults.
        model: Its name.
        streamer: What is handed each token; None if nobody is.
    """
    around = _current.get()
    if around is not None and not around.is_over:
        return None if around.decoding is None else _Within(around)
    asked_by = caller(None)
    if is_suppressed() or not asked_by.is_heard:
        return None
    return Generation(target, model, streamer, asked_by)


def underway() -> Generation | None:
    """The generation that runs here, unless another one runs within it."""
    current = _current.get()
    return None if current is None or current.is_over or current.within else current


class Generation:
    """One generation, from its call to its return: the scope of that call.

    Args:
        target: What is being timed, for the count of faults.
        model: Its name.
        streamer: What is handed each token; None if nobody is.
        asked_by: Who asks for it.

    Attributes:
        decoding: Its loop, once that is entered.
        is_over: Whether it has returned.
        within: How many others run within it.
    """

    __slots__ = (
        "_anchor",
        "_asked_by",
        "_model",
        "_runtime",
        "_start_ns",
        "_streamer",
        "_token",
        "decoding",
        "is_over",
        "target",
        "within",
    )

    def __init__(self, target: str, model: str | None, streamer: object, asked_by: Caller) -> None:
        self.target = target
        self._model = model
        self._streamer = streamer
        # A copy: what a thread has been lent may be gone by the end.
        self._asked_by = asked_by._replace(context=Context(asked_by.context.copy()))
        self._token: Token[Generation | None] | None = None
        self.decoding: Decoding | None = None
        self.is_over = False
        self.within = 0
        self._runtime = runtime()
        self._anchor = self._runtime.clock.anchor()
        self._start_ns = self.now_ns()

    def now_ns(self) -> int:
        """What its clock says."""
        return self._runtime.clock.now_ns()

    def enter(self, loop: Loop) -> None:
        """Its loop is entered; one within it is the same one."""
        if self.decoding is None:
            self.decoding = Decoding(loop, self.now_ns())

    # The call: a scope

    def begin(self) -> None:
        """It is called."""
        self._token = _current.set(self)

    def returned(self) -> None:
        """It has handed back control."""
        if self._token is not None:
            _current.reset(self._token)

    def failed(self, error: BaseException) -> None:
        """It has ended by an exception: who has raised it tells whether it was told to stop."""
        end_ns = self.now_ns()
        self.returned()
        is_told = _is_told_to_stop(error) or _is_from(error, self._streamer)
        if self.decoding is not None:
            self.decoding.given_up()
            is_told = is_told or self.decoding.is_stopped
        end = StreamEnd.CANCELLED if is_told else StreamEnd.FAILED
        self._write(end_ns, end, error_type(error))

    def restart(self) -> None:
        """Nothing to do."""

    def delivered(self, result: T) -> T:
        """It has returned what it was asked for."""
        self._write(self.now_ns(), StreamEnd.COMPLETE, None)
        return result

    def _write(self, end_ns: int, end: StreamEnd, failure: str | None) -> None:
        self.is_over = True
        given_up_ns = None if end is StreamEnd.COMPLETE else end_ns
        account = EngineAccount(
            OperationName.TEXT_COMPLETION,
            self._model,
            self._start_ns,
            end_ns,
            () if self.decoding is None else self.decoding.phases(given_up_ns),
            self._facts(),
            end,
            error_type=failure,
            provider=self.target,
        )
        span = write_engine(self._runtime.emitter, account, self._asked_by, self._anchor)
        if end is not StreamEnd.CANCELLED:
            guarded(joins.TARGET, joins.child_ended, self._asked_by.context, span, end_ns)

    def _facts(self) -> Attributes:
        facts: Attributes = {names.GEN_AI_REQUEST_STREAM: self._streamer is not None}
        decoding = self.decoding
        if decoding is None:
            return facts
        facts.update(decoding.facts())
        if decoding.first_ns is not None:
            first_s = (decoding.first_ns - self._start_ns) / NS_PER_S
            facts[names.LLMLAT_ENGINE_TIME_TO_FIRST_TOKEN] = first_s
        tokens = guarded(self.target, decoding.tokens_after_the_first)
        if tokens is not None:
            facts[names.LLMLAT_DECODE_TOKENS] = tokens
        return facts


class _Within:
    """The scope of a generation within another.

    Args:
        around: The other one.
    """

    __slots__ = ("_around", "target")

    def __init__(self, around: Generation) -> None:
        self._around = around
        self.target = around.target

    def begin(self) -> None:
        """It is called."""
        self._around.within += 1

    def returned(self) -> None:
        """It has handed back control."""
        self._around.within -= 1

    def failed(self, error: BaseException) -> None:  # noqa: ARG002
        """It has ended by an exception."""
        self._around.within -= 1

    def restart(self) -> None:
        """Nothing to do."""

    def delivered(self, result: T) -> T:
        """It has returned."""
        return result


def _is_told_to_stop(error: BaseException) -> bool:
    """Whether an exception is no error: a task that is cancelled, a program that is interrupted."""
    return is_cancellation(error) or not isinstance(error, Exception)


def _is_from(error: BaseException, streamer: object) -> bool:
    """Whether an exception has come out of what is handed the tokens."""
    codes = [getattr(getattr(type(streamer), each, None), "__code__", None) for each in _STREAMER]
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code in codes:
            return True
        step = step.tb_next
    return False
