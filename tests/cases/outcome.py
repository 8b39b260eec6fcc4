"""What the processor said about a case, in the words and the unit of the case file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from llmlat_processor.model import ExplainedTrace, Finding, Interval, Path, RootPaths, Section
from llmlat_processor.offsets import between
from llmlat_processor.stages.critical_path.what_if import what_if
from llmlat_semconv.phases import Phase
from llmlat_semconv.values import FindingKind, SectionLabel
from tests.cases.case_format import Case, Json
from tests.cases.case_spans import id_bytes, name_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """One explained case. `root` names a root where there are several, `which` a path of it."""

    case: Case
    explained: ExplainedTrace

    def root(self, root: str | None) -> RootPaths:
        """The paths of one root; without a name, of the only one."""
        every = self.explained.paths.roots
        found = [r for r in every if root is None or r.root.span_id == id_bytes(root)]
        if len(found) != 1:
            raise LookupError(f"not one root {root or ''}: there are {[r.root for r in every]}")
        return found[0]

    def path(self, which: str, root: str | None) -> Path | None:
        """The path to the root's end (`e2e`) or to the first useful content (`ttft`)."""
        paths = self.root(root)
        return paths.e2e if which == "e2e" else paths.ttft

    def sections(self, which: str, root: str | None) -> Sequence[Section]:
        """The sections of a path in time order; none where there is no path."""
        path = self.path(which, root)
        return path.sections if path else ()

    def section_line(self, section: Section) -> str:
        """`of label amount`."""
        return f"{_of(section)} {self.case.amount(section.duration_ns)}"

    def evidence_line(self, section: Section) -> str:
        """`of label evidence`."""
        return f"{_of(section)} {section.evidence.value}"

    def placed_line(self, section: Section) -> str:
        """`of label start..end`, on the root's clock."""
        start = self.case.stamp(section.start_ns)
        end = self.case.stamp(section.start_ns + section.duration_ns)
        return f"{_of(section)} {start}..{end}"

    def total(self, which: str, root: str | None) -> str:
        """Length of a path."""
        path = self.path(which, root)
        return self.case.amount(path.duration_ns) if path else "no path"

    def totals(self, which: str, root: str | None) -> list[str]:
        """`label amount`, sorted."""
        path = self.path(which, root)
        totals = path.totals_ns if path else {}
        return self._amounts((label.value, ns) for label, ns in totals.items())

    def contributions(self, root: str | None) -> list[str]:
        """`of/label amount` on the end-to-end path, sorted."""
        totals_ns: dict[str, int] = {}
        for section in self.root(root).e2e.sections:
            key = _of(section).replace(" ", "/")
            totals_ns[key] = totals_ns.get(key, 0) + section.duration_ns
        return self._amounts(totals_ns.items())

    def transit(self, root: str | None) -> str:
        """Both legs together, on the end-to-end path."""
        return self.case.amount(self.root(root).e2e.totals_ns.get(SectionLabel.TRANSIT, 0))

    def edge(self, edge: str, root: str | None) -> str:
        """How `before > after` is known on the end-to-end path."""
        before, after = map(id_bytes, edge.split(" > "))
        known = [e for e in self.root(root).e2e.edges if (e.before, e.after) == (before, after)]
        return known[0].evidence if known else "no such edge"

    def findings(
        self,
        with_amount: frozenset[tuple[str, str]],
        with_interval: frozenset[tuple[str, str]] = frozenset(),
    ) -> list[str]:
        """`kind of span`, sorted; with amount or interval for those of which a case states one."""
        lines = []
        for found in self.explained.findings:
            about = (found.kind.value, name_of(found.of))
            amount = self._amount(found) if about in with_amount else ""
            interval = self._interval(found) if about in with_interval else ""
            lines.append(f"{about[0]} of {about[1]}{amount}{interval}")
        return sorted(lines)

    def violations(self, with_amount: frozenset[str]) -> list[str]:
        """All findings that clocks do not explain, sorted.

        They read `kind of span`, or `kind over domains` where more than two prove it together.
        """
        lines = []
        for found in self.explained.findings:
            if found.kind is FindingKind.APPARENT_NEGATIVE_NETWORK:
                continue
            over = sorted({message.sender for message in found.proof})
            about = f"over {', '.join(over)}" if len(over) > 2 else f"of {name_of(found.of)}"
            amount = self._amount(found) if found.kind.value in with_amount else ""
            lines.append(f"{found.kind.value} {about}{amount}")
        return sorted(lines)

    def kinds(self) -> list[str]:
        """What kinds of findings there are, sorted."""
        return sorted({found.kind.value for found in self.explained.findings})

    def _amount(self, found: Finding) -> str:
        return " no amount" if found.amount_ns is None else f" {self.case.amount(found.amount_ns)}"

    def _interval(self, found: Finding) -> str:
        return " no interval" if found.interval is None else f" in {self._ends(found.interval)}"

    def _ends(self, interval: Interval) -> str:
        low, high = ("?" if end is None else self.case.amount(end) for end in interval)
        return f"{low}..{high}"

    def offset(self, pair: str) -> str:
        """`low..high` of `a->b`: the clock of the second minus that of the first."""
        one, other = map(self._domain, pair.split("->"))
        return self._ends(between(self.explained.aligned.clocks, one, other))

    def _domain(self, name: str) -> str:
        """That of the operation of this name; without one, the name is a domain's."""
        aligned = self.explained.aligned
        known = zip(aligned.trace.operations, aligned.domains, strict=True)
        return next((d for span, d in known if span.span_id == id_bytes(name)), name)

    def offsets(self) -> list[tuple[str, str]]:
        """Of every clock but the first root's: its domain, and `low..high` to that one."""
        return [(domain, self._ends(interval)) for domain, interval in self._intervals()]

    def widths(self) -> list[str]:
        """The same as `high - low`, of those that are bounded on both sides."""
        return [
            self.case.amount(high - low)
            for _, (low, high) in self._intervals()
            if low is not None and high is not None
        ]

    def least_offsets(self) -> list[str]:
        """The same as the least amount by which the clocks differ, whichever is ahead."""
        return [
            self.case.amount(max(low, -high, 0))
            for _, (low, high) in self._intervals()
            if low is not None and high is not None
        ]

    def _intervals(self) -> list[tuple[str, Interval]]:
        clocks = self.explained.aligned.clocks
        others = [offset for name, offset in clocks.offsets.items() if name != clocks.reference]
        return [(offset.domain, offset.interval) for offset in others]

    def is_on_a_path(self, name: str) -> bool:
        """True if a section of any path of any root is this span's."""
        return any(
            section.span.span_id == id_bytes(name)
            for root in self.explained.paths.roots
            for path in (root.e2e, root.ttft)
            for section in (path.sections if path else ())
        )

    def slack(self, name: str) -> str:
        """Slack of a span under any root; `none` where it has none."""
        for root in self.explained.paths.roots:
            for span, slack_ns in root.slacks_ns.items():
                if span.span_id == id_bytes(name):
                    return self.case.amount(slack_ns)
        return "none"

    def hidden(self, name: str) -> str:
        """How much of an operation is on no end-to-end path."""
        operations = self.explained.trace.operations
        span = next(op for op in operations if op.span_id == id_bytes(name))
        seen_ns = [r.self_times_ns.get(span, 0) for r in self.explained.paths.roots]
        return self.case.amount(span.duration_ns - sum(seen_ns))

    def retry_waste(self, root: str | None) -> str:
        """Time of failed attempts on the path."""
        waste_ns = self.root(root).ledger.retry_waste_ns
        return "absent" if waste_ns is None else self.case.amount(waste_ns)

    def ledger(self, root: str | None) -> list[str]:
        """Work, its union and what overlapped, sorted."""
        ledger = self.root(root).ledger
        busy, work = ("busy_union", ledger.busy_ns), ("work", ledger.work_ns)
        return self._amounts([busy, work, ("overlapped", ledger.overlapped_ns)])

    def what_if(self, change: Json) -> list[str]:
        """What a change (`of`, `phase`, `factor` or `by`, as in a case) does to the only root."""
        root = self.root(None)
        result = what_if(
            self.explained.aligned,
            root.root,
            phase=Phase(change["phase"]) if "phase" in change else None,
            span_id=id_bytes(change["of"]) if "of" in change else None,
            factor=change.get("factor"),
            by_ns=self.case.duration_ns(change["by"]) if "by" in change else None,
        )
        end_ns = root.e2e.duration_ns
        low_ns, high_ns = result.saves_low_ns, result.saves_high_ns
        amount = self.case.amount
        return [
            f"saves {amount(result.saves_ns)}",
            f"bound {amount(low_ns)} .. {amount(high_ns)}",
            f"end {amount(end_ns - result.saves_ns)}",
            f"ends {amount(end_ns - high_ns)} .. {amount(end_ns - low_ns)}",
        ]

    def _amounts(self, amounts_ns: Iterable[tuple[str, int]]) -> list[str]:
        return sorted(f"{key} {self.case.amount(ns)}" for key, ns in amounts_ns)


def _of(section: Section) -> str:
    return f"{name_of(section.span.span_id)} {section.label.value}"
