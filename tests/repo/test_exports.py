"""What can be imported from the packages is what they say that they export."""

import importlib
import types
from importlib import resources

import pytest

import llmlat_otel

TYPED = ["llmlat_otel", "llmlat_processor", "llmlat_semconv"]


def test_the_sdk_exports_what_it_has_and_nothing_else() -> None:
    public = {
        name
        for name, value in vars(llmlat_otel).items()
        if not (name.startswith("_") or isinstance(value, types.ModuleType))
    }
    # `from __future__ import annotations` leaves a name behind
    assert sorted(public - {"annotations"}) == sorted(llmlat_otel.__all__)


def test_the_exports_of_the_sdk_are_sorted_and_documented() -> None:
    assert list(llmlat_otel.__all__) == sorted(llmlat_otel.__all__, key=str.casefold)
    assert [n for n in llmlat_otel.__all__ if not getattr(llmlat_otel, n).__doc__] == []


@pytest.mark.parametrize("module", ["llmlat_otel.errors", "llmlat_otel.testing"])
def test_every_name_that_a_public_module_lists_exists(module: str) -> None:
    loaded = importlib.import_module(module)
    assert loaded.__all__
    assert [name for name in loaded.__all__ if not hasattr(loaded, name)] == []


@pytest.mark.parametrize("package", TYPED)
def test_every_package_says_that_it_is_typed(package: str) -> None:
    assert resources.files(package).joinpath("py.typed").is_file()
