"""What has to hold of any trace that has been through the loop: the rules of docs/views.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from google.protobuf.message import Message
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from llmlat_semconv import attributes as names
from llmlat_semconv.events import LLMLAT_FINDING
from llmlat_semconv.spans import lane_span_name
from llmlat_semconv.values import LinkRelationship
from llmlat_semconv.version import CONTRACT_VERSION
from tests.integration.jaeger.storage import Stored

SERVICE: Final = "~critical path"
SCOPE: Final = "llmlat_processor"
MOST_SECTIONS: Final = 20
_ADDED: Final = tuple(
    name.removesuffix("duration").removesuffix("kind")
    for name in (
        names.LLMLAT_CRITICAL_PATH_DURATION,
        names.LLMLAT_TTFT_PATH_DURATION,
        names.LLMLAT_FINDING_KIND,
    )
)
"""How the names of everything begin that is appended to a span."""
_GEN_AI: Final = names.GEN_AI_OPERATION_NAME.removesuffix("operation.name")


@dataclass(frozen=True)
class Lane:
    """The spans of one lane."""

    root: Stored
    sections: Sequence[Stored]


def is_ours(stored: Stored) -> bool:
    """Whether the processor has made a span, and not only passed it on."""
    return stored.scope.name == SCOPE


def originals(spans: Iterable[Stored]) -> list[Stored]:
    """Those that were sent."""
    return [each for each in spans if not is_ours(each)]


def lane_of(spans: Iterable[Stored]) -> Lane:
    """The only lane of a trace, its sections in the order of time."""
    ours = [each for each in spans if is_ours(each)]
    (root,) = [each for each in ours if each.span.name == lane_span_name()]
    sections = [each for each in ours if each is not root]
    return Lane(root, sorted(sections, key=lambda each: each.span.start_time_unix_nano))


def said(attributes: Iterable[KeyValue]) -> dict[str, object]:
    """Attributes as Python values."""
    return {pair.key: _plain(pair.value) for pair in attributes}


def _plain(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(each) for each in value.array_value.values]
    return None if kind is None else getattr(value, kind)


def check_only_appended_to(stored: Stored, sent: Stored) -> None:
    """Without what was appended at their ends, both are the same bytes, envelopes included."""
    known, seen = sent.span, Span.FromString(stored.span.SerializeToString())
    added = seen.attributes[len(known.attributes) :]
    assert all(pair.key.startswith(_ADDED) for pair in added)
    assert {each.name for each in seen.events[len(known.events) :]} <= {LLMLAT_FINDING}
    del seen.attributes[len(known.attributes) :]
    del seen.events[len(known.events) :]
    assert _bytes(seen) == _bytes(known)
    assert _bytes(stored.resource) == _bytes(sent.resource)
    assert _bytes(stored.scope) == _bytes(sent.scope)


def _bytes(message: Message) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))


def check_lane(spans: Sequence[Stored]) -> None:
    """The form of the lane, whatever the trace is."""
    (root,) = [each for each in originals(spans) if not each.span.parent_span_id]
    lane = lane_of(spans)
    for each in (lane.root, *lane.sections):
        _check_place(each, root)
    drawn = lane.root.span
    assert drawn.parent_span_id == root.span.span_id
    assert drawn.start_time_unix_nano == root.span.start_time_unix_nano
    assert drawn.end_time_unix_nano == drawn.start_time_unix_nano + 1
    _check_counts(lane)
    by_id = {each.span.span_id: each for each in spans}
    for each in lane.sections:
        _check_section(each.span, drawn, by_id)
    for former, latter in pairwise(each.span for each in lane.sections):
        assert former.end_time_unix_nano <= latter.start_time_unix_nano


def _check_place(ours: Stored, root: Stored) -> None:
    """Service, host and scope; no GenAI attribute, or it would be a GenAI operation."""
    host = said(root.resource.attributes).get(names.HOST_ID)
    resource = {names.SERVICE_NAME: SERVICE, **({names.HOST_ID: host} if host else {})}
    assert said(ours.resource.attributes) == resource
    assert said(ours.scope.attributes) == {names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION}
    about = said(ours.span.attributes)
    assert about[names.LLMLAT_TRACE_ROOT_SERVICE] == root.service
    assert about[names.LLMLAT_TRACE_ROOT_NAME] == root.span.name
    assert not [key for key in about if key.startswith(_GEN_AI)]
    assert ours.span.kind == Span.SPAN_KIND_INTERNAL
    assert ours.span.trace_id == root.span.trace_id


def _check_counts(lane: Lane) -> None:
    """What is drawn and what is not add up to the whole path."""
    about = said(lane.root.span.attributes)
    whole_s = _number(about, names.LLMLAT_CRITICAL_PATH_DURATION)
    shown = [_duration_ns(each.span) / 1e9 for each in lane.sections]
    assert about[names.LLMLAT_CRITICAL_PATH_SHOWN_SECTIONS] == len(shown) <= MOST_SECTIONS
    listed = about[names.LLMLAT_CRITICAL_PATH_SECTIONS]
    assert isinstance(listed, list)
    assert about[names.LLMLAT_CRITICAL_PATH_TOTAL_SECTIONS] == len(listed) >= len(shown)
    hidden_s = _number(about, names.LLMLAT_CRITICAL_PATH_HIDDEN_DURATION)
    assert abs(sum(shown) + hidden_s - whole_s) < 1e-5
    assert all(each >= 0.005 * whole_s - 1e-6 for each in shown)


def _check_section(section: Span, lane: Span, by_id: Mapping[bytes, Stored]) -> None:
    """A child of the lane's root that points to a span of the same trace, and says what it is."""
    assert section.parent_span_id == lane.span_id
    about = said(section.attributes)
    assert about[names.LLMLAT_SECTION_EVIDENCE]
    assert section.name.split(" ")[0] == about[names.LLMLAT_SECTION_LABEL]
    assert abs(_number(about, names.LLMLAT_SECTION_DURATION) - _duration_ns(section) / 1e9) < 1e-6
    assert 0 < _number(about, names.LLMLAT_SECTION_SHARE) <= 1
    (link,) = section.links
    assert link.trace_id == section.trace_id
    assert not is_ours(by_id[link.span_id])
    relationship = {names.LLMLAT_LINK_RELATIONSHIP: LinkRelationship.SECTION_OF.value}
    assert said(link.attributes) == relationship


def _number(about: Mapping[str, object], name: str) -> float:
    value = about[name]
    assert isinstance(value, float), f"{name} is a double, always"
    return value


def _duration_ns(span: Span) -> int:
    return span.end_time_unix_nano - span.start_time_unix_nano
