"""Request timelines in, one latency report out: totals, percentiles, segments, what dominated.

A timeline has eight stamps and therefore seven segments, which tile it without a gap:

    client_send                                                          last_token_client
    |network_in|gateway|queue|prefill|first_decode|network_to_first|     stream     |
    |------------------------- TTFT -------------------------------|
    |------------------------------------ E2E --------------------------------------|

Everything is computed in exact integers and fractions of nanoseconds; nothing is rounded before
it is printed. Each total is formed per request first and its percentile taken afterwards: the
percentiles of segments do not add up to the percentile of their sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final

STAMPS: Final = (
    "client_send",
    "gateway_arrival",
    "queue_enter",
    "prefill_start",
    "prefill_end",
    "first_token_server",
    "first_token_client",
    "last_token_client",
)
"""The instants of a timeline, in the order in which they must happen."""

PERCENTILES: Final = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch between two neighbouring stamps, and who can shorten it.

    Attributes:
        name: the segment's name.
        owner: who answers for this time.
        lever: what usually shortens it.
        next_test: the experiment that confirms or clears it.
    """

    name: str
    owner: str
    lever: str
    next_test: str


SEGMENTS: Final = (
    Segment(
        "network_in",
        owner="the client's network path to the gateway",
        lever="keep connections open, send less, move the client or the gateway closer",
        next_test="send the same body to an endpoint that answers at once, on a warm connection",
    ),
    Segment(
        "gateway",
        owner="the gateway: auth, policy, rate limit, routing",
        lever="cache the policy decision, take blocking work off the request path",
        next_test="send the same requests past the gateway, straight to the engine",
    ),
    Segment(
        "queue",
        owner="the engine's scheduler and its capacity",
        lever="more replicas, an admission limit, or fewer and shorter requests in flight",
        next_test="replay at half the arrival rate: a queue shrinks far more than by half",
    ),
    Segment(
        "prefill",
        owner="the engine's compute, by prompt length",
        lever="reuse a cached prefix, shorten the prompt, tune the chunk size",
        next_test="send one prompt twice on an idle engine: the second hits the prefix cache",
    ),
    Segment(
        "first_decode",
        owner="the engine's first step after prefill: sampling, detokenizing, flushing",
        lever="keep grammar compilation and logit processing out of the first step",
        next_test="repeat without grammar, tools and log probabilities",
    ),
    Segment(
        "network_to_first",
        owner="the way back: relay, proxy buffers, network",
        lever="switch response buffering and compression off for event streams",
        next_test="read the stream unbuffered beside the engine and compare the first token",
    ),
    Segment(
        "stream",
        owner="the engine's decode, by output length and batch",
        lever="fewer output tokens, smaller batches, speculative decoding, faster memory",
        next_test="run one request alone: if the gap falls the batch is the cause, else the model",
    ),
)
"""The seven segments; segment i lies between stamp i and stamp i + 1."""

TTFT_SEGMENTS: Final = SEGMENTS[:6]


@dataclass(frozen=True, slots=True)
class Timeline:
    """One request: its token counts and its eight stamps.

    Attributes:
        request_id: names the request; unique in a population.
        prompt_tokens: tokens of the prompt, at least 1.
        output_tokens: tokens of the answer, at least 1.
        stamps_ns: the instants of `STAMPS` in that order, integer nanoseconds on one clock,
            never decreasing.

    Raises:
        ValueError: a count below 1, a missing stamp, or stamps out of order.
    """

    request_id: str
    prompt_tokens: int
    output_tokens: int
    stamps_ns: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.prompt_tokens < 1 or self.output_tokens < 1:
            raise ValueError("token counts are at least 1")
        if len(self.stamps_ns) != len(STAMPS):
            raise ValueError(f"a timeline has {len(STAMPS)} stamps")
        if any(later < earlier for earlier, later in pairwise(self.stamps_ns)):
            raise ValueError("stamps are out of order")

    @property
    def segments_ns(self) -> tuple[int, ...]:
        """The seven durations, in the order of `SEGMENTS`."""
        return tuple(b - a for a, b in pairwise(self.stamps_ns))

    @property
    def ttft_ns(self) -> int:
        """Client send to the first token at the client."""
        return self.stamps_ns[6] - self.stamps_ns[0]

    @property
    def e2e_ns(self) -> int:
        """Client send to the last token at the client."""
        return self.stamps_ns[7] - self.stamps_ns[0]

    @property
    def gap_ns(self) -> Fraction | None:
        """Mean time between output tokens; None for one token, which has no gap."""
        if self.output_tokens == 1:
            return None
        return Fraction(self.stamps_ns[7] - self.stamps_ns[6], self.output_tokens - 1)


