"""Finished traces as one file: for each root its paths on top, then a process for each service.

    critical path                  |queue vllm|decode vllm|tool get_orders|
    path to first useful content   |queue vllm|decode|
    adviser                        |invoke_agent adviser                  |
                                     |chat gemma         |execute_tool    |
    vllm (clock gpu-1)             |queue     |decode     |       where the path puts them

Each root counts from its own start. Of an operation with another clock only what a path says of it
has a place there: it stands in a process of its own that names that clock, and the rest is counted,
not drawn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from llmlat_processor.model import ExplainedTrace, Finding, Path, RootPaths, Section, Span
from llmlat_processor.views.perfetto.events import Args, Events, Thread, Value
from llmlat_processor.views.perfetto.threads import NOBODY, Slice, outer_first, thread_of_each
from llmlat_processor.views.waterfall.placement import Placement
from llmlat_semconv import attributes as names
from llmlat_semconv.spans import lane_span_name, section_span_name
from llmlat_semconv.values import Evidence, SectionLabel

Document: TypeAlias = dict[str, object]

TTFT_PATH: Final = "path to first useful content"
FIRST_CONTENT: Final = "first useful content"
NO_SERVICE: Final = "(no service)"

_PATH, _OPERATION, _PHASE, _FINDING = "path", "operation", "phase", "finding"


def chrome_trace(traces: Sequence[ExplainedTrace]) -> Document:
    """Draw every root of every trace.

    Args:
        traces: finished traces; each root of each gets processes of its own.

    Returns:
        JSON types in the shape of Chrome's trace event format. `otherData` says of each root
        what has no place on a time line: when it started by the wall clock, whether it is
        complete, what was found, and how many of its operations are not drawn.
    """
    events = Events()
    stories = [(trace, paths) for trace in traces for paths in trace.paths.roots]
    told = [_Story(events, *story, alone=len(stories) == 1).told() for story in stories]
    return {
        "displayTimeUnit": "ms",
        "traceEvents": events.listed,
        "otherData": {"producer": "llmlat", "roots": told},
    }


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A slice with what is written on it."""

    place: Slice
    category: str
    name: str
    span: Span
    args: Args


