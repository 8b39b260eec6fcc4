"""What a call of openai asks for, and of whom."""

from types import SimpleNamespace

import pytest
from openai import NOT_GIVEN, omit

from llmlat_otel.instrumentors.openai import TARGETS
from llmlat_otel.instrumentors.openai.request import request_of
from llmlat_semconv.values import OperationName
from tests.llmlat_otel.instrumentors.answers import INSTANCE, instance_of


def asked(instance=INSTANCE, **kwargs):
    return request_of(instance, kwargs, OperationName.CHAT)


@pytest.mark.parametrize(
    ("given", "streamed"), [(True, True), (False, False), (None, False), (1, True)]
)
def test_a_stream_is_what_the_library_takes_for_one(given, streamed):
    assert asked(stream=given).streamed is streamed


@pytest.mark.parametrize("absent", [NOT_GIVEN, omit], ids=["NOT_GIVEN", "omit"])
def test_what_is_not_given_is_absent(absent):
    request = asked(stream=absent, model=absent)
    assert (request.streamed, request.model) == (False, None)
    assert asked().model is None


def test_where_it_is_sent():
    assert (asked().server_address, asked().server_port) == ("127.0.0.1", 443)
    url = SimpleNamespace(host="h", port=8000, scheme="http")
    elsewhere = SimpleNamespace(_client=SimpleNamespace(base_url=url))
    assert (asked(elsewhere).server_address, asked(elsewhere).server_port) == ("h", 8000)


class BaseAzureClient:
    """Of openai.lib.azure."""


class AzureOpenAI(BaseAzureClient):
    pass


class OwnAzureClient(AzureOpenAI):
    pass


@pytest.mark.parametrize(
    ("instance", "provider"),
    [
        (INSTANCE, "openai"),
        (instance_of(AzureOpenAI), "azure.ai.openai"),
        (instance_of(OwnAzureClient), "azure.ai.openai"),
        (instance_of(_provider_runtime=None), "openai"),
        (instance_of(_provider_runtime=SimpleNamespace(name="bedrock")), "aws.bedrock"),
        (instance_of(_provider_runtime=SimpleNamespace(name="vertex")), "gcp.vertex_ai"),
        (instance_of(_provider_runtime=SimpleNamespace(name="new")), "openai"),
    ],
)
def test_whose_api_it_is(instance, provider):
    assert asked(instance).provider == provider


def test_each_method_is_a_target_once_and_so_is_its_asynchronous_twin():
    everyone = [target.name for target in TARGETS]
    assert len(everyone) == len(set(everyone))
    twins = {each for each in everyone if ".Async" in each}
    assert {each.replace(".Async", ".") for each in twins} == set(everyone) - twins
