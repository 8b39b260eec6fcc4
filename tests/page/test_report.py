"""The demo's report: opened in the browser, and asked what would have helped."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from children import Children
from llmlat_processor.views.wording import duration
from llmlat_semconv.spans import agent_span_name
from llmlat_semconv.values import SectionLabel
from parties import adviser_asks, busy, start_engine, start_gateway
from tests.integration.demo_run import DemoRun
from tests.llmlat_processor.sink import sink

QUEUE = SectionLabel.QUEUE.value


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All spans of one run of the demo's parties, as a file."""
    folder = tmp_path_factory.mktemp("parties")
    with sink() as destination, Children(folder) as children:
        server = start_engine(children, "emulated")
        client = start_gateway(children, server, destination.address)
        with busy(children, server):
            adviser_asks(children, client, destination.address, print)
    file = folder / "spans.pb"
    file.write_bytes(b"".join(destination.requests))  # messages one after the other are merged
    return file


def llmlat(*arguments: str | Path) -> str:
    command = [str(Path(sys.executable).with_name("llmlat")), "show", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def shown(browser: Browser) -> Iterator[Any]:
    """Opens a file; nothing is fetched, and nobody complains."""
    context = browser.new_context()
    heard: list[str] = []

    def show(file: Path) -> Page:
        page = context.new_page()
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: heard.append(request.url))
        page.goto(file.as_uri())
        return page

    yield show
    context.close()
    assert [each for each in heard if not each.startswith("file:")] == []


def test_a_control_that_is_moved_by_keys_says_what_python_says(
    spans: Path, shown: Any, tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    llmlat(spans, "--html", report)
    asked = llmlat(spans, "--json", "--what-if", f"{QUEUE}=0.5")
    (answer,) = json.loads(asked)["what_if"]["answers"]
    page = shown(report)
    control = page.get_by_role("slider", name=QUEUE)
    control.focus()
    for _ in range(10):
        page.keyboard.press("ArrowLeft")
    expect(control).to_have_value("50")
    for amount in ("duration_ns", "saves_ns"):
        figure = page.locator(f".said data[value='{answer[amount]}']")
        expect(figure).to_have_text(duration(answer[amount]))
    assert answer["saves_ns"] > 0


def test_the_demo_writes_a_report_of_what_it_has_shown(shown: Any, tmp_path: Path) -> None:
    run = DemoRun(tmp_path, ("--engine", "emulated", "--json"))
    code, output, errors = run.finish()
    assert code == 0, errors
    (root,) = json.loads(output)["roots"]
    page = shown(run.report)
    expect(page.get_by_role("heading", name=agent_span_name("adviser"))).to_be_visible()
    for path in (root["e2e"], root["ttft"]):
        assert page.locator(f"data[value='{path['duration_ns']}']").count() > 0
    control = page.get_by_role("slider", name=QUEUE)
    control.focus()
    page.keyboard.press("ArrowLeft")
    expect(control).to_have_value("95")
