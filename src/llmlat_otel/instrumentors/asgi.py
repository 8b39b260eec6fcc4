"""Starlette, and FastAPI on it: each request that they answer, and who lets it through."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from llmlat_otel.core import exchanges
from llmlat_otel.core.exchanges import TARGET
from llmlat_otel.core.guard import guarded
from llmlat_otel.core.instrumentor import Target
from llmlat_otel.core.serving import request_heard
from llmlat_otel.core.wrapping import Sight, run_in

# What has to be passed on the way to an endpoint. A request is admitted at the last of these doors:
#
#   application ── mount ── route ── (its own layers) ── endpoint ── (FastAPI: dependencies solved)

_REST: Final = "/{path}"


def _call(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `Starlette.__call__`, which answers."""
    if not (args or kwargs):  # uvicorn tries out whether it has been given a factory.
        return wrapped()
    exchange = guarded(TARGET, partial(exchanges.arrived, instance, *args, **kwargs))
    return wrapped(*args, **kwargs) if exchange is None else exchange.run(wrapped)


def _mount(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `Mount.handle`."""
    guarded(TARGET, _mounted, instance)
    return wrapped(*args, **kwargs)


def _mounted(mount: Any) -> None:
    exchanges.mounted(mount.path_format.removesuffix(_REST))


def _route(wrapped: Callable[..., Any], instance: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `Route.handle`."""
    guarded(TARGET, _routed, instance, *args[:1])
    return wrapped(*args, **kwargs)


def _routed(route: Any, scope: Any = None) -> None:
    # A router of FastAPI's that is included in another one keeps its routes as they are, and says
    # in the scope what they are called there.
    included = (scope or {}).get("fastapi", {}).get("effective_route_context")
    is_this = getattr(included, "original_route", None) is route
    exchanges.routed((included if is_this else route).path_format)


def _enter(wrapped: Callable[..., Any], _: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `wrap_app_handling_exceptions`, which is called as an endpoint is about to be."""
    guarded(TARGET, exchanges.admitted)
    return wrapped(*args, **kwargs)


def _solve(wrapped: Callable[..., Any], _: Any, args: Any, kwargs: Any) -> Any:
    """Wraps `solve_dependencies`."""
    if guarded(TARGET, request_heard) is None:
        return wrapped(*args, **kwargs)
    return run_in(guarded(TARGET, Sight, TARGET, _solved), wrapped, args, kwargs)


def _solved(_: Any) -> None:
    exchanges.admitted()


TARGETS: Final = (
    Target("starlette.applications", "Starlette.__call__", _call),
    Target("starlette.routing", "Mount.handle", _mount),
    Target("starlette.routing", "Route.handle", _route),
    Target("starlette.routing", "wrap_app_handling_exceptions", _enter),
    Target("fastapi.routing", "APIRoute.handle", _route),
    Target("fastapi.routing", "solve_dependencies", _solve),
)
