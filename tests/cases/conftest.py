"""Says at the end of a run how many case files were held to what."""

from collections import Counter
from pathlib import Path

import pytest

from tests.cases.case_format import read_case
from tests.cases.variants import standing_of


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """One line per standing."""
    folder: Path = config.getoption("--cases")
    counts = Counter(standing_of(read_case(path)) for path in sorted(folder.glob("*.json")))
    terminalreporter.section(f"case files in {folder.name}")
    for standing, count in counts.most_common():
        terminalreporter.write_line(f"{count:4} {standing.value}")
