"""Every exception of the SDK; none of them leaves it.

    LlmlatError
    ├── SettingError    an environment variable has a value that cannot be used
    └── TargetError     a library lacks the method that is to be timed

They are raised and caught inside the SDK: a fault of ours costs telemetry, never a request.
"""

from __future__ import annotations

__all__ = ["LlmlatError", "SettingError", "TargetError"]


class LlmlatError(Exception):
    """Base of all exceptions of the SDK."""


class SettingError(LlmlatError):
    """An environment variable has a value that cannot be used; the default takes its place."""

    def __init__(self, name: str, value: str, expected: str) -> None:
        super().__init__(f"{name}={value!r} is not {expected}; the default is used")


class TargetError(LlmlatError):
    """A library lacks the method that is to be timed; that one stays untimed."""

    def __init__(self, module: str, attribute: str) -> None:
        super().__init__(f"{module} has no {attribute}")
