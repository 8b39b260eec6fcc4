"""Options of the whole test suite, and how hard Hypothesis tries."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

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
