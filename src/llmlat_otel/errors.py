"""Every exception of the SDK; none of them leaves it.

    LlmlatError
    ├── ContractError   the contract package is not the one that the SDK was written for
    ├── SettingError    an environment variable has a value that cannot be used
    └── TargetError     a library lacks the method that is to be timed

They are raised and caught inside the SDK: a fault of ours costs telemetry, never a request.
"""

from __future__ import annotations

__all__ = ["ContractError", "LlmlatError", "SettingError", "TargetError"]


class LlmlatError(Exception):
    """Base of all exceptions of the SDK."""


class ContractError(LlmlatError):
    """The contract package is not the one that the SDK was written for; nothing is timed."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"llmlat_semconv is version {found}, and not {expected}")


class SettingError(LlmlatError):
    """An environment variable has a value that cannot be used; the default takes its place."""

    def __init__(
        self, name: str, value: str, expected: str, instead: str = "the default is used"
    ) -> None:
        super().__init__(f"{name}={value!r} is not {expected}; {instead}")


class TargetError(LlmlatError):
    """A library lacks the method that is to be timed; that one stays untimed."""

    def __init__(self, module: str, attribute: str) -> None:
        super().__init__(f"{module} has no {attribute}")
