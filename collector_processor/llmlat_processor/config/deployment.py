"""A config file becomes a `Deployment`: all of it, or one error that says all that is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from llmlat_processor.config.combinations import Clash, FaultOf, clashes, has_journal
from llmlat_processor.config.document import Document
from llmlat_processor.config.document import read as read_document
from llmlat_processor.config.otel_environment import with_defaults
from llmlat_processor.config.problems import ConfigError, Keys, Problem, dotted
from llmlat_processor.config.schema import (
    GRPC_ADDRESS,
    ClientTlsBlock,
    Configuration,
    DestinationBlock,
    JournalBlock,
    ListenerBlock,
    ServerTlsBlock,
    keys_at,
)
from llmlat_processor.config.state_folder import state_folder
from llmlat_processor.config.units import SECOND_NS
from llmlat_processor.config.variables import Text
from llmlat_processor.settings import (
    INLINE,
    ClientTls,
    Delivery,
    Deployment,
    Destination,
    JournalSettings,
    Listener,
    Metering,
    ServerTls,
    Settings,
    Views,
)

_ELSEWHERE: Final = {
    "insecure": "write http:// in the endpoint to send in the clear",
    "insecure_skip_verify": "certificates are always verified; name who signed it in ca_file",
    "retry_on_failure": "it is called retry here",
    "protocols": "grpc and http stand in receivers themselves",
    "queue_size": "it is called size here, and is in bytes",
    "max_recv_msg_size_mib": "it is receivers.max_message_size here, like 64MiB",
}
"""Keys that operators know of the collector, and what is meant here."""


@dataclass(frozen=True, slots=True)
class Configured:
    """What a config file says.

    Attributes:
        deployment: the whole of it.
        warnings: what works, and somebody should know.
    """

    deployment: Deployment
    warnings: tuple[Problem, ...] = ()


def read(name: str, content: bytes, environ: Mapping[str, str], fault_of: FaultOf) -> Configured:
    """Read a config file.

    Args:
        name: of the file, for words.
        content: of the file.
        environ: variables that it refers to, and that stand in where it is silent.
        fault_of: tells why a file that it names cannot be read; empty where it can.

    Raises:
        ConfigError: it cannot be used.
    """
    document = read_document(content, environ)
    problems = list(document.problems)
    broken, unknown = set(document.broken), set[Keys]()
    if () in broken:
        raise ConfigError(name, problems)
    top = with_defaults(document.top, environ)
    configuration, faults = _validated(top)
    for path, words in faults.items():
        known = keys_at(path[:-1])
        (broken if str(path[-1]) in known else unknown).add(path)
        problems.append(Problem(document.line_of(path), dotted(path), words))
    found = [
        clash
        for clash in clashes(configuration, fault_of)
        if not _is_moot(clash, broken, unknown, document.top)
    ]
    state = state_folder(environ)
    if configuration.state.directory is None and state is None and has_journal(configuration):
        words = "is missing, and there is no home to keep a journal in; name a folder"
        found.append(Clash(("state", "directory"), words, is_missing=True))
    placed = [(clash, _placed(clash, document, top)) for clash in found]
    problems += [problem for clash, problem in placed if clash.is_fatal]
    if problems:
        raise ConfigError(name, problems)
    warnings = tuple(problem for _, problem in placed)
    return Configured(_deployment(configuration, state), warnings)


def _validated(top: Mapping[str, object]) -> tuple[Configuration, Mapping[Keys, str]]:
    """The file without the values that are wrong, and what is wrong with those."""
    try:
        return Configuration.model_validate(top), {}
    except ValidationError as error:
        faults = dict(_faults(error))
    for path in faults:
        top = _without(top, path)
    return Configuration.model_validate(top), faults


def _faults(error: ValidationError) -> Iterator[tuple[Keys, str]]:
    for fault in error.errors(include_url=False, include_input=False):
        path, kind = tuple(fault["loc"]), fault["type"]
        if kind == "extra_forbidden":
            yield path, _no_such_key(path)
        elif kind == "value_error":
            yield path, str(fault["ctx"]["error"])
        else:
            known = ", ".join(keys_at(path))
            yield path, f"a mapping is expected here; its keys are {known}"


def _no_such_key(path: Keys) -> str:
    key, known = str(path[-1]), keys_at(path[:-1])
    if key in _ELSEWHERE:
        return f"no such key; {_ELSEWHERE[key]}"
    near = difflib.get_close_matches(key.lower().replace("-", "_"), known, n=1)
    return f"no such key; {f'did you mean {near[0]}?' if near else f'there are {_listed(known)}'}"


def _listed(known: list[str]) -> str:
    return ", ".join(known)


def _without(top: Mapping[str, object], path: Keys) -> Mapping[str, object]:
    """The same without one value; nothing of the original changes."""
    whole = block = dict(top)
    for key in path[:-1]:
        inner = block[str(key)]
        if not isinstance(inner, dict):
            return whole
        block[str(key)] = inner = dict(inner)
        block = inner
    block.pop(str(path[-1]), None)
    return whole


def _is_moot(
    clash: Clash, broken: set[Keys], unknown: set[Keys], top: Mapping[str, object]
) -> bool:
    """Whether it may be there only because something else could not be read."""
    sides = [side for side in (clash.path, clash.other) if side is not None]
    if any(side[: len(path)] == path for side in sides for path in broken):
        return True
    missing = (clash.path[:length] for length in range(1, len(clash.path) + 1))
    first = next((path for path in missing if _value_at(top, path) is None), clash.path)
    return clash.is_missing and any(path[:-1] == first[:-1] for path in unknown)


def _value_at(top: Mapping[str, object], path: Keys) -> object:
    value: object = top
    for key in path:
        value = value.get(str(key)) if isinstance(value, Mapping) else None
    return value


def _placed(clash: Clash, document: Document, top: Mapping[str, object]) -> Problem:
    """A clash with its line, and with the variable that its value is of where it is of one."""
    value = _value_at(top, clash.path)
    variable = value.variable if isinstance(value, Text) else ""
    words = f"{clash.words}; {variable} says so" if variable else clash.words
    return Problem(document.line_of(clash.path), dotted(clash.path), words)


def _deployment(configuration: Configuration, state: Path | None) -> Deployment:
    there, receivers = configuration.destinations, configuration.receivers
    is_named = receivers.has("grpc") or receivers.has("http")
    grpc = _listener(receivers.grpc) if is_named else Listener(GRPC_ADDRESS)
    spans = _destination(there.spans)
    return Deployment(
        mode=configuration.mode,
        grpc=grpc,
        http=_listener(receivers.http),
        spans=spans,
        derived=_destination(there.derived),
        settings=_settings(configuration),
        journal=_journal(configuration.journal) if has_journal(configuration) else None,
        state=configuration.state.directory or state,
        metering=_metering(configuration),
        telemetry=_listener(configuration.telemetry),
        workers=configuration.workers,
    )


def _listener(block: ListenerBlock | None) -> Listener | None:
    if block is None:
        return None
    return Listener(str(block.endpoint), _server_tls(block.tls), block.token)


def _server_tls(block: ServerTlsBlock | None) -> ServerTls | None:
    if block is None or block.cert_file is None or block.key_file is None:
        return None
    return ServerTls(block.cert_file, block.key_file, block.client_ca_file)


def _destination(block: DestinationBlock | None) -> Destination | None:
    if block is None or block.endpoint is None:
        return None
    is_secure = block.endpoint.scheme == "https" or block.tls is not None
    return Destination(
        endpoint=str(block.endpoint),
        protocol=block.protocol,
        tls=_client_tls(block.tls) if is_secure else None,
        headers=block.headers,
        token=block.token,
        compression=block.compression,
        delivery=_delivery(block),
    )


def _client_tls(block: ClientTlsBlock | None) -> ClientTls:
    if block is None:
        return ClientTls()
    return ClientTls(block.ca_file, block.cert_file, block.key_file)


def _delivery(block: DestinationBlock) -> Delivery:
    return Delivery(
        request_bytes=block.max_request_size,
        queue_bytes=block.sending_queue.size,
        deadline_s=_seconds(block.timeout),
        first_retry_s=_seconds(block.retry.initial_interval),
        longest_retry_s=_seconds(block.retry.max_interval),
        give_up_s=_seconds(block.retry.max_elapsed_time),
        drain_s=_seconds(block.drain),
    )


def _settings(configuration: Configuration) -> Settings:
    window, views = configuration.window, configuration.views
    limits = replace(
        INLINE.window,
        idle_ns=window.idle,
        grace_ns=window.grace,
        hold_max_ns=window.hold_max,
        tombstone_ns=window.tombstones,
        skeleton_ns=window.skeletons,
        trace_spans=window.max_spans_per_trace,
        trace_bytes=window.max_trace_size,
        traces=window.max_traces,
        held_bytes=window.max_held,
        revision_bytes=window.max_remembered,
    )
    return replace(
        INLINE,
        window=limits,
        max_message_bytes=configuration.receivers.max_message_size,
        waiting_bytes=window.max_waiting,
        views=Views(
            lane=views.lane,
            annotations=views.annotations,
            jaeger_warnings=views.jaeger_warnings,
            explained=views.explain,
        ),
    )


def _journal(block: JournalBlock) -> JournalSettings:
    return JournalSettings(max_bytes=block.max_size, durability=block.durability)


def _metering(configuration: Configuration) -> Metering:
    block = configuration.destinations.metrics
    default = Metering(max_series=configuration.metrics.max_series)
    if block is None:
        return default
    interval_s = _seconds(block.interval)
    return replace(default, destination=_destination(block), interval_s=interval_s)


def _seconds(value_ns: int) -> float:
    return value_ns / SECOND_NS
