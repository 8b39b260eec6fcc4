"""What a call of openai asks for, and of whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from llmlat_otel.core.attributes import Request
from llmlat_otel.core.call import MakeReader, timed
from llmlat_otel.core.instrumentor import Target
from llmlat_otel.core.wrapping import Wrapper
from llmlat_semconv.values import OperationName

_PORTS: Final = {"http": 80, "https": 443}

_OPENAI: Final = "openai"
_AZURE: Final = ("BaseAzureClient", "azure.ai.openai")
_PROVIDERS: Final = {"bedrock": "aws.bedrock", "vertex": "gcp.vertex_ai"}
"""OpenTelemetry's names for what openai 3 calls the provider of a client."""


def request_of(instance: Any, kwargs: dict[str, Any], operation: OperationName) -> Request:
    """What a method is called for.

    Args:
        instance: The object whose method it is.
        kwargs: The method's; none of those that are read here can be given by position.
        operation: What the method does.
    """
    client = instance._client
    url = client.base_url
    model = kwargs.get("model")
    return Request(
        operation=operation,
        provider=_provider(client),
        model=model if isinstance(model, str) else None,
        streamed=is_streamed(kwargs),
        server_address=url.host,
        server_port=url.port or _PORTS.get(url.scheme),
    )


def is_streamed(kwargs: dict[str, Any]) -> bool:
    """Whether a stream is asked for, as the library sees it: what is not given is false there."""
    return bool(kwargs.get("stream"))


def asked_of(kwargs: dict[str, Any]) -> int:
    """How many choices are asked for; what the body is given beside the method's own counts."""
    body = kwargs.get("extra_body")
    several = body.get("n") if isinstance(body, dict) and "n" in body else kwargs.get("n")
    return several if type(several) is int else 1


def _provider(client: Any) -> str:
    """Whose API it is as the client sees it; behind a `base_url` of the user's own may be any."""
    runtime = getattr(client, "_provider_runtime", None)
    if runtime is not None:
        return _PROVIDERS.get(runtime.name, _OPENAI)
    of_azure, azure = _AZURE
    return azure if any(each.__name__ == of_azure for each in type(client).__mro__) else _OPENAI


def targets(
    module: str,
    methods: tuple[str, ...],
    make_reader: MakeReader,
    within: Callable[[Wrapper], Wrapper] = lambda wrapper: wrapper,
) -> tuple[Target, ...]:
    """Methods of one module, which are timed alike.

    Args:
        module: Where they are.
        methods: What they are called there, of the synchronous class; the other is named after it.
        make_reader: Makes the reader of each call.
        within: What is put around the timing of each.
    """
    return tuple(
        Target(module, attribute, within(timed(f"openai {attribute}", make_reader)))
        for method in methods
        for attribute in (method, f"Async{method}")
    )
