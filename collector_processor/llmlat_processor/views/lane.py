"""A finished trace -> the lane: its critical path as spans, one row a section, in any trace viewer.

    invoke_agent adviser        █████████████████████████████   the trace's root
      critical path             ▏         ╵                     1 ns; the tick is the first content
        queue vllm                 ████
        decode vllm                       ████████              each points to the span it lies in
      chat gemma                ███████████████████████

A section of another clock stands where the durations put it, never at its raw stamp. Ids follow
from the trace, the root, the revision and the position: a lane that is sent twice is one lane.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter
from typing import Final, NamedTuple

from llmlat_processor.model import (
    INTERNAL,
    Attributes,
    AttributeValue,
    Event,
    ExplainedTrace,
    Link,
    Path,
    Resource,
    RootPaths,
    Section,
    Span,
    Trace,
)
from llmlat_processor.written import OWN_SCOPE, cut, seconds, six_digits
from llmlat_semconv import attributes as names
from llmlat_semconv.spans import lane_span_name, section_span_name
from llmlat_semconv.values import Evidence, LinkRelationship, SectionLabel
from llmlat_semconv.version import CONTRACT_VERSION

SERVICE: Final = "~critical path"
"""The tilde sorts it behind the real services."""

FIRST_CONTENT: Final = "first useful content"

SHOWN: Final = 20
SMALLEST_PART: Final = 200
"""A section is drawn if it is at least one of so many parts of the path: 0.5 %."""

LISTED: Final = 200
LISTED_SINGLY: Final = 100
LISTED_BY_OPERATION: Final = LISTED - LISTED_SINGLY - len(SectionLabel)

_SAMPLED: Final = 0xFF
"""The bits of a span's flags that are those of its trace."""

_ID_BYTES: Final = 8
_NO_ID: Final = bytes(_ID_BYTES)

_OF_THE_OPERATION: Final = frozenset(
    {
        names.LLMLAT_CRITICAL_PATH_IS_ON_PATH,
        names.LLMLAT_CRITICAL_PATH_SELF_TIME,
        names.LLMLAT_CRITICAL_PATH_SHARE,
        names.LLMLAT_CRITICAL_PATH_SLACK,
        names.LLMLAT_TTFT_PATH_IS_ON_PATH,
        names.LLMLAT_TTFT_PATH_SELF_TIME,
    }
)
"""What is said of the root as an operation like any other, and not of its trace."""

_Made = dict[str, AttributeValue]

_IN_TIME: Final = attrgetter("start_ns")

# Looked up once: on Python 3.11 each look-up of a member or its value costs as much as a call.
_WORDS: Final = {label: label.value for label in SectionLabel}
_EVIDENCE: Final = {evidence: evidence.value for evidence in Evidence}
_SECTION_OF: Final = {names.LLMLAT_LINK_RELATIONSHIP: LinkRelationship.SECTION_OF.value}
_TOOL: Final = SectionLabel.TOOL
_LANE_NAME: Final = lane_span_name()


