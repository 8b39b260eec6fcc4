"""One call between two hosts, of which every instant is known: its interval by the rules' formula.

low  = the greatest of what the callee put out less when its caller had it
high = callee's start less first byte sent
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from llmlat_processor.model import Assumptions, Interval
from llmlat_processor.stages.align_clocks import align_clocks
from llmlat_processor.stages.assemble import assemble
from tests.cases.case_format import Case, Json
from tests.cases.case_spans import spans_of
from tests.properties.clock_checks import violations

APART: Any = st.integers(-1_000, 1_000)


@dataclass(frozen=True, slots=True)
class Stream:
    """Instants of one streamed call, on true time; the callee's clock is `apart` ahead of it."""

    instants: tuple[int, ...]
    apart: int

    @property
    def caller(self) -> list[Json]:
        """The caller's spans, a root that lasts longer included."""
        send, sent, first, content, last, closed = self._at(0, 2, 4, 6, 9, 10)
        root = _span("r", None, -5, closed + 50)
        call = _span("c", "r", -1, closed, kind="client", op="chat", boundary="client")
        call |= {"stream": True, "first_useful_content": content}
        phases = {"send": (send, sent), "wait": (sent, first), "first_content": (first, content)}
        phases |= {"stream": (content, last), "finalize": (last, closed)}
        return [root, call, *_phases("c", phases, 0)]

    @property
    def engine(self) -> list[Json]:
        """The engine's, which goes on for a while after its last output."""
        start, scheduled, token, last, text = self._at(1, 3, 5, 7, 8)
        span = _span("e", "c", start, text + 30, self.apart, kind="server", boundary="engine")
        phases = {"queue": (start, scheduled), "prefill": (scheduled, token)}
        phases |= {"decode": (token, last), "detokenize": (last, text)}
        return [span, *_phases("e", phases, self.apart)]

    @property
    def gateway(self) -> list[Json]:
        """A gateway's without its call upstream."""
        start, admitted, heard, flushed = self._at(1, 3, 8, 10)
        span = _span("g", "c", start, flushed + 30, self.apart, kind="server", boundary="gateway")
        phases = {"admission": (start, admitted), "relay": (heard, flushed)}
        return [span, *_phases("g", phases, self.apart)]

    def _at(self, *numbers: int) -> list[int]:
        return [self.instants[number] for number in numbers]


def _span(
    name: str, parent: str | None, start: int, end: int, apart: int = 0, **keys: Any
) -> dict[str, Any]:
    host = "B" if name in "eg" else "A"
    raw = {"id": name, "parent": parent, "start": start + apart, "end": end + apart}
    return raw | {"host": host} | keys


def _phases(of: str, phases: dict[str, tuple[int, int]], apart: int) -> list[Json]:
    return [
        {"id": f"{of}.{name}", "parent": of, "phase": name, "start": s + apart, "end": e + apart}
        for name, (s, e) in phases.items()
    ]


def _interval(spans: Sequence[Json], links: Sequence[Json] = ()) -> Interval:
    """Of the callee's clock less the caller's, with nothing granted."""
    case = Case("example", "call", "ns", spans=spans, links=links)
    found = align_clocks(assemble(spans_of(case), Assumptions(0, 0, None, 0)))
    assert violations(found.findings) == []
    return found.clocks.offsets["B"].interval


streams = st.builds(
    Stream,
    st.lists(st.integers(0, 200), min_size=11, max_size=11).map(sorted).map(tuple),
    APART,
)


@given(streams)
def test_a_streamed_call(stream: Stream) -> None:
    at, apart = stream.instants, stream.apart
    low = max(at[8] - at[9], at[5] - at[6])
    expected = Interval(low + apart, at[1] - at[0] + apart)
    assert _interval([*stream.caller, *stream.engine]) == expected


@given(streams)
def test_a_gateway_that_measured_its_relay(stream: Stream) -> None:
    at, apart = stream.instants, stream.apart
    spans = [*stream.caller, *stream.gateway]
    # Its last byte had been flushed when the caller had closed, both at the same instant here.
    assert _interval(spans) == Interval(apart, at[1] - at[0] + apart)


@given(streams)
def test_a_caller_that_left_knows_of_no_last_output(stream: Stream) -> None:
    at, apart = stream.instants, stream.apart
    spans = [*stream.caller, *stream.engine]
    spans = [{**each, "cancelled": each["id"] == "c"} for each in spans]
    low, high = _interval(spans)
    assert high == at[1] - at[0] + apart
    assert low is None or low == at[5] - at[6] + apart


legs = st.tuples(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100), APART)


@given(legs)
def test_a_unary_call(leg: tuple[int, int, int, int]) -> None:
    out, work, back, apart = leg
    spans = [
        _span("r", None, 0, 1_000),
        _span("c", "r", 10, 10 + out + work + back, kind="client", rpc=True),
        _span("e", "c", 10 + out, 10 + out + work, apart, kind="server"),
    ]
    assert _interval(spans) == Interval(apart - back, apart + out)


@given(legs)
def test_a_call_that_may_end_at_the_headers(leg: tuple[int, int, int, int]) -> None:
    out, work, _, apart = leg
    spans = [
        _span("r", None, 0, 1_000),
        _span("c", "r", 10, 10 + out, kind="client"),
        _span("e", "c", 10 + out, 10 + out + work, apart, kind="server"),
    ]
    assert _interval(spans) == Interval(None, apart + out)


@given(legs)
def test_a_message(leg: tuple[int, int, int, int]) -> None:
    out, work, later, apart = leg
    spans = [
        _span("r", None, 0, 1_000),
        _span("c", "r", 10, 10 + later, kind="producer"),
        _span("e", "c", 10 + out, 10 + out + work, apart, kind="consumer"),
    ]
    assert _interval(spans) == Interval(None, apart + out)


@given(legs)
def test_a_tool_in_another_process(leg: tuple[int, int, int, int]) -> None:
    out, work, back, apart = leg
    spans = [
        _span("r", None, 0, 1_000),
        _span("c", "r", 10, 10 + out + work + back, op="execute_tool"),
        _span("e", "c", 10 + out, 10 + out + work, apart, kind="server"),
    ]
    assert _interval(spans) == Interval(apart - back, apart + out)


@given(legs)
def test_a_message_that_was_waited_for(leg: tuple[int, int, int, int]) -> None:
    out, work, back, apart = leg
    spans = [
        _span("r", None, 0, 1_000),
        _span("c", "r", 10, 20, kind="producer"),
        _span("e", "c", 10 + out, 10 + out + work, apart, kind="consumer"),
        _span("f", "r", 10 + out + work + back, 900),
    ]
    links = [{"from_span": "f", "to_span": "e", "type": "follows"}]
    assert _interval(spans, links) == Interval(apart - back, apart + out)
