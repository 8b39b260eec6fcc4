"""Installing and removing: each target once, and back to the original object."""

import importlib
import sys

import pytest

from llmlat_otel.core.guard import faults
from llmlat_otel.core.instrumentor import Instrumentor, Target

SOURCE = """
class Base:
    def inherited(self):
        return ["inherited"]

class Client(Base):
    def send(self):
        return ["sent"]

def function():
    return ["called"]
"""


def timed(wrapped, instance, args, kwargs):
    return [*wrapped(*args, **kwargs), "timed"]


def identities(module):
    """Each object by where it is; a proxy is equal to what it wraps, but not the same."""
    owners = (vars(module), vars(module.Client), vars(module.Base))
    return [{name: id(value) for name, value in owner.items()} for owner in owners]


@pytest.fixture
def library(tmp_path, monkeypatch):
    """The name of a module that can be imported, and is not yet."""
    (tmp_path / "some_library.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "some_library"
    sys.modules.pop("some_library", None)


@pytest.mark.parametrize("imported_first", [True, False])
def test_before_and_after_the_library_is_imported(library, imported_first):
    instrumentor = Instrumentor([Target(library, "Client.send", timed)])
    if imported_first:
        importlib.import_module(library)
    instrumentor.instrument()
    assert importlib.import_module(library).Client().send() == ["sent", "timed"]
    instrumentor.uninstrument()


@pytest.mark.parametrize("attribute", ["Client.send", "Client.inherited", "function"])
def test_uninstrument_puts_the_very_same_object_back(library, attribute):
    module = importlib.import_module(library)
    before = identities(module)
    instrumentor = Instrumentor([Target(library, attribute, timed)])
    instrumentor.instrument()
    assert identities(module) != before
    instrumentor.uninstrument()
    assert identities(module) == before


def test_instrumenting_twice_times_once(library):
    module = importlib.import_module(library)
    instrumentor = Instrumentor([Target(library, "function", timed)])
    instrumentor.instrument()
    instrumentor.instrument()
    assert module.function() == ["called", "timed"]
    instrumentor.uninstrument()
    instrumentor.instrument()
    assert module.function() == ["called", "timed"]
    instrumentor.uninstrument()


def test_a_method_that_the_library_lacks_is_skipped(library, caplog):
    caplog.set_level("DEBUG", logger="llmlat_otel")
    module = importlib.import_module(library)
    targets = [Target(library, "Client.gone", timed), Target(library, "function", timed)]
    instrumentor = Instrumentor(targets)
    instrumentor.instrument()
    assert module.function() == ["called", "timed"]
    assert faults()[f"{library}.Client.gone"] == 1
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
    instrumentor.uninstrument()


def test_a_library_that_is_imported_after_uninstrument_is_left_alone(library):
    instrumentor = Instrumentor([Target(library, "function", timed)])
    instrumentor.instrument()
    instrumentor.uninstrument()
    assert importlib.import_module(library).function() == ["called"]


def test_a_wrapper_on_top_of_ours_stays_and_ours_goes_quiet(library):
    module = importlib.import_module(library)
    instrumentor = Instrumentor([Target(library, "function", timed)])
    instrumentor.instrument()
    ours = module.function
    setattr(module, "function", lambda: [*ours(), "theirs"])  # noqa: B010 - mypy knows modules
    instrumentor.uninstrument()
    assert module.function() == ["called", "theirs"]
