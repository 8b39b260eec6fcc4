"""The line that says what long work is at: where it is shown, how often, and that it goes away."""

from __future__ import annotations

import io

import pytest

from llmlat_processor.commands.progress import EVERY_S, Progress

LINE = "\r\x1b[K"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")


def test_of_many_calls_few_are_drawn() -> None:
    now_s, err = [0.0], Terminal()
    progress = Progress(err, lambda: now_s[0])
    for words, at_s in (("one", 0.0), ("two", EVERY_S / 2), ("three", EVERY_S)):
        now_s[0] = at_s
        progress.at(words)

    assert err.getvalue() == f"{LINE}one{LINE}three"


def test_a_line_that_stays_takes_the_place_of_the_one_that_goes() -> None:
    err = Terminal()
    progress = Progress(err, lambda: 0.0)
    progress.at("reading")
    progress.tell("a fault")
    progress.clear()

    assert err.getvalue() == f"{LINE}reading{LINE}a fault\n"


def test_it_never_takes_more_than_one_line() -> None:
    err = Terminal()
    Progress(err, lambda: 0.0).at("x" * 50)

    assert err.getvalue() == LINE + "x" * 19


def test_elsewhere_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    err = io.StringIO()
    Progress(err, lambda: 0.0).at("reading")
    monkeypatch.setenv("TERM", "dumb")
    dumb = Terminal()
    Progress(dumb, lambda: 0.0).at("reading")

    assert err.getvalue() == dumb.getvalue() == ""
