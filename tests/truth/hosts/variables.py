"""What the hosts are told, by environment variables of these names."""

from __future__ import annotations

from typing import Final

RECORD: Final = "TRUTH_RECORD"
"""The file for what a host knows of itself."""

PLAN: Final = "TRUTH_PLAN"
"""What the app does, as JSON."""

TOOLS_URL: Final = "TRUTH_TOOLS_URL"
"""Where the app finds the tools."""

ENGINE: Final = "TRUTH_ENGINE"
"""How long the parts of an answer take, as JSON."""

PLAIN_TOOLS: Final = "TRUTH_PLAIN_TOOLS"
"""Set where the tools' spans are another producer's."""

PORT: Final = 8000
"""Where each server listens on its host."""