def lane(explained: ExplainedTrace, revision: int = 1) -> tuple[Span, ...]:
    """Draw the path to the end of every root.

    Args:
        explained: a finished trace.
        revision: which account of this trace it is; another one has other ids.

    Returns:
        For each root the lane's root, then its sections in time order; the same for any order
        of the trace's spans.
    """
    taken = {span.span_id for span in explained.trace.spans}
    places = _Places(explained.trace)
    drawn: list[Span] = []
    for paths in explained.paths.roots:
        ids = _ids(paths.root, revision, taken)
        said = explained.annotations[paths.root].attributes
        drawn += _Lane(paths, said, places).spans(ids)
    return tuple(drawn)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which sections of a path are drawn.

    Attributes:
        shown: sections in time order.
        hidden_ns: total length of those that are not drawn.
    """

    shown: tuple[Section, ...]
    hidden_ns: int


def select(path: Path) -> Selection:
    """The longest sections, as far as they can be seen at all."""
    whole_ns = path.duration_ns
    smallest_ns = max(1, -(-whole_ns // SMALLEST_PART))
    visible = [section for section in path.sections if section.duration_ns >= smallest_ns]
    if len(visible) > SHOWN:
        visible = sorted(visible, key=_longest_first)[:SHOWN]
    shown = tuple(sorted(visible, key=_IN_TIME))
    return Selection(shown, whole_ns - sum([section.duration_ns for section in shown]))


def _longest_first(section: Section) -> tuple[int, int]:
    return (-section.duration_ns, section.start_ns)


class _Places:
    """Which span of the trace a section lies in."""

    def __init__(self, trace: Trace) -> None:
        self._received = {span.span_id for span in trace.spans}
        self._phases: dict[tuple[Span, str], Span | None] = {}
        for position, phases in trace.phases.items():
            for phase in phases:
                key = (trace.operations[position], str(phase.attributes[names.LLMLAT_PHASE_NAME]))
                # Of several of one name nobody can tell which, where clocks differ.
                self._phases[key] = None if key in self._phases else phase

    def of(self, section: Section) -> Span | None:
        """The phase span that labels its time, else its operation.

        None for a stand-in for a missing root, which nobody could find.
        """
        phase = self._phases.get((section.span, _WORDS[section.label]))
        if phase is not None:
            return phase
        return section.span if section.span.span_id in self._received else None


class _Lane:
    """The lane of one root."""

    def __init__(self, paths: RootPaths, said: Attributes, places: _Places) -> None:
        root = paths.root
        self._paths = paths
        self._said = said
        self._places = places
        self._whole_ns = paths.e2e.duration_ns
        # A section's start counts from the path's own; the root's wall clock says when that was.
        sections = paths.e2e.sections
        self._shift_ns = root.start_ns - sections[0].start_ns if sections else 0
        self._resource = _resource(root)
        self._about: _Made = {
            names.LLMLAT_TRACE_ROOT_SERVICE: cut(root.resource.service),
            names.LLMLAT_TRACE_ROOT_NAME: cut(root.name),
        }

    def spans(self, ids: Iterator[bytes]) -> Iterator[Span]:
        """The lane's root and its sections."""
        root = self._paths.root
        chosen = select(self._paths.e2e)
        lane_id = next(ids)
        yield self._span(
            lane_id,
            root.span_id,
            _LANE_NAME,
            root.start_ns,
            1,
            self._root_attributes(chosen),
            events=self._first_content(),
        )
        for section in chosen.shown:
            yield self._section(section, next(ids), lane_id)

    def _span(
        self,
        span_id: bytes,
        parent_id: bytes,
        name: str,
        start_ns: int,
        duration_ns: int,
        attributes: Attributes,
        *,
        events: Sequence[Event] = (),
        links: Sequence[Link] = (),
    ) -> Span:
        root = self._paths.root
        return Span(
            root.trace_id,
            span_id,
            parent_id,
            cut(name),
            INTERNAL,
            start_ns,
            start_ns + duration_ns,
            self._resource,
            flags=root.flags & _SAMPLED,
            scope=OWN_SCOPE,
            attributes=attributes,
            attribute_count=len(attributes),
            events=events,
            links=links,
        )

    def _section(self, section: Section, span_id: bytes, lane_id: bytes) -> Span:
        return self._span(
            span_id,
            lane_id,
            _name(section),
            section.start_ns + self._shift_ns,
            section.duration_ns,
            {
                names.LLMLAT_SECTION_LABEL: _WORDS[section.label],
                names.LLMLAT_SECTION_DURATION: seconds(section.duration_ns),
                names.LLMLAT_SECTION_SHARE: six_digits(section.duration_ns / self._whole_ns),
                names.LLMLAT_SECTION_EVIDENCE: _EVIDENCE[section.evidence],
                **self._about,
            },
            links=self._link(section),
        )

    def _link(self, section: Section) -> Sequence[Link]:
        span = self._places.of(section)
        if span is None:
            return ()
        return (Link(span.trace_id, span.span_id, _SECTION_OF),)

    def _root_attributes(self, chosen: Selection) -> _Made:
        ledger = self._paths.ledger
        said = self._said.items()
        values: _Made = {
            names.LLMLAT_CONTRACT_VERSION: CONTRACT_VERSION,
            **{key: value for key, value in said if key not in _OF_THE_OPERATION},
            names.LLMLAT_CRITICAL_PATH_SECTIONS: self._listed(),
            names.LLMLAT_CRITICAL_PATH_SHOWN_SECTIONS: len(chosen.shown),
            names.LLMLAT_CRITICAL_PATH_TOTAL_SECTIONS: len(self._paths.e2e.sections),
            names.LLMLAT_CRITICAL_PATH_HIDDEN_DURATION: seconds(chosen.hidden_ns),
            names.LLMLAT_CRITICAL_PATH_TOTAL_WORK: seconds(ledger.work_ns),
            names.LLMLAT_CRITICAL_PATH_BUSY: seconds(ledger.busy_ns),
            names.LLMLAT_CRITICAL_PATH_OVERLAPPED: seconds(ledger.overlapped_ns),
            **self._about,
        }
        if ledger.retry_waste_ns is not None:
            values[names.LLMLAT_CRITICAL_PATH_RETRY_WASTE] = seconds(ledger.retry_waste_ns)
        return values

    def _first_content(self) -> Sequence[Event]:
        """Absent where it was counted on another clock: nobody knows where that is on this one."""
        ttft, root = self._paths.ttft, self._paths.root
        if ttft is None or ttft.root is not root:
            return ()
        copied = (names.LLMLAT_TTFT_PATH_SUMMARY, names.LLMLAT_TTFT_PATH_DURATION)
        said = {key: self._said[key] for key in copied}
        return (Event(FIRST_CONTENT, root.start_ns + ttft.duration_ns, said),)

    def _listed(self) -> tuple[str, ...]:
        """Every section, a text each."""
        path, shift_ns = self._paths.e2e, self._shift_ns
        if len(path.sections) > LISTED:
            return tuple([_line(*entry, shift_ns) for entry in entries(path)])
        return tuple(
            [
                _line(each.start_ns, each.label, each.span.span_id, each.duration_ns, shift_ns)
                for each in path.sections
            ]
        )


