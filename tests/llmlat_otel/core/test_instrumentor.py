"""Installing and removing: each target once, and back to the original object."""

import importlib
import sys

import pytest
import wrapt

from llmlat_otel.core.guard import faults
from llmlat_otel.core.instrumentor import Instrumentor, State, Target

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


def states(instrumentor):
    return [each.state for each in instrumentor.states()]


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


def test_in_02_a_method_that_the_library_lacks_is_skipped_and_all_others_are_wrapped(
    library, caplog
):
    caplog.set_level("DEBUG", logger="llmlat_otel")
    module = importlib.import_module(library)
    lacking = ("Gone.send", "Client.gone")
    targets = [Target(library, each, timed) for each in (*lacking, "Client.send", "function")]
    instrumentor = Instrumentor(targets)
    instrumentor.instrument()
    assert module.function() == ["called", "timed"]
    assert module.Client().send() == ["sent", "timed"]
    assert states(instrumentor) == [State.MISSING, State.MISSING, State.WRAPPED, State.WRAPPED]
    assert [faults()[f"{library}.{each}"] for each in lacking] == [1, 1]
    assert [record.levelname for record in caplog.records] == ["DEBUG", "DEBUG"]
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


class Closed(type):
    """Of a class whose attributes nobody can set or take away, but for a while."""

    is_open = False

    def __setattr__(cls, name, value):
        if not Closed.is_open:
            raise TypeError(f"{name} cannot be set")
        super().__setattr__(name, value)

    def __delattr__(cls, name):
        if not Closed.is_open:
            raise TypeError(f"{name} cannot be taken away")
        super().__delattr__(name)


@pytest.fixture
def closed(library):
    """A class of the library that lets nobody wrap its methods."""
    module = importlib.import_module(library)
    setattr(module, "Closed", Closed("Closed", (), {"send": lambda self: ["sent"]}))  # noqa: B010
    yield module.Closed
    Closed.is_open = False


def test_a_method_that_cannot_be_wrapped_for_any_other_reason_is_skipped_too(library, closed):
    module = importlib.import_module(library)
    targets = [Target(library, "Closed.send", timed), Target(library, "function", timed)]
    instrumentor = Instrumentor(targets)
    instrumentor.instrument()
    assert closed().send() == ["sent"]
    assert module.function() == ["called", "timed"]
    assert states(instrumentor) == [State.FAILED, State.WRAPPED]
    assert faults()[f"{library}.Closed.send"] == 1
    instrumentor.uninstrument()


def test_a_method_that_cannot_be_put_back_keeps_no_other_from_it(library, closed):
    module = importlib.import_module(library)
    original = module.function
    instrumentor = Instrumentor(
        [Target(library, "function", timed), Target(library, "Closed.send", timed)]
    )
    Closed.is_open = True
    instrumentor.instrument()
    assert closed().send() == ["sent", "timed"]
    Closed.is_open = False
    instrumentor.uninstrument()
    assert module.function is original
    assert closed().send() == ["sent"], "what stays wrapped is untimed"


def test_what_has_become_of_each_target(library):
    targets = [Target(library, "Client.send", timed), Target("no_such_library", "send", timed)]
    instrumentor = Instrumentor(targets)
    importlib.import_module(library)
    assert states(instrumentor) == [State.OFF, State.OFF]
    instrumentor.instrument()
    assert states(instrumentor) == [State.WRAPPED, State.WAITING]
    instrumentor.uninstrument()
    assert states(instrumentor) == [State.OFF, State.OFF]


def test_a_class_of_two_homes_is_wrapped_once_and_neither_has_failed(library):
    module = importlib.import_module(library)
    setattr(module, "Other", module.Client)  # noqa: B010 - mypy knows modules
    targets = [Target(library, f"{each}.send", timed) for each in ("Client", "Other")]
    instrumentor = Instrumentor(targets)
    instrumentor.instrument()
    assert module.Client().send() == ["sent", "timed"]
    assert states(instrumentor) == [State.WRAPPED, State.WRAPPED]
    instrumentor.uninstrument()


@pytest.mark.parametrize("theirs_first", [True, False])
def test_it_is_known_who_else_has_wrapped_a_method(library, theirs_first):
    module = importlib.import_module(library)
    instrumentor = Instrumentor([Target(library, "function", timed)])

    def wrap_too():
        wrapt.wrap_function_wrapper(library, "function", lambda f, _, args, kw: f(*args, **kw))

    if theirs_first:
        wrap_too()
    instrumentor.instrument()
    if not theirs_first:
        wrap_too()
    (state,) = instrumentor.states()
    assert (state.state, state.others) == (State.WRAPPED, (__name__,))
    assert module.function() == ["called", "timed"]
    instrumentor.uninstrument()


def test_it_is_known_that_somebody_has_put_something_else_in_the_place_of_ours(library):
    module = importlib.import_module(library)
    original = module.function
    instrumentor = Instrumentor([Target(library, "function", timed)])
    instrumentor.instrument()
    setattr(module, "function", original)  # noqa: B010 - mypy knows modules
    assert states(instrumentor) == [State.REPLACED]
    instrumentor.uninstrument()
    assert module.function is original


def test_instrumenting_again_and_again_leaves_one_hook_behind(library):
    instrumentor = Instrumentor([Target(library, "function", timed)])
    for _ in range(5):
        instrumentor.instrument()
        instrumentor.uninstrument()
    assert len(sys.modules["wrapt.importer"]._post_import_hooks[library]) == 1
    instrumentor.instrument()
    assert importlib.import_module(library).function() == ["called", "timed"]
    instrumentor.uninstrument()
