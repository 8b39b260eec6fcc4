"""Settings: what the environment says, and what happens to nonsense."""

import pytest

from llmlat_otel.settings import PhasesMode, Settings, disabled_instrumentors


def test_defaults():
    assert Settings.from_environment({}) == Settings(
        phases=PhasesMode.SPANS,
        phase_min_ns=1_000_000,
        reasoning_is_content=False,
        stall_threshold_ns=1_000_000_000,
        engine_steps=False,
    )


def test_everything_can_be_set():
    environment = {
        "LLMLAT_PHASES": "Attributes",
        "LLMLAT_PHASE_MIN": "2.5ms",
        "LLMLAT_REASONING_IS_CONTENT": "true",
        "LLMLAT_STALL_THRESHOLD": "500ms",
        "LLMLAT_ENGINE_STEPS": "1",
    }
    assert Settings.from_environment(environment) == Settings(
        PhasesMode.ATTRIBUTES, 2_500_000, True, 500_000_000, True
    )


@pytest.mark.parametrize(
    ("raw", "expected_ns"),
    [("0", 0), ("0.001", 1_000_000), ("3s", 3_000_000_000), ("7 us", 7_000), ("9ns", 9)],
)
def test_durations(raw, expected_ns):
    assert Settings.from_environment({"LLMLAT_PHASE_MIN": raw}).phase_min_ns == expected_ns


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("LLMLAT_PHASES", "span"),
        ("LLMLAT_PHASE_MIN", "-1ms"),
        ("LLMLAT_PHASE_MIN", "nan"),
        ("LLMLAT_REASONING_IS_CONTENT", "maybe"),
        ("LLMLAT_STALL_THRESHOLD", "1h"),
        ("LLMLAT_ENGINE_STEPS", "each"),
    ],
)
def test_nonsense_is_warned_of_once_and_the_default_taken(name, raw, caplog):
    assert Settings.from_environment({name: raw}) == Settings()
    Settings.from_environment({name: raw}).warn_of_refused()
    assert len(caplog.records) == 1
    assert Settings.from_environment({name: raw}).refused == (caplog.messages[0],)
    assert name in caplog.text
    assert raw in caplog.text


def test_an_empty_value_is_no_value(caplog):
    assert Settings.from_environment({"LLMLAT_PHASES": " "}) == Settings()
    assert not caplog.records


def test_what_is_in_force_is_said_as_the_environment_would_say_it():
    environment = {
        "LLMLAT_PHASES": "attributes",
        "LLMLAT_PHASE_MIN": "2.5ms",
        "LLMLAT_REASONING_IS_CONTENT": "true",
        "LLMLAT_STALL_THRESHOLD": "0.5s",
        "LLMLAT_ENGINE_STEPS": "true",
    }
    settings = Settings.from_environment(environment)
    assert settings.in_force() == environment
    assert Settings.from_environment(settings.in_force()) == settings


KNOWN = ("httpx", "openai")


@pytest.mark.parametrize(
    ("raw", "disabled"),
    [
        ("", set()),
        ("openai", {"openai"}),
        (" OpenAI , httpx ,", {"openai", "httpx"}),
        ("all", {"openai", "httpx"}),
        ("true", {"openai", "httpx"}),
        ("1", {"openai", "httpx"}),
        ("false", set()),
        ("0", set()),
    ],
)
def test_instrumentors_are_switched_off_by_name(raw, disabled):
    assert disabled_instrumentors({"LLMLAT_DISABLED": raw}, KNOWN) == (disabled, ())


def test_names_that_are_no_instrumentors_are_told_with_those_that_are():
    disabled, unknown = disabled_instrumentors({"LLMLAT_DISABLED": "open_ai,httpx"}, KNOWN)
    assert disabled == {"httpx"}
    assert unknown == ("LLMLAT_DISABLED='open_ai' is not among httpx, openai, all; it is ignored",)


@pytest.mark.parametrize(("raw", "is_off"), [("true", True), (" TRUE", True), ("1", False)])
def test_opentelemetry_is_switched_off_as_a_whole(raw, is_off):
    disabled, _ = disabled_instrumentors({"OTEL_SDK_DISABLED": raw}, KNOWN)
    assert bool(disabled) is is_off
