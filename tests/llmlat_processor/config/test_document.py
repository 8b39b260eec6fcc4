"""YAML as it is read: lines, what is refused of it, and that no file makes it blow up."""

from __future__ import annotations

from contextlib import suppress

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as some

from llmlat_processor.config.document import MOST_BYTES, MOST_VALUES, read
from llmlat_processor.config.problems import ConfigError
from tests.llmlat_processor.config.reading import deployment


def top(content: str) -> dict[str, object]:
    document = read(content.encode(), {})
    assert document.problems == []
    return document.top


def problems(content: str | bytes) -> list[str]:
    found = read(content if isinstance(content, bytes) else content.encode(), {}).problems
    return [f"{problem.line}: {problem}" for problem in found]


def test_scalars_stay_text_and_only_nothing_is_nothing() -> None:
    content = "a: on\nb: 0123\nc: 12:30\nd: null\ne: ~\nf:\ng: 'null'\nh: ''\ni: 1e3\n"

    assert top(content) == {
        **{"a": "on", "b": "0123", "c": "12:30", "d": None, "e": None, "f": None},
        **{"g": "null", "h": "", "i": "1e3"},
    }


def test_every_key_has_its_line() -> None:
    document = read(b"a:\n  b: {c: 1,\n      d: 2}\n\ne: [x,\n  y]\n", {})

    lines = {
        ("a",): 1,
        ("a", "b"): 2,
        ("a", "b", "c"): 2,
        ("a", "b", "d"): 3,
        ("e",): 5,
        ("a", "b", "absent", "x"): 2,
        (): 1,
    }
    assert {path: document.line_of(path) for path in lines} == lines


REFUSED = {
    "": "0: empty; `llmlat config schema` says what may stand in it",
    "# only a comment\n": "0: empty; `llmlat config schema` says what may stand in it",
    "\n\n~\n": "0: empty; `llmlat config schema` says what may stand in it",
    "- a\n- b\n": "1: not a mapping; it begins with keys, like `mode: inline`",
    "\njust words": "2: not a mapping; it begins with keys, like `mode: inline`",
    "a: 1\nb: [": "2: not YAML: while parsing a flow node",
    "a: {b: ${env:C}}": "1: not YAML: while parsing a flow mapping, expected ',' or '}', but got "
    "'{'; write quotes around ${env:C}",
    "a: 1\n\tb: 2": "2: not YAML: while scanning for the next token",
    "a: 1\n b: 2": "2: not YAML: mapping values are not allowed here",
    "a: 1\nb: \x07": "2: not YAML: there is a character that no text has",
    "a: 1\n---\nb: 2": "2: a second document; a config file has one",
    "a: !!python/object:os.system x": "1: a tag, 'tag:yaml.org,2002:python/object:os.system'",
    "a: !secret x": "1: a tag, '!secret'; tags are not read here",
    "? [a]\n: b": "1: a key that is no text",
    "a: *b": "1: *b stands for nothing; there is no &b",
    "a: &a [*a]": "1: *a stands inside of what it stands for",
    "a: &a {b: *a}": "1: *a stands inside of what it stands for",
    "a: &a b\n*a : c": "2: a key that is an alias",
    "<<: a": "1: << takes in a mapping, and this is none",
    '"a\\e[31m": b': r"1: a key that cannot be told of, 'a\x1b[31m'",
    "k" * 201 + ": b": f"1: a key that cannot be told of, '{'k' * 80}...'",
    "a: " + "[" * 30: "1: more than 20 levels deep; no key is",
}


@pytest.mark.parametrize(("content", "words"), REFUSED.items(), ids=map(repr, REFUSED))
def test_what_is_no_config_file_is_refused_with_its_line(content: str, words: str) -> None:
    (problem,) = problems(content)
    assert problem.startswith(words)


def test_a_file_in_another_encoding_is_refused_with_its_line() -> None:
    assert problems("a: 1\nb: ü\n".encode("latin-1")) == [
        "2: not UTF-8; save the file in that encoding"
    ]
    assert problems("a: 1".encode("utf-16"))[0].startswith("1: not UTF-8")


def test_a_mark_of_byte_order_is_no_part_of_the_first_key() -> None:
    assert read(b"\xef\xbb\xbfa: 1", {}).top == {"a": "1"}


def test_a_file_that_is_too_large_is_not_even_read() -> None:
    assert "are no config file" in problems(b"#" * (MOST_BYTES + 1))[0]


def test_a_key_that_is_given_twice_is_told_with_both_lines() -> None:
    content = "mode: inline\nwindow:\n  idle: 1s\n  idle: 2s\nmode: tap\n"

    assert problems(content) == [
        "4: window.idle: given twice, first in line 3; leave one of them",
        "5: mode: given twice, first in line 1; leave one of them",
    ]


def test_an_alias_stands_for_what_it_names_and_a_merge_gives_way() -> None:
    content = """
        destinations:
          spans: &usual {endpoint: a:1, timeout: 3s, tls: {ca_file: /ca}}
          derived: {endpoint: b:1, <<: *usual, timeout: 4s}
    """
    made = deployment(content)

    assert made.spans is not None
    assert made.derived is not None
    assert made.derived.endpoint == "b:1"
    assert made.derived.tls == made.spans.tls
    assert (made.spans.delivery.deadline_s, made.derived.delivery.deadline_s) == (3, 4)


def test_aliases_of_aliases_are_counted_as_often_as_they_are_used() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    (problem,) = problems("\n".join(levels))
    assert f"more than {MOST_VALUES:,} values" in problem


def test_a_merge_counts_too() -> None:
    wide = "{" + ", ".join(f"k{n}: x" for n in range(900)) + "}"
    merged = "\n".join(f"m{n}: {{<<: *w}}" for n in range(20))

    (problem,) = problems(f"w: &w {wide}\n{merged}")
    assert f"more than {MOST_VALUES:,} values" in problem


@given(some.binary(max_size=200) | some.text(max_size=200).map(lambda text: text.encode()))
@example(b"{" * 10_000)
@example(b"- " * 10_000)
@example(b"? " * 10_000)
@example(b"&a " * 100)
def test_any_file_is_read_or_refused(content: bytes) -> None:
    document = read(content, {})
    assert document.problems or isinstance(document.top, dict)


YAML = some.recursive(
    some.none() | some.text(max_size=5) | some.sampled_from(["1s", "on", "*a", "&a", "${env:X}"]),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=3), inner),
    max_leaves=10,
)


@given(YAML)
def test_a_file_of_any_values_is_read_or_refused_and_never_a_fault_of_ours(value: object) -> None:
    keys = ["receivers", "destinations", "window", "telemetry", "workers"]
    content = yaml.safe_dump(dict.fromkeys(keys, value), allow_unicode=True)

    with suppress(ConfigError):
        assert deployment(content).spans is not None
