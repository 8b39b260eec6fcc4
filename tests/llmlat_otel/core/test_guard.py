"""The guard: our faults are counted, noted once, and stopped; others pass."""

import re
from collections import Counter

import pytest

from llmlat_otel.core import guard
from llmlat_otel.core.guard import faults, first_faults, guarded
from llmlat_otel.errors import TargetError
from llmlat_otel.settings import Settings


def fail(error):
    raise error


def test_a_fault_is_counted_each_time_and_noted_once(caplog):
    caplog.set_level("DEBUG", logger="llmlat_otel")
    for _ in range(3):
        assert guarded("a target", fail, ValueError("ours")) is None
    assert faults()["a target"] == 3
    (noted,) = caplog.records
    assert noted.levelname == "DEBUG"
    assert noted.exc_info is not None


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_not_ours_to_stop_passes(error):
    with pytest.raises(error):
        guarded("another target", fail, error())


def test_the_result_is_passed_on():
    assert guarded("a third", divmod, 7, 2) == (3, 1)


def look(thing):
    return thing.gone


def test_the_first_fault_is_described_by_kind_and_place():
    guarded("a fourth", look, object())
    guarded("a fourth", fail, ValueError("another"))
    assert first_faults()["a fourth"] == "AttributeError: 'object' object has no attribute 'gone'"


def test_a_fault_within_our_own_code_says_where():
    guarded("a fifth", Settings.from_environment, None)
    assert re.fullmatch(r"AttributeError: .* \(settings:\d+\)", first_faults()["a fifth"])


class UnprintableError(RuntimeError):
    def __str__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("words of a user"), "ValueError"),
        (KeyError("words of a user"), "KeyError"),
        (RuntimeError("dictionary changed size"), "RuntimeError: dictionary changed size"),
        (TargetError("module", "gone"), "llmlat_otel.errors.TargetError: module has no gone"),
        (UnprintableError(), "UnprintableError"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_message_that_may_repeat_what_users_wrote_is_not_kept(error, said):
    target = f"described {type(error).__name__}"
    guarded(target, fail, error)
    assert said in first_faults()[target]
    assert "words of a user" not in first_faults()[target]


def test_targets_that_the_application_names_are_bounded(monkeypatch):
    monkeypatch.setattr(guard, "_faults", Counter())
    monkeypatch.setattr(guard, "_firsts", {})
    for number in range(guard.TARGETS_MAX + 50):
        guarded(f"tool {number}", fail, ValueError())
    assert len(faults()) == len(first_faults()) == guard.TARGETS_MAX + 1
    assert faults()["others"] == 50
