"""A model that weaver could not read is caught and explained."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Caught = Callable[[str, list[tuple[str, str]], str], str]
MAX_BATCH = """\
  - key: llmlat.batch.size.max
    stability: development
    brief: Most requests in the batch while this one was in it.
    annotations: { unit: '{request}' }
    type: int
"""


# Each row: in which file somebody put what for what, and which name is blamed for what.
MISSHAPEN = [
    pytest.param(
        "model/engine.yaml",
        [(MAX_BATCH, MAX_BATCH.replace("brief:", "breif:"))],
        "llmlat.batch.size.max",
        "unknown field `breif`",
        id="a field that weaver does not know",
    ),
    pytest.param(
        "model/engine.yaml",
        [(MAX_BATCH, MAX_BATCH.replace("type: int", "type: float"))],
        "llmlat.batch.size.max",
        "unknown type 'float'",
        id="a type that weaver does not know",
    ),
]


@pytest.mark.parametrize(("file", "changes", "name", "what"), MISSHAPEN)
def test_a_misshapen_model_is_caught(
    caught: Caught, file: str, changes: list[tuple[str, str]], name: str, what: str
) -> None:
    assert what in caught(file, changes, name)
