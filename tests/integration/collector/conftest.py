"""What the processes of a test have logged is told where it fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.jaeger.loop import last_words


@pytest.fixture(autouse=True)
def _last_words(tmp_path: Path) -> Iterator[None]:
    yield
    print(last_words(tmp_path))  # pytest shows it below a test that has failed
