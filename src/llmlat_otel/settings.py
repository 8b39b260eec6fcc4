"""What the environment asks of the SDK: variables in, one frozen `Settings` out."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

from llmlat_otel.errors import SettingError

T = TypeVar("T")

PHASES: Final = "LLMLAT_PHASES"
PHASE_MIN: Final = "LLMLAT_PHASE_MIN"
REASONING_IS_CONTENT: Final = "LLMLAT_REASONING_IS_CONTENT"
STALL_THRESHOLD: Final = "LLMLAT_STALL_THRESHOLD"

_logger = logging.getLogger("llmlat_otel")
_UNITS_NS: Final = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "": 1_000_000_000}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?) *(ns|us|ms|s|)")
_BOOLEANS: Final = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class PhasesMode(str, Enum):
    """How phases are written: as spans, as attributes of the operation, or not at all."""

    SPANS = "spans"
    ATTRIBUTES = "attributes"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the SDK.

    Attributes:
        phases: How phases are written (`LLMLAT_PHASES`: spans, attributes, off).
        phase_min_ns: Shorter phases are attributes in spans mode (`LLMLAT_PHASE_MIN`: 1ms).
        reasoning_is_content: Whether visible reasoning counts as useful content
            (`LLMLAT_REASONING_IS_CONTENT`: false).
        stall_threshold_ns: Longer gaps of a stream are stalls (`LLMLAT_STALL_THRESHOLD`: 1s).
    """

    phases: PhasesMode = PhasesMode.SPANS
    phase_min_ns: int = 1_000_000
    reasoning_is_content: bool = False
    stall_threshold_ns: int = 1_000_000_000

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read the settings; a value that cannot be used is warned of and its default taken.

        Args:
            environment: Variables by name, such as `os.environ`. Durations are a number with an
                optional unit of ns, us, ms or s; seconds without one.
        """

        def read(name: str, parse: Callable[[str, str], T], default: T) -> T:
            raw = environment.get(name, "").strip()
            if not raw:
                return default
            try:
                return parse(name, raw)
            except SettingError as error:
                _logger.warning("%s", error)
                return default

        return cls(
            phases=read(PHASES, _mode, cls().phases),
            phase_min_ns=read(PHASE_MIN, _duration_ns, cls().phase_min_ns),
            reasoning_is_content=read(REASONING_IS_CONTENT, _boolean, cls().reasoning_is_content),
            stall_threshold_ns=read(STALL_THRESHOLD, _duration_ns, cls().stall_threshold_ns),
        )


def _mode(name: str, raw: str) -> PhasesMode:
    try:
        return PhasesMode(raw.lower())
    except ValueError:
        raise SettingError(name, raw, "one of spans, attributes, off") from None


def _boolean(name: str, raw: str) -> bool:
    try:
        return _BOOLEANS[raw.lower()]
    except KeyError:
        raise SettingError(name, raw, "true or false") from None


def _duration_ns(name: str, raw: str) -> int:
    match = _DURATION.fullmatch(raw.lower())
    if match is None:
        raise SettingError(name, raw, "a duration such as 1ms or 0.001")
    return round(float(match[1]) * _UNITS_NS[match[2]])
