"""What is written back: attributes for operations and roots, findings as events on witnesses.

Nothing received is changed; all of this is added. An operation off the path says so by silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from llmlat_processor.model import (
    AlignedTrace,
    Annotation,
    AttributeValue,
    CriticalPaths,
    Event,
    ExplainedTrace,
    Finding,
    Path,
    RootPaths,
    Span,
)
from llmlat_processor.written import cut, seconds, six_digits
from llmlat_semconv import attributes as names
from llmlat_semconv import events
from llmlat_semconv.phases import (
    critical_path_duration_attribute,
    finding_attribute,
    ttft_path_duration_attribute,
)
from llmlat_semconv.values import FindingKind, SectionLabel
from llmlat_semconv.version import CONTRACT_VERSION

ALGORITHM: Final = f"llmlat/{CONTRACT_VERSION}"
"""Name of the rules by which the paths were found."""

SUMMED_UP: Final = 5
"""So many contributions are named in a summary; the attributes have them all."""

MOST_TOLD: Final = 32
"""So many findings are told on one span: a parent may be a witness against thousands of children,
each of which is told its own, and a trace that has grown too large is read by nobody."""

_TOO_LONG: Final = frozenset(
    (
        FindingKind.NEGATIVE_TRANSIT,
        FindingKind.OUTLIVED_CANCELLED_PARENT,
        FindingKind.OUTLIVED_PARENT,
    )
)

_OF_ONE_CALL: Final = frozenset(
    (FindingKind.APPARENT_NEGATIVE_NETWORK, FindingKind.NEGATIVE_TRANSIT)
)

_WORDS: Final = {label: label.value for label in SectionLabel}  # a look-up of a value is slow

_Added = dict[str, AttributeValue]


def annotate(aligned: AlignedTrace, paths: CriticalPaths) -> ExplainedTrace:
    """Say of every operation what the paths say of it, and of every witness what it proves."""
    clocks = (*_clock_findings(aligned, paths), *_with_proofs(aligned, paths))
    findings = (*aligned.trace.findings, *clocks)
    added: dict[Span, _Added] = {}
    for root in paths.roots:
        _add_self_times(root, added)
        _of(added, root.root).update(_root_attributes(aligned, root, findings))
    witnessed = _events(aligned, findings) if findings else {}
    annotations = {span: Annotation(values) for span, values in added.items()}
    for span, found in witnessed.items():
        annotations[span] = Annotation(added.get(span, {}), found)
    return ExplainedTrace(aligned, paths, findings, annotations)


def with_findings(explained: ExplainedTrace, more: Sequence[Finding]) -> ExplainedTrace:
    """The same with findings that only other traces could show, told as the others are."""
    findings = (*explained.findings, *more)
    annotations = dict(explained.annotations)
    added: dict[Span, _Added] = {
        root.root: {finding_attribute(finding.kind): True for finding in more}
        for root in explained.paths.roots
    }
    witnessed = _events(explained.aligned, tuple(more))
    for span in (*added, *(span for span in witnessed if span not in added)):
        said = annotations.get(span, Annotation({}))
        events_ = (*said.events, *witnessed.get(span, ()))[:MOST_TOLD]
        annotations[span] = Annotation({**said.attributes, **added.get(span, {})}, events_)
    return replace(explained, findings=findings, annotations=annotations)


def _clock_findings(aligned: AlignedTrace, paths: CriticalPaths) -> Iterator[Finding]:
    """What the clocks show and the paths have not told already, from the better account.

    Where a callee took longer than its caller waited, both find out; no offset makes it fit then.
    """
    told = {finding.of for finding in paths.findings if finding.kind in _TOO_LONG}
    for finding in aligned.findings:
        if finding.kind not in _OF_ONE_CALL or finding.of not in told:
            yield finding


def _with_proofs(aligned: AlignedTrace, paths: CriticalPaths) -> Iterator[Finding]:
    """What the paths have told; where the clocks have told the same, with the messages for it."""
    proofs = {finding.of: finding.proof for finding in aligned.findings}
    for finding in paths.findings:
        if finding.kind is FindingKind.NEGATIVE_TRANSIT and proofs.get(finding.of):
            yield replace(finding, proof=proofs[finding.of])
        else:
            yield finding


def _of(added: dict[Span, _Added], span: Span) -> _Added:
    return added.setdefault(span, {})


def _add_self_times(root: RootPaths, added: dict[Span, _Added]) -> None:
    whole_ns = root.e2e.duration_ns or 1
    for span, size in root.self_times_ns.items():
        added[span] = {
            names.LLMLAT_CRITICAL_PATH_IS_ON_PATH: True,
            names.LLMLAT_CRITICAL_PATH_SELF_TIME: seconds(size),
            names.LLMLAT_CRITICAL_PATH_SHARE: six_digits(size / whole_ns),
        }
    for span, size in root.ttft_self_times_ns.items():
        values = _of(added, span)
        values[names.LLMLAT_TTFT_PATH_IS_ON_PATH] = True
        values[names.LLMLAT_TTFT_PATH_SELF_TIME] = seconds(size)
    for span, size in root.slacks_ns.items():
        _of(added, span)[names.LLMLAT_CRITICAL_PATH_SLACK] = seconds(size)


def _root_attributes(
    aligned: AlignedTrace, root: RootPaths, findings: tuple[Finding, ...]
) -> _Added:
    values: _Added = {
        names.LLMLAT_CRITICAL_PATH_ALGORITHM: ALGORITHM,
        names.LLMLAT_CRITICAL_PATH_COMPLETE: aligned.trace.complete,
        names.LLMLAT_CRITICAL_PATH_AMBIGUOUS: bool(root.e2e.alternatives),
        names.LLMLAT_CRITICAL_PATH_EPSILON: max(aligned.resolutions_ns.values(), default=0) / 1e9,
        names.LLMLAT_CRITICAL_PATH_TAIL: aligned.trace.assumptions.tail_ns / 1e9,
        names.LLMLAT_CRITICAL_PATH_DURATION: seconds(root.e2e.duration_ns),
        names.LLMLAT_CRITICAL_PATH_SUMMARY: summary(root.e2e),
    }
    for label, size in root.e2e.totals_ns.items():  # the largest first
        values.setdefault(names.LLMLAT_CRITICAL_PATH_DOMINANT_PHASE, _WORDS[label])
        values[critical_path_duration_attribute(label)] = seconds(size)
    values.update(_ttft_attributes(root))
    values.update({finding_attribute(finding.kind): True for finding in findings})
    return values


def _ttft_attributes(root: RootPaths) -> _Added:
    if root.ttft is None:
        absence = root.ttft_absence
        return {names.LLMLAT_TTFT_PATH_ABSENT_REASON: absence.value if absence else None}
    values: _Added = {
        names.LLMLAT_TTFT_PATH_AMBIGUOUS: bool(root.ttft.alternatives),
        names.LLMLAT_TTFT_PATH_DURATION: seconds(root.ttft.duration_ns),
        names.LLMLAT_TTFT_PATH_SUMMARY: summary(root.ttft),
    }
    for label, size in root.ttft.totals_ns.items():  # the largest first
        values.setdefault(names.LLMLAT_TTFT_PATH_DOMINANT_PHASE, _WORDS[label])
        values[ttft_path_duration_attribute(label)] = seconds(size)
    if root.ttft.root is not root.root:
        values[names.LLMLAT_TTFT_PATH_ROOT] = root.ttft.root.span_id.hex()
    return values


def summary(path: Path) -> str:
    """One line that a person reads: `decode vllm 3.4 s (53 %), queue vllm 0.92 s (14 %)`."""
    total = path.duration_ns
    largest = path.largest()
    words = [
        f"{_WORDS[label]} {service} {_two_digits(size)} ({100 * size / total:.0f} %)"
        for label, service, size in largest[:SUMMED_UP]
    ]
    if len(largest) > SUMMED_UP:
        words.append("...")
    return cut(", ".join(words))


def _two_digits(duration_ns: int) -> str:
    """Two significant digits, all of them before the point where there are more; no exponent."""
    value, unit = (duration_ns / 1e9, "s") if duration_ns >= 10**8 else (duration_ns / 1e6, "ms")
    if value >= 99.5:
        return f"{value:.0f} {unit}"
    if value >= 10:
        return f"{value:.0f} {unit}"
    if value >= 1:
        digits = f"{value:.1f}"
    elif value >= 0.1:
        digits = f"{value:.2f}"
    else:
        digits = f"{float(f'{value:.2g}'):.6f}"
    return f"{digits.rstrip('0').rstrip('.')} {unit}"


def _events(aligned: AlignedTrace, findings: tuple[Finding, ...]) -> Mapping[Span, list[Event]]:
    """One event per finding on each witness, at the start of the span: always inside it."""
    named = {witness for finding in findings for witness in finding.witnesses or (finding.of,)}
    by_id: dict[bytes, list[Span]] = {}
    for span in aligned.trace.spans:
        if span.span_id in named:
            by_id.setdefault(span.span_id, []).append(span)
    witnessed: dict[Span, list[Event]] = {}
    for finding in findings:
        attributes = _finding_attributes(finding)
        for witness in finding.witnesses or (finding.of,):
            for span in by_id.get(witness, ()):
                said = witnessed.setdefault(span, [])
                if len(said) < MOST_TOLD:
                    said.append(Event(events.LLMLAT_FINDING, span.start_ns, attributes))
    return witnessed


def _finding_attributes(finding: Finding) -> _Added:
    values: _Added = {
        names.LLMLAT_FINDING_KIND: finding.kind.value,
        names.LLMLAT_FINDING_WITNESSES: [witness.hex() for witness in finding.witnesses],
    }
    if finding.amount_ns is not None:
        values[names.LLMLAT_FINDING_AMOUNT] = seconds(finding.amount_ns)
    if finding.epsilon_ns is not None:
        values[names.LLMLAT_FINDING_EPSILON] = finding.epsilon_ns / 1e9
    if finding.interval is not None:
        low, high = finding.interval
        if low is not None:
            values[names.LLMLAT_FINDING_INTERVAL_LOW] = seconds(low)
        if high is not None:
            values[names.LLMLAT_FINDING_INTERVAL_HIGH] = seconds(high)
    return values
