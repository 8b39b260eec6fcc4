"""Metrics as text for Prometheus: the classic format, or OpenMetrics where that is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from prometheus_client.core import Exemplar as Shown
from prometheus_client.core import Metric as Shape
from prometheus_client.core import Timestamp
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from llmlat_processor.model.families import Distribution, Exemplar, Family, Labels, Number
from llmlat_semconv.metrics import Metric

_OPENMETRICS: Final = "application/openmetrics-text"
_SUFFIXES: Final = {"s": "seconds", "By": "bytes"}
_SECOND_NS: Final = 1_000_000_000


class Exposition(NamedTuple):
    """The answer to somebody who fetches metrics.

    Attributes:
        content: the text, in UTF-8.
        content_type: what it is.
    """

    content: bytes
    content_type: str


def exposition(families: Sequence[Family], accept: str = "") -> Exposition:
    """Write metrics down.

    Args:
        families: what to write; each metric once.
        accept: the header `Accept` of the request. Exemplars are written in OpenMetrics only.
    """
    asked = f"{_OPENMETRICS}; version=1.0.0" if _accepts_openmetrics(accept) else ""
    encode, content_type = choose_encoder(asked)  # of the header as it is, it fears odd versions
    return Exposition(encode(_Collected(families)), content_type)


def name_of(metric: Metric) -> str:
    """What a metric is called there, without the endings of its samples."""
    name = metric.name.replace(".", "_")
    suffix = _SUFFIXES.get(metric.unit, "")
    return name if not suffix or name.endswith(f"_{suffix}") else f"{name}_{suffix}"


class _Collected(Collector):
    """Families in the library's form."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Shape]:
        for family in self._families:
            yield _shape(family)


def _shape(family: Family) -> Shape:
    metric = family.metric
    shape = Shape(
        name_of(metric), metric.description, metric.instrument, _SUFFIXES.get(metric.unit, "")
    )
    for point in family.points:
        if isinstance(point, Distribution):
            _add_buckets(shape, point, metric.boundaries)
        else:
            _add_number(shape, point)
    return shape


def _add_number(shape: Shape, point: Number) -> None:
    is_counter = shape.type == "counter"
    shape.add_sample(
        f"{shape.name}_total" if is_counter else shape.name,
        _written(point.labels),
        point.value,
        exemplar=_shown(point.exemplar) if is_counter else None,
    )


def _add_buckets(shape: Shape, point: Distribution, boundaries: Sequence[float]) -> None:
    labels = _written(point.labels)
    edges = (*(str(float(edge)) for edge in boundaries), "+Inf")
    rows = zip(edges, accumulate(point.counts), point.exemplars, strict=True)
    for edge, count, exemplar in rows:
        shape.add_sample(
            f"{shape.name}_bucket",
            {**labels, "le": edge},
            count,
            exemplar=_shown(exemplar),
        )
    shape.add_sample(f"{shape.name}_count", labels, point.count)
    shape.add_sample(f"{shape.name}_sum", labels, point.total)


def _written(labels: Labels) -> dict[str, str]:
    return {
        name.replace(".", "_"): value if isinstance(value, str) else str(value).lower()
        for name, value in labels
    }


def _shown(exemplar: Exemplar | None) -> Shown | None:
    if exemplar is None:
        return None
    ids = {"trace_id": exemplar.trace_id.hex(), "span_id": exemplar.span_id.hex()}
    return Shown(ids, exemplar.value, Timestamp(*divmod(exemplar.at_ns, _SECOND_NS)))


def _accepts_openmetrics(accept: str) -> bool:
    """Whether it is listed, and not with a weight of nothing."""
    for accepted in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in accepted.split(";"))
        if kind == _OPENMETRICS:
            return not any(_is_zero(parameter) for parameter in parameters)
    return False


def _is_zero(parameter: str) -> bool:
    name, _, weight = parameter.partition("=")
    return name.strip() == "q" and not weight.strip().strip("0").strip(".").strip("0")
