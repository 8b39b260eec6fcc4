"""What a program can see of an object, as plain values that are the same in every run."""

from __future__ import annotations

import collections.abc
import copy
import inspect
import pickle
import re
from collections.abc import Callable
from typing import Any

import openai
from openai._legacy_response import LegacyAPIResponse
from openai._response import APIResponse, AsyncAPIResponse

_KINDS: tuple[Any, ...] = (
    openai.Stream,
    openai.AsyncStream,
    LegacyAPIResponse,
    APIResponse,
    AsyncAPIResponse,
    collections.abc.Iterable,
    collections.abc.Iterator,
    collections.abc.AsyncIterable,
    collections.abc.AsyncIterator,
    collections.abc.Generator,
    collections.abc.AsyncGenerator,
    collections.abc.Awaitable,
    collections.abc.Callable,
)
_ASKED = (
    inspect.isawaitable,
    inspect.iscoroutine,
    inspect.isgenerator,
    inspect.isasyncgen,
    callable,
    bool,
)
_METHODS = ("aclose", "close", "iter_lines", "iter_bytes", "json", "parse", "read", "text", "send")
_CHANGING = re.compile(r"0x[0-9a-f]+|\d{5,}|127\.0\.0\.1:\d+|laddr=\S+|raddr=\S+|fd=\d+")


def steady(text: object) -> str:
    """Text without addresses, ports and times."""
    return _CHANGING.sub("#", str(text))


def kind(thing: Any) -> str:
    """The class that an object says it has."""
    return f"{thing.__class__.__module__}.{thing.__class__.__qualname__}"


def error(raised: BaseException | None) -> Any:
    """An exception, what it was raised from, and what it was raised while."""
    if raised is None:
        return None
    said = [kind(raised), [steady(each) for each in raised.args]]
    chain = [
        None if each is None else kind(each) for each in (raised.__cause__, raised.__context__)
    ]
    attributes = {
        name: steady(getattr(raised, name))
        for name in ("status_code", "request_id", "code", "type", "message")
        if hasattr(raised, name)
    }
    return [*said, *chain, attributes, raised.__suppress_context__]


def outcome(work: Callable[[], Any]) -> Any:
    """What some work gives, or raises."""
    try:
        return work()
    except Exception as raised:  # noqa: BLE001 - whatever it is, it is shown
        return error(raised)


def value(result: Any) -> Any:
    """A result of the library, all that is in it."""
    if hasattr(result, "model_dump"):
        return [kind(result), steady(result.model_dump()), getattr(result, "_request_id", None)]
    return [kind(result), steady(result)]


def thing(held: Any) -> dict[str, Any]:
    """Whatever can be asked of an object without using it up."""
    return {
        "class": kind(held),
        "repr": steady(repr(held)),
        "is": [each.__name__ for each in _KINDS if isinstance(held, each)],
        "asked": {each.__name__: each(held) for each in _ASKED},
        "dir": sorted(name for name in dir(held) if not name.startswith("__")),
        "vars": sorted(getattr(held, "__dict__", ())),
        "methods": {name: method(held, name) for name in _METHODS if hasattr(held, name)},
        "in a set": held in {held} if held.__class__.__hash__ else None,
        "copy": outcome(lambda: kind(copy.copy(held))),
        "deepcopy": outcome(lambda: kind(copy.deepcopy(held))),
        "pickle": outcome(lambda: kind(pickle.loads(pickle.dumps(held)))),
        "response": response(held),
    }


def method(held: Any, name: str) -> Any:
    """What a method looks like."""
    found = getattr(held, name)
    if not callable(found):
        return steady(found)
    return [
        outcome(lambda: str(inspect.signature(found))),
        inspect.iscoroutinefunction(found),
        inspect.ismethod(found),
        getattr(found, "__name__", None),
        getattr(found, "__qualname__", None),
        getattr(found, "__self__", None) is held or getattr(found, "__self__", None) == held,
    ]


def response(held: Any) -> Any:
    """The HTTP response behind an object, which is the library's own."""
    for name in ("response", "http_response", "_response"):
        found = getattr(held, name, None)
        if found is not None:
            sent = {key: steady(each) for key, each in found.headers.items() if key != "date"}
            about = [type(found).__name__, found.status_code, found.is_closed]
            return [name, *about, sorted(found.request.headers.keys() - {"traceparent"}), sent]
    return None
