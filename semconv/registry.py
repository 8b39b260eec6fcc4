"""The resolved contract as values: every attribute, phase, span, event and metric, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aliases import Producer

NUMERIC_TYPES = frozenset({"int", "double", "int[]", "double[]"})
PHASE_NAMES = "llmlat.phase.name"


@dataclass(frozen=True, slots=True)
class Member:
    """One value of an enum; `facts` are its annotations."""

    id: str
    value: str
    brief: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute.

    Attributes:
        origin: `own`, `reused` (defined by another registry) or `foreign` (defined by none).
        enum: Name of the generated class, for an attribute with known values.
        template: Key of the template that it was made from, if any.
    """

    file: str
    key: str
    type: str
    brief: str
    origin: str = "own"
    note: str = ""
    unit: str | None = None
    enum: str | None = None
    members: tuple[Member, ...] = ()
    template: str | None = None
    examples: tuple[Any, ...] = ()
    deprecated: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict)

    @property
    def boundaries(self) -> tuple[float, ...]:
        """Bucket boundaries in seconds of an attribute that counts by bucket."""
        return tuple(float(edge) for edge in self.annotations.get("boundaries", ()))


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase with its facts; an edge that the model does not state is empty."""

    file: str
    id: str
    name: str
    brief: str
    note: str
    boundary: str
    phase_class: str
    start: str
    start_else: str
    end: str
    envelope: bool
    nested_in: tuple[str, ...]
    order: int

    @property
    def whole_start(self) -> str:
        """The start edge, and what stands in for it where a call has no such instant."""
        return f"{self.start}, else {self.start_else}" if self.start_else else self.start


@dataclass(frozen=True, slots=True)
class Ref:
    """A signal's use of an attribute, with its requirement level."""

    key: str
    level: str


@dataclass(frozen=True, slots=True)
class Span:
    """One span type; `name` is its template, `function` the generated function that fills it."""

    file: str
    type: str
    kind: str
    name: str
    brief: str
    note: str
    function: str
    parameters: tuple[str, ...]
    refs: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """One span event."""

    file: str
    name: str
    brief: str
    refs: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; `boundaries` are those of a histogram, in its unit."""

    file: str
    name: str
    instrument: str
    unit: str
    brief: str
    boundaries: tuple[float, ...]
    refs: tuple[Ref, ...]
    origin: str = "own"


@dataclass(frozen=True, slots=True)
class Group:
    """A named set of attributes that stand together somewhere."""

    file: str
    id: str
    brief: str
    refs: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """A rule that makes one attribute per member of an enum."""

    key: str
    over: str
    function: str
    parameter: str
    constants: bool
    brief: str


@dataclass(frozen=True, slots=True)
class Registry:
    """The whole contract of one version."""

    version: str
    schema_url: str
    attributes: tuple[Attribute, ...]
    phases: tuple[Phase, ...]
    spans: tuple[Span, ...]
    events: tuple[Event, ...]
    metrics: tuple[Metric, ...]
    groups: tuple[Group, ...]
    templates: tuple[Template, ...]
    producers: tuple[Producer, ...] = ()

    def attribute(self, key: str) -> Attribute | None:
        """The attribute of that key, if there is one."""
        return next((one for one in self.attributes if one.key == key), None)

    def enums(self) -> Iterator[Attribute]:
        """The attributes that define the generated enum classes, each class once, sorted."""
        seen: dict[str, Attribute] = {}
        for one in self.attributes:
            if one.enum and one.members:
                seen.setdefault(one.enum, one)
        return iter([seen[name] for name in sorted(seen)])

    def phases_of(self, boundary: str) -> tuple[Phase, ...]:
        """The phases of one boundary, in contract order."""
        return tuple(phase for phase in self.phases if phase.boundary == boundary)

    def boundaries(self) -> tuple[str, ...]:
        """The boundaries that have phases, in contract order."""
        return tuple(dict.fromkeys(phase.boundary for phase in self.phases))


def constant(name: str) -> str:
    """The Python constant of a name: `llmlat.phase.name` becomes `LLMLAT_PHASE_NAME`."""
    return name.replace(".", "_").upper()
