"""examples/transformers: a page and its model in one process, as its README tells it."""

from __future__ import annotations

import json
import re

import pytest

from llmlat_semconv.spans import engine_span_name
from llmlat_semconv.values import Evidence, SectionLabel
from tests.engines import parts
from tests.engines.installed import python_path
from tests.engines.vllm_server import variables
from tests.examples.example_run import ROOT, Explained, drawn_operations, finish, start

pytestmark = pytest.mark.engines

ENGINE = engine_span_name("text_completion")
PAGE = "invoke_agent page"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Explained:
    of_engine = variables(
        PYTHONPATH=python_path(tmp_path_factory.mktemp("example")),
        TRANSFORMERS_PYTHON=str(parts.vllm_python()),
        TRANSFORMERS_MODEL=str(parts.model()),
        TRANSFORMERS_WEIGHTS="random",
    )
    code, printed, errors = finish(start("transformers", "--json", **of_engine))
    assert code == 0, errors
    said, *traces = re.split(r"^(?=\{)", printed, flags=re.MULTILINE)
    (trace,) = map(json.loads, traces)
    return Explained(trace, said)


def test_the_page_reads_what_the_model_writes(run: Explained) -> None:
    whole, again, left = run.printed.splitlines()
    assert whole == again, "a cache changes nothing"
    assert len(left) < len(whole)
    assert whole.startswith(left)


def test_each_answer_is_an_operation_below_the_page(run: Explained) -> None:
    assert run.names() == {PAGE, ENGINE}
    engines = run.named(ENGINE)
    assert {tuple(run.above(each)) for each in engines} == {(PAGE,)}
    assert [each["is_error"] for each in engines] == [False, False, True]


def test_its_phases_are_measured_and_on_the_path_of_who_joins_them(run: Explained) -> None:
    for label in (SectionLabel.PREFILL.value, SectionLabel.DECODE.value):
        assert run.evidence("e2e", label) == {Evidence.MEASURED.value}
    for engine in run.named(ENGINE):
        assert run.path_ns("e2e", engine)


def test_nothing_is_wrong_with_it(run: Explained) -> None:
    assert run.document["findings"] == []


def test_the_readme_shows_these_operations(run: Explained) -> None:
    assert drawn_operations(ROOT / "examples" / "transformers" / "README.md") == run.names()
