"""The JSON Schema of config files, and the page that tells of every key of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from llmlat_processor.config.schema import json_schema, keys_at
from tests.llmlat_processor.config.reading import deployment
from tests.llmlat_processor.config.test_deployment import ALL

Schema = Mapping[str, object]

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
ENVIRON = {"LLMLAT_TOKEN": "sesame", "VENDOR_KEY": "open"}

_SHARED = re.compile(
    r"^destinations\.(spans|derived|metrics)\.(?!interval)"
    r"|^(receivers\.grpc|receivers\.http|telemetry)\.(?!endpoint)"
)

SCHEMA = json.loads(json.dumps(json_schema()))


def keys() -> Iterator[tuple[str, Schema]]:
    """Every key with dots, and what the schema says of it."""
    waiting: list[tuple[str, Schema]] = [("", SCHEMA)]
    while waiting:
        path, block = waiting.pop(0)
        for name, said in cast("Mapping[str, Schema]", block.get("properties", {})).items():
            yield _SHARED.sub(_of_all, path + name), said
            for kind in (said, *cast("list[Schema]", said.get("anyOf", []))):
                if "$ref" in kind:
                    inner = SCHEMA["$defs"][str(kind["$ref"]).rpartition("/")[2]]
                    waiting.append((f"{path}{name}.", inner))


def _of_all(found: re.Match[str]) -> str:
    """What is the same for all destinations, or for all listeners, has one line."""
    return "DESTINATION." if found[0].startswith("destinations") else "LISTENER."


def row(key: str, said: Schema) -> str:
    """The line of a key in the tables of the page."""
    default = said.get("default")
    shown = "" if default is None else str(default)
    if isinstance(default, bool):
        shown = "on" if default else "off"
    return f"| `{key}` | {f'`{shown}`' if shown else ''} | {said['description']} |"


ROWS = dict.fromkeys(row(key, said) for key, said in keys())


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("line", ROWS)
def test_the_page_tells_of_every_key_what_the_schema_does(line: str) -> None:
    assert line in PAGE.splitlines()


def test_the_page_tells_of_no_other_key() -> None:
    told = re.findall(r"^\| `(?!OTEL_)([A-Za-z_.]+)` \|", PAGE, re.MULTILINE)
    assert set(told) == {key for key, _ in keys()}


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_page_can_be_used(example: str) -> None:
    assert deployment(example, ENVIRON).workers >= 1


@pytest.mark.parametrize("example", [*EXAMPLES, ALL])
def test_an_editor_finds_no_fault_with_a_file_that_can_be_used(example: str) -> None:
    Draft202012Validator(SCHEMA).validate(yaml.safe_load(example))
    assert EXAMPLES


WRONG = [
    "mode: both",
    "wokers: 1",
    "workers: 0",
    "window: {idle: soon}",
    "window: {max_held: 1 lot}",
    "views: {lane: maybe}",
    "destinations: {spans: {tls: {insecure: true}}}",
]


@pytest.mark.parametrize("content", WRONG)
def test_an_editor_finds_what_is_wrong(content: str) -> None:
    assert not Draft202012Validator(SCHEMA).is_valid(yaml.safe_load(content))


def test_the_keys_of_a_place_are_known() -> None:
    assert keys_at(("receivers", "grpc", "tls")) == ["cert_file", "key_file", "client_ca_file"]
    assert keys_at(("window", "idle")) == keys_at(("nowhere", "at", "all")) == []
