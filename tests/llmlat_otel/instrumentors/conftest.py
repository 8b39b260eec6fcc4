"""What the tests of instrumented frameworks have in common."""

from collections.abc import Iterator

import pytest

import llmlat_otel
from llmlat_otel.core.guard import faults
from llmlat_otel.settings import Settings
from llmlat_otel.testing import ManualClock, Recorded, recorded


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def record(clock: ManualClock) -> Iterator[Recorded]:
    with recorded(clock=clock, settings=Settings(phase_min_ns=0)) as what:
        yield what


@pytest.fixture
def all_are_put_back() -> Iterator[None]:
    """Whatever a test has instrumented; and nothing has failed meanwhile."""
    before = dict(faults())
    yield
    llmlat_otel.uninstrument()
    assert faults() == before


@pytest.fixture
def nothing_has_failed() -> Iterator[None]:
    """Of ours, while the test ran."""
    before = dict(faults())
    yield
    assert faults() == before
