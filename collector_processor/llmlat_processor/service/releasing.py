"""Why a trace goes on as it came, and what is said of those that do."""

from __future__ import annotations

from typing import Final

from llmlat_processor.settings import Explained
from llmlat_processor.window import NEVER_HELD, Released, Why
from llmlat_processor.written import OWN_SCOPE

NO_ROOT: Final = "no root"
EXPLAINED_BEFORE: Final = "explained before"
NOTHING_TO_EXPLAIN: Final = "nothing of GenAI in it"


def why_not(released: Released, explained: Explained) -> str:
    """Why a trace goes on as it came; empty where it is explained."""
    if released.why in NEVER_HELD:
        return released.why.value
    spans = released.spans
    if explained is Explained.GENAI and not any(span.attributes for span in spans):
        return NOTHING_TO_EXPLAIN
    if released.missing:
        return Why.TRACE_FULL.value  # a path through a part of a trace is a path of nothing
    if all(span.parent_id for span in spans):
        return NO_ROOT
    if any(span.scope == OWN_SCOPE for span in spans):
        return EXPLAINED_BEFORE
    return ""
