"""References to variables: what is put in place, and that no value of one is ever told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from llmlat_processor.config.variables import substituted, told
from tests.llmlat_processor.config.reading import INLINE, deployment, said

ENVIRON = {"NAME": "value", "EMPTY": "", "TRAP": "${env:NAME} $$ *x"}

PUT_IN = {
    "plain": "plain",
    "${env:NAME}": "value",
    "a-${env:NAME}-${env:NAME}": "a-value-value",
    "${env:ABSENT:-other}": "other",
    "${env:EMPTY:-other}": "other",
    "${env:EMPTY:-}": "",
    "${env:NAME:-other}": "value",
    "$$": "$",
    "$${env:NAME}": "${env:NAME}",
    "pa$sword": "pa$sword",
    "${env:TRAP}": "${env:NAME} $$ *x",
    "${env:ABSENT:-http://a:1/b?c=d}": "http://a:1/b?c=d",
}


@pytest.mark.parametrize(("written", "value"), PUT_IN.items(), ids=PUT_IN)
def test_a_reference_is_its_value_which_is_not_read_again(written: str, value: str) -> None:
    assert substituted(written, ENVIRON) == value


NOT_THERE = {
    "${env:ABSENT}": "ABSENT is not set; set it, or write ${env:ABSENT:-default}",
    "${env:EMPTY}": "EMPTY is empty; set it, or write ${env:EMPTY:-default}",
    "${NAME}": "'${NAME}' is not read here; write ${env:NAME}",
    "${file:/x}": "'${file:/x}' is not read here",
    "${env:NAME": "'${env:NAME' is not read here",
    "${env:A:-${env:B}}": "is not read here",
}


@pytest.mark.parametrize(("written", "words"), NOT_THERE.items(), ids=NOT_THERE)
def test_a_reference_without_a_value_is_refused(written: str, words: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as refused:
        substituted(written, ENVIRON)
    assert words in str(refused.value)


@given(some.text())
def test_text_with_its_dollar_signs_doubled_is_itself(written: str) -> None:
    assert substituted(written.replace("$", "$$"), {}) == written


def test_a_value_is_told_as_it_was_written() -> None:
    assert told(substituted("${env:NAME}", ENVIRON)) == "'${env:NAME}'"


def test_of_a_long_value_only_the_beginning_is_told() -> None:
    (problem,) = said(f"{INLINE}workers: {'9' * 10_000}")
    assert len(problem) < 200


def test_every_kind_of_value_may_be_a_variable() -> None:
    content = """
        destinations: {spans: {endpoint: "${env:HOST}:4317", timeout: "${env:WAIT}"}}
        views: {lane: "${env:LANE}"}
        workers: ${env:CORES}
    """
    environ = {"HOST": "backend", "WAIT": "3s", "LANE": "off", "CORES": "4"}

    made = deployment(content, environ)

    assert made.spans is not None
    assert (made.spans.endpoint, made.spans.delivery.deadline_s) == ("backend:4317", 3)
    assert (made.settings.views.lane, made.workers) == (False, 4)


def test_no_problem_tells_the_value_of_a_variable() -> None:
    content = """
        destinations: {spans: {endpoint: "${env:S}", timeout: "${env:S}", token: "${env:S}"}}
        workers: ${env:S}
    """
    problems = said(content, {"S": "s3cret\nline"})

    assert len(problems) == 4
    assert "s3cret" not in "".join(problems)


def test_a_missing_variable_is_one_problem_and_makes_no_others() -> None:
    content = 'destinations: {spans: {endpoint: "${env:WHERE}"}}'

    assert said(content) == [
        "1: destinations.spans.endpoint: the environment variable WHERE is not set; "
        "set it, or write ${env:WHERE:-default}"
    ]


def test_comments_and_keys_are_left_alone() -> None:
    assert deployment(f"# ${{env:ABSENT}}\n{INLINE}").workers == 1
    assert said(f'{INLINE}"${{env:NAME}}": 1', {"NAME": "workers"})[0].startswith(
        "2: ${env:NAME}: no such key"
    )
