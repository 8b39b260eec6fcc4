"""A real browser, started once, that can reach nothing; and pages on disk that it opens."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from llmlat_processor.commands.page import told
from llmlat_processor.commands.what_if import Supposition
from llmlat_processor.model import ExplainedTrace
from llmlat_processor.views.page import page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)

Open = Callable[..., Page]


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Everything in this folder needs the browser."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker("page")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, headless."""
    assert CHROMIUM, "there is no chromium here: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*ARGUMENTS])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens traces as a page; fails afterwards on any request, any error, any console message."""
    contexts: list[Any] = []
    heard: list[str] = []

    def open_(
        *traces: ExplainedTrace,
        at: str = "",
        suppositions: Sequence[Supposition] = (),
        **context: Any,
    ) -> Page:
        file = tmp_path / f"page-{len(contexts)}.html"
        drawn = page([told(explained, suppositions=suppositions) for explained in traces])
        file.write_text(drawn, encoding="utf-8")
        contexts.append(
            browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **context})
        )
        shown: Page = contexts[-1].new_page()
        address = file.as_uri()
        shown.on("request", lambda request: _note(heard, request.url, address))
        shown.on("console", lambda message: heard.append(f"console: {message.text}"))
        shown.on("pageerror", lambda error: heard.append(f"error: {error}"))
        shown.goto(address + at)
        return shown

    yield open_
    for context in contexts:
        context.close()
    assert heard == []


def _note(heard: list[str], url: str, own: str) -> None:
    if url.partition("#")[0] != own:
        heard.append(f"request: {url}")
