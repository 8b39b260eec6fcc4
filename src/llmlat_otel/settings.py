"""What the environment asks of the SDK: variables in, one frozen `Settings` out."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeVar

from llmlat_otel.errors import SettingError

T = TypeVar("T")

PHASES: Final = "LLMLAT_PHASES"
PHASE_MIN: Final = "LLMLAT_PHASE_MIN"
REASONING_IS_CONTENT: Final = "LLMLAT_REASONING_IS_CONTENT"
STALL_THRESHOLD: Final = "LLMLAT_STALL_THRESHOLD"
ENGINE_STEPS: Final = "LLMLAT_ENGINE_STEPS"
DISABLED: Final = "LLMLAT_DISABLED"
HEALTH: Final = "LLMLAT_HEALTH"
SDK_DISABLED: Final = "OTEL_SDK_DISABLED"
EXCLUDED_URLS: Final = "OTEL_PYTHON_EXCLUDED_URLS"

_logger = logging.getLogger("llmlat_otel")
_UNITS_NS: Final = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "": 1_000_000_000}
_DURATION: Final = r"(\d+(?:\.\d+)?) *(ns|us|ms|s|)"
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
        engine_steps: Whether an engine's scheduler is looked at in each step
            (`LLMLAT_ENGINE_STEPS`: false).
        excluded_urls: Requests whose URL this is found in are left alone
            (`OTEL_PYTHON_EXCLUDED_URLS`: regular expressions with commas).
        refused: What the environment says and cannot be used, as it was warned of.
    """

    phases: PhasesMode = PhasesMode.SPANS
    phase_min_ns: int = 1_000_000
    reasoning_is_content: bool = False
    stall_threshold_ns: int = 1_000_000_000
    engine_steps: bool = False
    excluded_urls: re.Pattern[str] | None = None
    refused: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read the settings; where a value cannot be used the default is taken.

        Args:
            environment: Variables by name, such as `os.environ`. Durations are a number with an
                optional unit of ns, us, ms or s; seconds without one.
        """
        refused: list[str] = []

        def read(name: str, parse: Callable[[str, str], T], default: T) -> T:
            raw = environment.get(name, "").strip()
            if not raw:
                return default
            try:
                return parse(name, raw)
            except SettingError as error:
                refused.append(str(error))
                return default

        return cls(
            phases=read(PHASES, _mode, cls().phases),
            phase_min_ns=read(PHASE_MIN, _duration_ns, cls().phase_min_ns),
            reasoning_is_content=read(REASONING_IS_CONTENT, _boolean, cls().reasoning_is_content),
            stall_threshold_ns=read(STALL_THRESHOLD, _duration_ns, cls().stall_threshold_ns),
            engine_steps=read(ENGINE_STEPS, _boolean, cls().engine_steps),
            excluded_urls=read(EXCLUDED_URLS, _any_of, cls().excluded_urls),
            refused=tuple(refused),
        )

    def warn_of_refused(self) -> None:
        """Warn of what cannot be used; handlers of the application's run meanwhile."""
        for each in self.refused:
            _logger.warning("%s", each)

    @property
    def are_phases_off(self) -> bool:
        """Whether no phases are written at all."""
        return self.phases is PhasesMode.OFF

    def in_force(self) -> dict[str, str]:
        """The settings by variable, as the environment would say them."""
        return {
            PHASES: self.phases.value,
            PHASE_MIN: f"{self.phase_min_ns / _UNITS_NS['ms']:g}ms",
            REASONING_IS_CONTENT: str(self.reasoning_is_content).lower(),
            STALL_THRESHOLD: f"{self.stall_threshold_ns / _UNITS_NS['s']:g}s",
            ENGINE_STEPS: str(self.engine_steps).lower(),
        }


def is_sdk_disabled(environment: Mapping[str, str]) -> bool:
    """Whether OpenTelemetry is switched off as a whole (`OTEL_SDK_DISABLED=true`)."""
    return environment.get(SDK_DISABLED, "").strip().lower() == "true"


def disabled_instrumentors(
    environment: Mapping[str, str], known: Collection[str]
) -> tuple[frozenset[str], tuple[str, ...]]:
    """The instrumentors that `LLMLAT_DISABLED` switches off, and names in it that are none.

    Args:
        environment: Variables by name. The value is a list such as `openai,httpx`; `all` or `true`
            is every one, `false` none.
        known: The names of all instrumentors.
    """
    listed = [each.strip().lower() for each in environment.get(DISABLED, "").split(",")]
    named = [each for each in listed if each and _BOOLEANS.get(each) is not False]
    if is_sdk_disabled(environment) or any(each == "all" or each in _BOOLEANS for each in named):
        return frozenset(known), ()
    unknown = tuple(
        str(SettingError(DISABLED, each, f"among {', '.join(sorted(known))}, all", "it is ignored"))
        for each in named
        if each not in known
    )
    return frozenset(named) & frozenset(known), unknown


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


def _any_of(name: str, raw: str) -> re.Pattern[str] | None:
    """The regular expressions of a list as one, which OpenTelemetry makes of them too."""
    listed = [each.strip() for each in raw.split(",") if each.strip()]
    try:
        return re.compile("|".join(listed)) if listed else None
    except re.error:
        raise SettingError(name, raw, "regular expressions with commas") from None


def _duration_ns(name: str, raw: str) -> int:
    match = re.fullmatch(_DURATION, raw.lower())
    duration_ns = math.inf if match is None else float(match[1]) * _UNITS_NS[match[2]]
    if math.isinf(duration_ns):
        raise SettingError(name, raw, "a duration such as 1ms or 0.001")
    return round(duration_ns)
