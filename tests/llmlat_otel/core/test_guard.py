"""The guard: our faults are counted, noted once, and stopped; others pass."""

import pytest

from llmlat_otel.core.guard import faults, guarded


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
