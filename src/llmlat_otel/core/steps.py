"""Steps: what is told of each step of a stream, and generators whose steps are told."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from types import AsyncGeneratorType, GeneratorType
from typing import Any, Protocol

from llmlat_otel.core.guard import guarded


class Pull(Protocol):
    """Our own work around each step of a stream; all of it is called under the guard."""

    @property
    def target(self) -> str:
        """What is being timed, for the count of faults."""

    def begin(self) -> None:
        """The caller asks for the next event, or for the end."""

    def returned(self) -> None:
        """The caller has control again, and there is no event."""

    def received(self, event: Any, /) -> None:
        """The caller has control again, and the event."""

    def completed(self) -> None:
        """There is no event left."""

    def failed(self, error: BaseException) -> None:
        """The stream is over, by an exception."""

    def closed(self, error: BaseException | None) -> None:
        """The caller has closed the stream, because of an exception of its own or not."""


def stopped(pull: Pull, error: BaseException) -> None:
    """A step has raised."""
    if isinstance(error, (StopIteration, StopAsyncIteration)):
        pull.completed()
    else:
        pull.failed(error)


def in_place_of(generator: Any, pull: Pull, whole: object) -> Any:
    """A generator that goes on where another one does, and tells a pull; None if it is none.

    What it knows it keeps in its frame, and nothing has to be looked up or called to get on to the
    next step: one of a proxy takes twice as long. It is what the other one is, in all that a caller
    can see.

    Args:
        generator: Of either kind.
        pull: Is told of each step.
        whole: What the generator is a part of; it is kept for as long.
    """
    kind = type(generator)
    if kind is GeneratorType:
        made: Any = _steps(generator, pull, whole)
    elif kind is AsyncGeneratorType:
        made = _async_steps(generator, pull, whole)
    else:
        return None
    made.__name__, made.__qualname__ = generator.__name__, generator.__qualname__
    return made


def _steps(
    generator: Generator[Any, Any, Any], pull: Pull, _whole: object
) -> Generator[Any, Any, Any]:
    target, begin, received = pull.target, pull.begin, pull.received
    step: Callable[[Any], Any] = generator.send
    sent: Any = None
    while True:
        guarded(target, begin)
        try:
            event = step(sent)
        except BaseException as error:
            guarded(target, stopped, pull, error)
            if isinstance(error, StopIteration):
                return error.value
            raise
        guarded(target, received, event)
        step = generator.send
        try:
            sent = yield event
        except BaseException as error:
            if not isinstance(error, GeneratorExit):
                step, sent = generator.throw, error
                continue
            generator.close()
            raise


async def _async_steps(
    generator: AsyncGenerator[Any, Any], pull: Pull, _whole: object
) -> AsyncGenerator[Any, Any]:
    target, begin, received = pull.target, pull.begin, pull.received
    step: Callable[[Any], Any] = generator.asend
    sent: Any = None
    while True:
        guarded(target, begin)
        try:
            event = await step(sent)
        except BaseException as error:
            guarded(target, stopped, pull, error)
            if isinstance(error, StopAsyncIteration):
                return
            raise
        guarded(target, received, event)
        step = generator.asend
        try:
            sent = yield event
        except BaseException as error:
            if not isinstance(error, GeneratorExit):
                step, sent = generator.athrow, error
                continue
            await generator.aclose()
            raise
