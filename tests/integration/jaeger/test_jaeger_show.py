"""`llmlat show` of a trace in a real Jaeger: the account that the spans themselves give."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from llmlat_processor import service
from llmlat_processor.commands.progress import Progress
from llmlat_processor.commands.show import Request, show
from llmlat_processor.files import read
from llmlat_processor.jaeger_address import parse
from llmlat_processor.model import ExplainedTrace, Path
from llmlat_processor.pipeline import process
from llmlat_processor.views.document import document
from llmlat_processor.wire import decode
from tests.integration.jaeger.loop import Loop
from tests.integration.jaeger.sending import Sent, sent_as

pytestmark = pytest.mark.peers

SLIVER_NS = 2_000
"""Jaeger's own JSON cuts starts and durations to microseconds, each by itself."""


@pytest.fixture(scope="module", params=["call_worked_adviser", "call_parallel_tools_explicit"])
def sent(request: pytest.FixtureRequest, shared_loop: Loop) -> Sent:
    made = sent_as(request.param)
    shared_loop.send(made.request)
    shared_loop.stored(made.trace_id)  # with its lane
    return made


@pytest.fixture
def direct(sent: Sent) -> ExplainedTrace:
    return process(decode(sent.request.SerializeToString()).spans)


def shown(*addresses: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    request = Request(addresses, "", [], as_json=True, everything=False)
    code = show(request, out, Progress(err, lambda: 0.0), service.fetch)
    return code, out.getvalue(), err.getvalue()


def plain(tree: object) -> Any:
    return json.loads(json.dumps(tree))


def sections(path: Path) -> list[tuple[bytes, str, int]]:
    return [
        (section.span.span_id, section.label.value, round(section.duration_ns, -4))
        for section in path.sections
        if section.duration_ns > SLIVER_NS
    ]


@pytest.mark.parametrize("form", ["jaeger://{}/{}", "http://{}/trace/{}?uiFind=x"])
def test_a_trace_from_jaeger_is_explained_as_from_a_file(
    loop: Loop, sent: Sent, direct: ExplainedTrace, form: str
) -> None:
    code, out, err = shown(form.format(loop.addresses.jaeger_http, sent.trace_id.hex()))

    assert (code, err) == (0, "")
    assert json.loads(out) == plain(document(direct))


def test_jaegers_own_json_gives_the_same_but_for_slivers(
    loop: Loop, sent: Sent, direct: ExplainedTrace
) -> None:
    address = parse(f"jaeger://{loop.addresses.jaeger_http}/{sent.trace_id.hex()}")
    _, of_the_older_api = service.fetch(address)

    again = process(read(of_the_older_api, "answer").spans)

    for one, other in zip(again.paths.roots, direct.paths.roots, strict=True):
        assert sections(one.e2e) == sections(other.e2e)
        assert abs(one.e2e.duration_ns - other.e2e.duration_ns) <= SLIVER_NS


def test_a_trace_that_jaeger_has_not_got_is_told(loop: Loop) -> None:
    address = f"jaeger://{loop.addresses.jaeger_http}/{'7' * 32}"

    code, _, err = shown(address)

    assert code == 1
    assert f"{loop.addresses.jaeger_http} has no such trace" in err


def test_another_port_of_jaegers_is_told(loop: Loop, sent: Sent) -> None:
    for port in (loop.addresses.jaeger_otlp, loop.addresses.jaeger_grpc):
        code, _, err = shown(f"jaeger://{port}/{sent.trace_id.hex()}")

        assert code == 1
        assert "is it the port of Jaeger's UI, 16686 unless changed?" in err