@dataclass(frozen=True, slots=True)
class Distribution:
    """One metric over a population.

    Attributes:
        count: requests that have the metric.
        mean_ns: their mean.
        percentiles_ns: percent to value, linear interpolation between the closest ranks.
    """

    count: int
    mean_ns: Fraction
    percentiles_ns: dict[int, Fraction]


@dataclass(frozen=True, slots=True)
class Dominant:
    """The segment that takes the most time, and its part of the whole."""

    segment: Segment
    mean_ns: Fraction
    share: Fraction | None


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Where the figures were taken; without them two reports cannot be compared.

    Attributes:
        requests: size of the population.
        span_ns: first client send to last token.
        prompt_tokens: smallest and largest.
        output_tokens: smallest and largest.
        percentiles: which were taken.
    """

    requests: int
    span_ns: int
    prompt_tokens: tuple[int, int]
    output_tokens: tuple[int, int]
    percentiles: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """The report on a population; all durations in nanoseconds, exact.

    Attributes:
        gap: None where no request has two tokens.
        segment_means_ns: in the order of `SEGMENTS`.
    """

    coordinates: Coordinates
    ttft: Distribution
    gap: Distribution | None
    e2e: Distribution
    segment_means_ns: tuple[Fraction, ...]
    dominant_ttft: Dominant
    dominant_e2e: Dominant


def percentile(ordered: Sequence[int | Fraction], percent: int) -> Fraction:
    """Interpolate linearly between the closest ranks (numpy's default).

    Args:
        ordered: at least one value, ascending.
        percent: 0 to 100.
    """
    rank = Fraction(percent * (len(ordered) - 1), 100)
    below = rank.numerator // rank.denominator
    above = min(below + 1, len(ordered) - 1)
    low = Fraction(ordered[below])
    return low + (rank - below) * (ordered[above] - low)


def profile(timelines: Iterable[Timeline], percentiles: Sequence[int] = PERCENTILES) -> Profile:
    """Report on a population of requests; their order does not matter.

    Raises:
        ValueError: an empty population.
    """
    population = tuple(timelines)
    if not population:
        raise ValueError("a profile needs at least one timeline")
    wanted = tuple(percentiles)
    gaps = [gap for gap in (one.gap_ns for one in population) if gap is not None]
    means = tuple(map(_mean, zip(*(one.segments_ns for one in population), strict=True)))
    return Profile(
        coordinates=_coordinates(population, wanted),
        ttft=_distribution([one.ttft_ns for one in population], wanted),
        gap=_distribution(gaps, wanted) if gaps else None,
        e2e=_distribution([one.e2e_ns for one in population], wanted),
        segment_means_ns=means,
        dominant_ttft=_dominant(TTFT_SEGMENTS, means),
        dominant_e2e=_dominant(SEGMENTS, means),
    )


def _mean(values: Sequence[int | Fraction]) -> Fraction:
    return Fraction(sum(values)) / len(values)


def _distribution(values: Sequence[int | Fraction], percentiles: tuple[int, ...]) -> Distribution:
    # Fractions compare slowly, their floats fast and in the same order; a tie is settled exactly.
    ordered = sorted(values, key=lambda value: (float(value), value))
    return Distribution(
        count=len(ordered),
        mean_ns=_mean(ordered),
        percentiles_ns={percent: percentile(ordered, percent) for percent in percentiles},
    )


def _dominant(segments: Sequence[Segment], means: Sequence[Fraction]) -> Dominant:
    """Pick the largest mean; of equals the earlier segment."""
    longest = max(range(len(segments)), key=means.__getitem__)
    whole = sum(means[: len(segments)])
    return Dominant(segments[longest], means[longest], means[longest] / whole if whole else None)


def _coordinates(population: Sequence[Timeline], percentiles: tuple[int, ...]) -> Coordinates:
    prompts = [one.prompt_tokens for one in population]
    outputs = [one.output_tokens for one in population]
    first = min(one.stamps_ns[0] for one in population)
    last = max(one.stamps_ns[-1] for one in population)
    return Coordinates(
        requests=len(population),
        span_ns=last - first,
        prompt_tokens=(min(prompts), max(prompts)),
        output_tokens=(min(outputs), max(outputs)),
        percentiles=percentiles,
    )
