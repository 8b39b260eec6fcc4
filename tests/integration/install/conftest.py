"""A collector for each test."""

from collections.abc import Iterator

import pytest

from tests.integration.install.collector import Collector, collecting


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running
