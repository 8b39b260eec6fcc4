"""Files in every form, and what is said of those that are in none."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from google.protobuf.message import Message
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from llmlat_processor.files import UnreadableFileError, load
from tests.llmlat_processor import adviser
from tests.llmlat_processor.jaeger_answers import jaeger_answer
from tests.llmlat_processor.otlp import request, span


def as_json(*numbers: int, trace_id: str = "0a" * 16) -> str:
    spans = [{"traceId": trace_id, "spanId": f"{number:016x}"} for number in numbers]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def framed(*messages: Message) -> bytes:
    contents = [message.SerializeToString() for message in messages]
    return b"".join(len(content).to_bytes(4, "big") + content for content in contents)


FIRST, SECOND = request([span(1)]), request([span(2)])
DATA = TracesData(resource_spans=[*FIRST.resource_spans, *SECOND.resource_spans])

FORMS = {
    "an export in protobuf": FIRST.SerializeToString() + SECOND.SerializeToString(),
    "TracesData": DATA.SerializeToString(),
    "messages behind their length": framed(FIRST, SECOND),
    "JSON": as_json(1, 2).encode(),
    "indented JSON": json.dumps(json.loads(as_json(1, 2)), indent=2).encode(),
    "an array": f"[\n{as_json(1)},\n{as_json(2)}\n]".encode(),
    "lines of JSON": f"{as_json(1)}\n\n{as_json(2)}\n".encode(),
    "lines from Windows": f"{as_json(1)}\r\n{as_json(2)}\r\n".encode(),
    "what the API v3 of Jaeger answers": f'{{"result": {as_json(1, 2)}}}'.encode(),
    "what the API v3 of Jaeger streams": "\n".join(
        f'{{"result": {as_json(number)}}}' for number in (1, 2)
    ).encode(),
    "what Jaeger's UI downloads": jaeger_answer(
        [adviser.span(1, 0, "root", 0, 1), adviser.span(2, 1, "child", 0, 1)]
    ).encode(),
    "what Jaeger's UI downloads, indented": json.dumps(
        json.loads(
            jaeger_answer([adviser.span(1, 0, "root", 0, 1), adviser.span(2, 1, "child", 0, 1)])
        ),
        indent=4,
    ).encode(),
    "JSON after a byte order mark": as_json(1, 2).encode("utf-8-sig"),
    "JSON after an empty line": f"\n{as_json(1, 2)}".encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_told_by_its_content(form: str, tmp_path: Path) -> None:
    path = tmp_path / "traces"
    path.write_bytes(FORMS[form])

    loaded = load(str(path))

    assert [read.span_id[-1] for read in loaded.spans] == [1, 2]
    assert not loaded.damaged


def test_protobuf_that_starts_like_json_is_protobuf(tmp_path: Path) -> None:
    """A first message of 123 bytes starts with a line feed and a brace."""
    message = request([span(1, attributes={}, name="x")], {}, scope="")
    missing = 123 - message.resource_spans[0].ByteSize()
    message.resource_spans[0].scope_spans[0].spans[0].name += "x" * missing
    path = tmp_path / "traces.pb"
    path.write_bytes(message.SerializeToString())

    assert path.read_bytes().startswith(b"\n{")
    assert len(load(str(path)).spans) == 1


def test_standard_input_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO(FORMS["lines of JSON"])
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=content))

    assert len(load("-").spans) == 2


def test_standard_input_that_is_closed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)

    with pytest.raises(UnreadableFileError, match="standard input: it is closed"):
        load("-")


def test_damage_is_told_by_file_line_and_field(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    lines = [
        as_json(1),
        as_json(2, trace_id="xyz"),
        '{"resourceMetrics": []}',
        as_json(4),
        '{"resourceSp',
    ]
    path.write_text("\n".join(lines))

    loaded = load(str(path))

    assert [read.span_id[-1] for read in loaded.spans] == [1, 4]
    field = "resourceSpans[0].scopeSpans[0].spans[0].traceId"
    told = sorted(str(damaged) for damaged in loaded.damaged)
    assert told[0].startswith(f"{path}:2: {field}: 'xyz' is not 32 hexadecimal digits")
    assert told[1].startswith(f"{path}:3: resourceMetrics: these are metrics")
    assert told[2].startswith(f"{path}:5: not JSON: ")
    assert len(told) == 3


def test_a_message_that_is_cut_off_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "traces.bin"
    path.write_bytes(framed(FIRST, SECOND)[:-3])

    loaded = load(str(path))

    assert [read.span_id[-1] for read in loaded.spans] == [1]
    (damaged,) = loaded.damaged
    assert damaged.where == f"{path}: message 2"


def test_damaged_spans_alone_are_told_and_not_raised(tmp_path: Path) -> None:
    path = tmp_path / "traces.json"
    path.write_text(as_json(1, trace_id="xyz"))

    loaded = load(str(path))

    assert not loaded.spans
    assert [damaged.spans for damaged in loaded.damaged] == [1]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"hello", "not an export of spans in protobuf: .*what can be read is OTLP"),
        (b"{", "not JSON: .*what can be read is OTLP"),
        (b'{"a": 1}\n{"b": 2}', ":1: resourceSpans: missing"),
        (b'{\n  "data": []\n}', "resourceSpans: missing"),
        (b'{"data": null, "errors": [{"msg": "trace not found"}]}', "Jaeger's .*trace not found"),
        (b'{"error": {"message": "No traces found"}}', "Jaeger's without a trace: No traces found"),
        (b"\x1f\x8b\x08", "compressed; unpack it first, with gunzip"),
        (b"\x28\xb5\x2f\xfd", "compressed; unpack it first, with unzstd"),
        (b"BZh9", "compressed; unpack it first, with bunzip2"),
        (b"\xfd7zXZ\x00", "compressed; unpack it first, with unxz"),
        (b"PK\x03\x04", "compressed; unpack it first, with unzip"),
        ('{"resourceSpans": []}'.encode("utf-16"), "it is UTF-16; make it UTF-8 first"),
    ],
)
def test_what_is_no_otlp_is_refused_with_what_to_do(
    content: bytes, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "traces"
    path.write_bytes(content)

    with pytest.raises(UnreadableFileError, match=reason) as raised:
        load(str(path))

    assert str(raised.value).startswith(str(path))


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFileError, match="nowhere: No such file or directory"):
        load(str(tmp_path / "nowhere"))
