"""An application's whole run: it passes as it is, and what we have to do comes after it."""

import asyncio

import pytest

from llmlat_otel.core import lifespans
from llmlat_otel.core.guard import faults
from llmlat_otel.core.lifespans import Lifespan, when_over

SCOPE, RECEIVE, SEND = {"type": "lifespan"}, object(), object()


@pytest.fixture(autouse=True)
def _without_works(monkeypatch):
    monkeypatch.setattr(lifespans, "_works", [])


def lived(app):
    return asyncio.run(Lifespan(SCOPE, RECEIVE, SEND).run(app))


def test_an_application_runs_with_what_the_server_gives_it_and_what_it_returns_is_returned():
    async def app(*given):
        return given

    returned = lived(app)
    assert all(one is other for one, other in zip(returned, (SCOPE, RECEIVE, SEND), strict=True))


class TheirError(Exception):
    """The application's own."""


@pytest.mark.parametrize("error", [None, TheirError("no"), asyncio.CancelledError(), SystemExit(3)])
def test_what_is_to_be_done_is_done_when_it_is_over_however_it_ends(error):
    done: list[str] = []

    async def app(*_):
        assert done == []
        if error is not None:
            raise error

    when_over(lambda: done.append("first"))
    when_over(lambda: done.append("second"))
    raised = None
    try:
        lived(app)
    except BaseException as caught:  # noqa: BLE001 - whatever it is, it is theirs
        raised = caught
    assert type(raised) is type(error)
    assert error is None or str(raised) == str(error)
    assert done == ["first", "second"]


def test_a_fault_of_ours_is_not_noticed_and_keeps_nothing_else_from_being_done():
    done: list[str] = []
    before = faults().get(lifespans.TARGET, 0)

    async def app(*_):
        return "theirs"

    when_over(lambda: 1 / 0)
    when_over(lambda: done.append("second"))
    assert (lived(app), done) == ("theirs", ["second"])
    assert faults()[lifespans.TARGET] == before + 1
