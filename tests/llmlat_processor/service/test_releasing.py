"""Why a trace goes on as it came."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmlat_processor.service.releasing import (
    EXPLAINED_BEFORE,
    NO_ROOT,
    NOTHING_TO_EXPLAIN,
    why_not,
)
from llmlat_processor.settings import Explained
from llmlat_processor.window import NEVER_HELD, Released, Why
from llmlat_processor.written import OWN_SCOPE
from tests.llmlat_processor.service.handed import message, received, released

SILENT = Released(received(message(1, attributes={"mine": 1})), Why.COMPLETE)
BEFORE = [*released(1).spans, *received(message(2), scope=OWN_SCOPE)]


@pytest.mark.parametrize("why", [why for why in Why if why in NEVER_HELD])
def test_what_was_never_held_says_why(why: Why) -> None:
    assert why_not(released(1, why=why), Explained.ALL) == why.value


@pytest.mark.parametrize(
    ("one", "explained", "why"),
    [
        (released(1, 2), Explained.GENAI, ""),
        (released(1, 2, why=Why.HELD_LONGEST), Explained.ALL, ""),
        (released(1, 2, why=Why.SHUTDOWN), Explained.ALL, ""),
        (SILENT, Explained.ALL, ""),
        (SILENT, Explained.GENAI, NOTHING_TO_EXPLAIN),
        (released(2, 3), Explained.ALL, NO_ROOT),
        (replace(released(1, 2), missing=1), Explained.ALL, Why.TRACE_FULL.value),
        (Released(BEFORE, Why.COMPLETE), Explained.ALL, EXPLAINED_BEFORE),
        (Released(BEFORE, Why.REVISED, late=1), Explained.ALL, EXPLAINED_BEFORE),
    ],
)
def test_a_trace_is_explained_unless(one: Released, explained: Explained, why: str) -> None:
    assert why_not(one, explained) == why
