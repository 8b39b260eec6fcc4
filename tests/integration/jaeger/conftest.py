"""One loop for all tests of this folder: each trace that is sent has ids of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.jaeger.loop import Loop, running_loop


@pytest.fixture(scope="session")
def shared_loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    with running_loop(tmp_path_factory.mktemp("loop")) as loop:
        yield loop


@pytest.fixture
def loop(shared_loop: Loop) -> Iterator[Loop]:
    yield shared_loop
    print(shared_loop.last_words())  # pytest shows it below a test that has failed
