"""Options of the whole test suite, and how hard Hypothesis tries."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from opentelemetry.context import get_current

# The same examples in every run: a failure belongs to the change that caused it. Looking for new
# ones is a run of its own: `pytest tests/properties --hypothesis-profile=thorough`.
settings.register_profile("steady", derandomize=True, deadline=None, max_examples=100)
settings.register_profile(
    "thorough",
    deadline=None,
    max_examples=5_000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--cases DIR`: hold the processor to the case files of another folder."""
    parser.addoption(
        "--cases",
        type=Path,
        metavar="DIR",
        default=Path(__file__).parent / "cases" / "paths",
        help="folder of case files to run (default: tests/cases/paths)",
    )


@pytest.fixture(autouse=True)
def _contexts_are_left_as_they_were_found() -> Iterator[None]:
    """A span that stays current would become the parent of another test's spans."""
    before = get_current()
    yield
    assert get_current() == before


@pytest.fixture(autouse=True)
def _background_tasks_are_as_they_were() -> Iterator[None]:
    """OpenTelemetry's FastAPI instrumentation of one app times those of all, in its provider."""
    yield
    starlette = sys.modules.get("starlette.background")
    original = getattr(getattr(starlette, "BackgroundTask", None), "_otel_original_call", None)
    if starlette is not None and original is not None:
        starlette.BackgroundTask.__call__ = original
        del starlette.BackgroundTask._otel_original_call
