"""An application: what it does with a model, told step by step.

A program is written once. In a synchronous run its awaits never wait for anything, so that one
`send` drives it to its end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, TypeVar

import openai
import pydantic

from tests.integration.seams import network as net

F = TypeVar("F", bound=Callable[..., Any])

DONE = "the end of a stream"
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
STREAM: dict[str, Any] = {**ASK, "stream": True}


class UserError(Exception):
    """Raised by the application's own code."""


def described(thing: Any) -> Any:
    """A value as the application sees it."""
    if isinstance(thing, BaseException):
        return {
            "raised": f"{type(thing).__module__}.{type(thing).__qualname__}",
            "says": str(thing),
            "cause": described(thing.__cause__),
            "context": described(thing.__context__),
        }
    if isinstance(thing, pydantic.BaseModel):
        return [thing.__class__.__qualname__, thing.model_dump(mode="json", exclude_unset=True)]
    if isinstance(thing, list | tuple):
        return [described(each) for each in thing]
    if isinstance(thing, type):
        return thing.__qualname__
    return thing if isinstance(thing, str | int | float | bool | None) else thing.__class__.__name__


@dataclass
class App:
    """An application: its client, and the transcript of what it has seen.

    Attributes:
        is_async: Which client it uses.
        llmlat: The SDK's public functions, or what stands for them where there is no SDK.
    """

    is_async: bool
    llmlat: Any
    network: net.Network = field(default_factory=net.Network)
    said: list[Any] = field(default_factory=list)

    def timed(self, kind: str, *args: Any) -> Callable[[F], F]:
        """A decorator of the SDK's."""
        decorator: Callable[[F], F] = getattr(self.llmlat, kind)(*args)
        return decorator

    def say(self, *what: Any) -> None:
        self.said.append([described(each) for each in what])

    def client(self, *answers: Any, kind: Any = None, **options: Any) -> Any:
        """A client for which the server has these answers."""
        self.network.answers.extend(answers)
        make = net.async_client if self.is_async else net.client
        http_client = make(self.network) if kind is None else make(self.network, kind)
        known: dict[str, Any] = {"api_key": "k", "http_client": http_client, **options}
        return openai.AsyncOpenAI(**known) if self.is_async else openai.OpenAI(**known)

    async def settled(self, result: Any) -> Any:
        """What a call gives in the end, in both kinds of program."""
        return await result if isawaitable(result) else result

    async def step(self, stream: Any) -> Any:
        """The next event of a stream."""
        try:
            return await stream.__anext__() if self.is_async else next(stream)
        except (StopIteration, StopAsyncIteration):
            return DONE

    async def read(self, stream: Any) -> None:
        """Read a stream to its end."""
        self.say(isinstance(stream, openai.Stream | openai.AsyncStream), stream)
        while (event := await self.step(stream)) is not DONE:
            self.say(event)

    @contextlib.asynccontextmanager
    async def within(self, manager: Any) -> AsyncIterator[Any]:
        """Enter a context manager of the kind that the client gives."""
        if self.is_async:
            async with manager as entered:
                yield entered
        else:
            with manager as entered:
                yield entered

    async def trial(self, work: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Do something that may fail, and say how it went."""
        try:
            self.say(await self.settled(work(*args, **kwargs)))
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001
            self.say(error)


Program = Callable[[App], Coroutine[Any, Any, None]]


def programs(names: Mapping[str, Any]) -> tuple[Program, ...]:
    """The programs of a module."""
    public = (value for name, value in names.items() if not name.startswith("_"))
    return tuple(each for each in public if asyncio.iscoroutinefunction(each))