def _line(
    start_ns: int, label: SectionLabel, span_id: bytes, duration_ns: int, shift_ns: int
) -> str:
    return f"{_WORDS[label]} {span_id.hex()} {start_ns + shift_ns} {duration_ns}"


class Entry(NamedTuple):
    """A section in the list of all, or several that were put together: then the first's start."""

    start_ns: int
    label: SectionLabel
    span_id: bytes
    duration_ns: int


def entries(path: Path) -> list[Entry]:
    """All sections in time order; of many, the shorter ones put together, and nothing lost.

    The longest stay as they are. The others are added up by operation and label, and where that
    is not enough the smallest of these sums by label, under the id of the path's root.
    """
    listed = [Entry(s.start_ns, s.label, s.span.span_id, s.duration_ns) for s in path.sections]
    if len(listed) <= LISTED:
        return listed
    listed.sort(key=_larger_first)
    singly, rest = listed[:LISTED_SINGLY], _summed(listed[LISTED_SINGLY:])
    if len(singly) + len(rest) > LISTED:
        rest.sort(key=_larger_first)
        smallest = [e._replace(span_id=path.root.span_id) for e in rest[LISTED_BY_OPERATION:]]
        rest = [*rest[:LISTED_BY_OPERATION], *_summed(smallest)]
    return sorted([*singly, *rest])


def _larger_first(entry: Entry) -> tuple[int, Entry]:
    return (-entry.duration_ns, entry)


def _summed(several: Iterable[Entry]) -> list[Entry]:
    """Entries of one operation and label as one, from the first of them on."""
    sums: dict[tuple[bytes, SectionLabel], Entry] = {}
    for entry in several:
        key = (entry.span_id, entry.label)
        other = sums.get(key)
        if other is not None:
            start_ns = min(other.start_ns, entry.start_ns)
            duration_ns = other.duration_ns + entry.duration_ns
            entry = entry._replace(start_ns=start_ns, duration_ns=duration_ns)  # noqa: PLW2901
        sums[key] = entry
    return list(sums.values())


def _ids(root: Span, revision: int, taken: set[bytes]) -> Iterator[bytes]:
    """The ids of a lane, one a position; each is added to those that are taken."""
    origin = sha256(b"%b %b %d" % (root.trace_id, root.span_id, revision))
    position = 0
    while True:
        digest = origin.copy()
        digest.update(b" %d" % position)
        span_id = digest.digest()[:_ID_BYTES]
        while span_id == _NO_ID or span_id in taken:
            span_id = sha256(span_id).digest()[:_ID_BYTES]
        taken.add(span_id)
        yield span_id
        position += 1


def _name(section: Section) -> str:
    """`queue vllm`, `unobserved support-agent`, and of a tool which one: `tool get_orders`."""
    of = section.span.resource.service
    if section.label is _TOOL:
        tool = section.span.attributes.get(names.GEN_AI_TOOL_NAME)
        of = tool if isinstance(tool, str) and tool else of
    return section_span_name(_WORDS[section.label], of)


def _resource(root: Span) -> Resource:
    host = root.resource.attributes.get(names.HOST_ID)
    return _resource_on(host if isinstance(host, str) else "", root.resource.domain)


@lru_cache(maxsize=64)
def _resource_on(host: str, domain: str) -> Resource:
    """One for all lanes of a host, so that what is made of it is made once."""
    said: _Made = {names.SERVICE_NAME: SERVICE}
    if host:
        said[names.HOST_ID] = cut(host)
    return Resource(said, service=SERVICE, process=OWN_SCOPE, domain=domain, weak=False)