class _Story:
    """One root of one trace."""

    def __init__(
        self, events: Events, explained: ExplainedTrace, paths: RootPaths, *, alone: bool
    ) -> None:
        self._events, self._explained, self._paths = events, explained, paths
        self._placed = Placement(explained, paths)
        self._suffix = "" if alone else f" · {paths.root.name} {explained.trace.trace_id.hex()[:8]}"
        self._members, self._rank = self._in_drawing_order()
        self._accounts = _accounts(paths)
        self._threads: dict[Span, tuple[Thread, int]] = {}
        self._without_place = 0
        by_process = self._by_process()
        starts = [one.place.start_ns for group in by_process.values() for one in group]
        self._shift_ns = -min(starts, default=0) if min(starts, default=0) < 0 else 0
        self._draw_paths()
        for process, drawn in by_process.items():
            self._draw_process(process, drawn)
        self._draw_findings()

    def told(self) -> Document:
        """What has no place on the time line."""
        root, absence = self._paths.root, self._paths.ttft_absence
        trace = self._explained.trace
        return {
            "trace_id": trace.trace_id.hex(),
            "root_span_id": root.span_id.hex(),
            "root": root.name,
            "root_start_unix_ns": root.start_ns,
            "root_start_in_file_ns": self._shift_ns,
            "complete": trace.complete,
            "ttft_absence": absence.value if absence else None,
            "operations_without_a_place": self._without_place,
            "findings": [
                {"kind": finding.kind.value, **_finding_args(finding)}
                for finding in self._explained.findings
            ],
        }

    def _in_drawing_order(self) -> tuple[list[int], Mapping[int, int]]:
        """The root and all below it, parents before children, and the position of each."""
        members, waiting = [], [self._placed.root]
        while waiting:
            member = waiting.pop()
            members.append(member)
            waiting.extend(reversed(self._placed.children.get(member, ())))
        return members, {member: rank for rank, member in enumerate(members)}

    def _by_process(self) -> Mapping[tuple[str, str], list[_Drawn]]:
        """What is drawn in each process, which is a service and the name of a foreign clock."""
        found: dict[tuple[str, str], list[_Drawn]] = defaultdict(list)
        for member in self._members:
            span = self._placed.operation(member)
            service = span.resource.service or NO_SERVICE
            if self._placed.own_stretch(member):
                found[service, ""].extend(self._operation(member))
                continue
            drawn = [self._where_the_path_was(section) for section in self._sections_of(span)]
            self._without_place += not drawn
            if drawn:
                found[service, self._explained.aligned.domains[member]].extend(drawn)
        return found

    def _operation(self, member: int) -> Iterator[_Drawn]:
        """An operation on the root's clock, and its phases."""
        span, placed = self._placed.operation(member), self._placed
        (own,) = placed.own_stretch(member)
        rank, above = 2 * self._rank[member], placed.parent(member)
        if above != NOBODY and not self._share_a_process(above, member):
            above = NOBODY
        place = Slice(own.start_ns, own.end_ns, rank, member, above)
        yield _Drawn(place, _OPERATION, span.name, span, self._operation_args(member))
        for position, phase in enumerate(placed.phases(member)):
            for stretch in placed.phase_stretch(member, position):
                inside = Slice(stretch.start_ns, stretch.end_ns, rank + 1, member, member)
                yield _Drawn(inside, _PHASE, _phase_name(phase), phase, _phase_args(phase, inside))

    def _share_a_process(self, above: int, below: int) -> bool:
        one, other = self._placed.operation(above), self._placed.operation(below)
        return one.resource.service == other.resource.service and bool(
            self._placed.own_stretch(above)
        )

    def _sections_of(self, span: Span) -> Sequence[Section]:
        """Where the path to the end was in it; else, where the other one was, if it counts here."""
        if span in self._placed.e2e:
            return self._placed.e2e[span]
        return self._placed.ttft.get(span, ()) if self._placed.content_ns is not None else ()

    def _where_the_path_was(self, section: Section) -> _Drawn:
        start_ns = self._from_root_start(section)
        place = Slice(start_ns, start_ns + section.duration_ns, 0)
        name = f"{section.label.value} ({section.span.name})"
        return _Drawn(place, _PATH, name, section.span, self._section_args(section))

    def _from_root_start(self, section: Section) -> int:
        sections = self._paths.e2e.sections or (section,)
        return section.start_ns - sections[0].start_ns

    def _draw_paths(self) -> None:
        self._draw_path(lane_span_name(), self._paths.e2e)
        ttft = self._paths.ttft
        if ttft is not None and self._placed.content_ns is not None:
            self._draw_path(TTFT_PATH, ttft)

    def _draw_path(self, name: str, path: Path) -> None:
        thread = self._events.thread(self._events.process(name + self._suffix), name)
        for section in path.sections:
            at_ns = self._from_root_start(section) + self._shift_ns
            args = self._section_args(section)
            self._events.slice(
                thread, _PATH, _section_name(section), at_ns, section.duration_ns, args
            )
        if self._placed.content_ns is not None:
            at_ns = self._placed.content_ns + self._shift_ns
            args = {"after_ns": self._placed.content_ns}
            self._events.instant(thread, _PATH, FIRST_CONTENT, at_ns, args)

    def _draw_process(self, process: tuple[str, str], drawn: Sequence[_Drawn]) -> None:
        service, clock = process
        name = f"{service} (clock {clock})" if clock else service
        labels = "placed by durations, where a path was" if clock else ""
        pid = self._events.process(name + self._suffix, labels)
        ordered = sorted(drawn, key=lambda one: outer_first(one.place))
        numbers = thread_of_each([one.place for one in ordered])
        threads = [
            self._events.thread(pid, f"{service} {number}") for number in range(1, max(numbers) + 2)
        ]
        for one, number in zip(ordered, numbers, strict=True):
            start_ns, end_ns = one.place.start_ns, one.place.end_ns
            at_ns, thread = start_ns + self._shift_ns, threads[number]
            self._events.slice(thread, one.category, one.name, at_ns, end_ns - start_ns, one.args)
            self._threads.setdefault(one.span, (thread, at_ns))

    def _draw_findings(self) -> None:
        """On each witness that is drawn, at its start."""
        by_id: dict[bytes, list[tuple[Thread, int]]] = defaultdict(list)
        for span, place in self._threads.items():
            by_id[span.span_id].append(place)
        for finding in self._explained.findings:
            for witness in finding.witnesses or (finding.of,):
                for thread, at_ns in by_id.get(witness, ()):
                    args = _finding_args(finding)
                    self._events.instant(thread, _FINDING, finding.kind.value, at_ns, args)

    def _section_args(self, section: Section) -> Args:
        return {
            "label": section.label.value,
            "service": section.span.resource.service,
            "operation": section.span.name,
            "span_id": section.span.span_id.hex(),
            "evidence": section.evidence.value,
            "start_ns": self._from_root_start(section),
            "duration_ns": section.duration_ns,
        }

    def _operation_args(self, member: int) -> Args:
        span = self._placed.operation(member)
        parent = self._placed.parent(member)
        (own,) = self._placed.own_stretch(member)
        return {
            "span_id": span.span_id.hex(),
            "parent_id": None if parent < 0 else self._placed.operation(parent).span_id.hex(),
            "is_error": span.is_error,
            "start_ns": own.start_ns,
            "duration_ns": span.duration_ns,
            **self._accounts.get(span, {}),
        }


def _accounts(paths: RootPaths) -> Mapping[Span, dict[str, Value]]:
    """What each operation answers for; the keys are those of the JSON document."""
    accounts: dict[Span, dict[str, Value]] = defaultdict(dict)
    for key, amounts in (
        ("e2e_self_ns", paths.self_times_ns),
        ("ttft_self_ns", paths.ttft_self_times_ns),
        ("slack_ns", paths.slacks_ns),
        ("hidden_ns", paths.ledger.hidden_ns),
        ("trailing_ns", paths.ledger.trailing_ns),
    ):
        for span, amount in amounts.items():
            accounts[span][key] = amount
    return accounts


def _section_name(section: Section) -> str:
    """As on the lane: `queue vllm`, and of a tool which one it was."""
    tool = section.span.attributes.get(names.GEN_AI_TOOL_NAME)
    is_tool = section.label is SectionLabel.TOOL and isinstance(tool, str) and tool
    of = str(tool) if is_tool else section.span.resource.service
    return section_span_name(section.label.value, of)


def _phase_name(phase: Span) -> str:
    return str(phase.attributes.get(names.LLMLAT_PHASE_NAME))


def _phase_args(phase: Span, place: Slice) -> Args:
    evidence = phase.attributes.get(names.LLMLAT_PHASE_EVIDENCE)
    return {
        "span_id": phase.span_id.hex(),
        "evidence": evidence if isinstance(evidence, str) else Evidence.MEASURED.value,
        "start_ns": place.start_ns,
        "duration_ns": place.end_ns - place.start_ns,
    }


def _finding_args(finding: Finding) -> dict[str, Value]:
    return {
        "of": finding.of.hex(),
        "amount_ns": finding.amount_ns,
        "epsilon_ns": finding.epsilon_ns,
        "witnesses": [witness.hex() for witness in finding.witnesses],
        "note": finding.note,
    }
