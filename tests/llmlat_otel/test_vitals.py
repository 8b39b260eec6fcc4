"""Health: a plain dict, in which what is not known is absent, and which never raises."""

import json
import os

import httpx2
import pytest
from opentelemetry.sdk.trace import TracerProvider

import llmlat_otel
from llmlat_otel import exporting, vitals
from llmlat_otel.core.clock import Clock
from llmlat_otel.core.emit import Emitter
from llmlat_otel.core.guard import guarded
from llmlat_otel.destinations import Destination
from llmlat_otel.settings import Settings
from llmlat_otel.testing import ManualClock, recorded
from llmlat_otel.vitals_file import HealthFile
from llmlat_semconv.version import CONTRACT_VERSION


@pytest.fixture
def way(monkeypatch):
    made = exporting._Way()
    monkeypatch.setattr(exporting, "_way", made)
    return made


def test_it_can_be_written_as_json_and_says_who_this_is(way):
    with recorded(clock=ManualClock(wall_ns=1_700_000_000_000_000_000)):
        health = llmlat_otel.health()
    assert json.loads(json.dumps(health)) == health
    assert health["pid"] == os.getpid()
    assert health["at"] == "2023-11-14T22:13:20Z"
    assert (health["contract"], health["is_loaded"]) == (CONTRACT_VERSION, True)


def test_spans_that_were_made_and_nothing_that_is_not_known(way):
    with recorded():
        with llmlat_otel.tool("a"), llmlat_otel.tool("b"):
            pass
        assert llmlat_otel.health()["spans"] == {"made": 2}


def test_the_applications_provider_is_named(way, monkeypatch):
    monkeypatch.setattr(Emitter, "their_provider", lambda self: Settings())
    with recorded():
        spans = llmlat_otel.health()["spans"]
    assert spans == {"made": 0, "provider": "llmlat_otel.settings.Settings"}


def test_the_account_of_our_own_destinations_is_told(way):
    destination = Destination("otlp", "localhost:4317")
    destination.ended, destination.failed = 2, 1
    destination.last_error = ("refused", 1_700_000_000_000_000_000)
    way.ours = exporting._Ours(TracerProvider(shutdown_on_exit=False), [destination])
    with recorded():
        (told,) = llmlat_otel.health()["spans"]["destinations"]
    assert told == {
        "name": "otlp",
        "endpoint": "localhost:4317",
        "ended": 2,
        "sent": 0,
        "failed": 1,
        "last_error": {"what": "refused", "at": "2023-11-14T22:13:20Z"},
    }


def test_settings_and_what_was_refused(way):
    settings = Settings.from_environment({"LLMLAT_PHASES": "span"})
    with recorded(settings=settings):
        told = llmlat_otel.health()["settings"]
    assert told["in_force"]["LLMLAT_PHASES"] == "spans"
    assert len(told["refused"]) == 1
    assert "'span'" in told["refused"][0]


def test_faults_with_what_the_first_was(way):
    for _ in range(2):
        guarded("a target of vitals", int, "words of a user")
    assert llmlat_otel.health()["faults"]["a target of vitals"] == {
        "count": 2,
        "first": "ValueError",
    }


def test_targets_with_the_version_of_their_library(way):
    llmlat_otel.instrument()
    try:
        httpx = llmlat_otel.health()["instrumentors"]["httpx"]
    finally:
        llmlat_otel.uninstrument()
    assert httpx["libraries"]["httpx2"].startswith(httpx2.__version__)
    assert {"target": "httpx2.Client.send", "state": "wrapped"} in httpx["targets"]


def test_a_section_that_fails_is_absent_and_the_others_are_there(way):
    class Broken(Clock):
        def anchor(self):
            raise OSError

    with recorded(clock=Broken()):
        health = llmlat_otel.health()
    assert "at" not in health
    assert health["spans"] == {"made": 0}


def test_a_file_is_written_whole_and_a_last_time_at_the_end(tmp_path):
    path = tmp_path / "health.json"
    file = HealthFile(str(path), lambda: {"n": 1})
    file._write({})
    assert json.loads(path.read_text(encoding="utf-8")) == {"n": 1, "interval": 5.0}
    file.end()
    file._write({})
    assert json.loads(path.read_text(encoding="utf-8"))["has_ended"]
    assert [each.name for each in tmp_path.iterdir()] == ["health.json"]


@pytest.mark.parametrize("path", ["", "new/"])
def test_a_folder_takes_a_file_per_process(path, tmp_path):
    HealthFile(f"{tmp_path}/{path}", dict)._write({})
    assert (tmp_path / path / f"llmlat-{os.getpid()}.json").is_file()


def test_a_doctor_shows_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(vitals, "_shown", vitals._Shown())
    vitals._shown.file = HealthFile(str(tmp_path / "health.json"), dict)
    file = vitals._shown.file
    vitals.keep_to_ourselves()
    file.end()
    file._write({})
    assert list(tmp_path.iterdir()) == []
