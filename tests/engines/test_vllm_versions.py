"""What we look at in vLLM, looked up in the sources of its versions: read, and never run."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import pytest

from checks.syntax import functions, last_name
from llmlat_otel.core.instrumentor import Target
from llmlat_otel.core.wrapping import wrap
from llmlat_otel.instrumentors.vllm.frontend import NATIVE_SPAN
from llmlat_otel.instrumentors.vllm.targets import TARGETS
from llmlat_otel.testing import recorded
from tests.engines import parts

pytestmark = pytest.mark.engines

OURS: Final = Path(__file__).parents[2] / "src" / "llmlat_otel" / "instrumentors" / "vllm"

FIRST, SECOND, THIRD, LAST = parts.SOURCES
THEIRS: Final = tuple(target for target in TARGETS if target.module.startswith("vllm."))

ENGINE: Final = "vllm.v1.engine"
OUTPUTS: Final = "vllm.v1.engine.output_processor"
SCHEDULER: Final = "vllm.v1.core.sched.scheduler"
STEPS: Final = "vllm.v1.core.sched.output"
REQUEST: Final = "vllm.v1.request"


class Read(NamedTuple):
    """Attributes of a class that we read; versions that lack them are known to do so."""

    module: str
    owner: str
    attributes: str
    lacking: tuple[str, ...] = ()


READS: Final = (
    Read(ENGINE, "EngineCoreRequest", "request_id prompt_token_ids sampling_params trace_headers"),
    Read(ENGINE, "EngineCoreRequest", "external_req_id", (FIRST,)),
    Read(ENGINE, "EngineCoreOutput", "request_id new_token_ids pooling_output finish_reason"),
    Read(ENGINE, "EngineCoreOutput", "events trace_headers"),
    Read(ENGINE, "EngineCoreOutput", "num_cached_tokens", (THIRD, LAST)),
    Read(ENGINE, "EngineCoreOutput", "prefill_stats", (FIRST, SECOND)),
    Read(ENGINE, "EngineCoreOutputs", "outputs timestamp"),
    Read(ENGINE, "EngineCoreEvent", "type timestamp"),
    Read(ENGINE, "EngineCoreEventType", "QUEUED SCHEDULED PREEMPTED"),
    Read("vllm.v1.metrics.stats", "PrefillStats", "num_cached_tokens", (FIRST, SECOND)),
    Read(OUTPUTS, "OutputProcessor", "request_states"),
    Read(SCHEDULER, "Scheduler", "requests waiting running connector"),
    Read(STEPS, "SchedulerOutput", "scheduled_new_reqs scheduled_cached_reqs"),
    Read(STEPS, "SchedulerOutput", "num_scheduled_tokens finished_req_ids"),
    Read(STEPS, "SchedulerOutput", "preempted_req_ids", (FIRST,)),
    Read(STEPS, "NewRequestData", "req_id"),
    Read(STEPS, "CachedRequestData", "req_ids"),
    Read(STEPS, "CachedRequestData", "resumed_req_ids", (FIRST,)),
    Read(STEPS, "CachedRequestData", "resumed_from_preemption", (SECOND, THIRD, LAST)),
    Read(REQUEST, "Request", "trace_headers num_computed_tokens num_prompt_tokens status"),
    Read(REQUEST, "RequestStatus", "WAITING_FOR_REMOTE_KVS"),
    Read("vllm.v1.engine.async_llm", "AsyncLLM", "output_processor model_config"),
    Read("vllm.v1.engine.llm_engine", "LLMEngine", "output_processor model_config"),
    Read("vllm.config", "ModelConfig", "served_model_name"),
)

READERS: Final = ("arrivals.py", "frontend.py", "requests.py", "scheduler.py")

# What things of vLLM's are called in our code, and what Python gives all of their kinds.
NAMED: Final = {"output", "outputs", "scheduler", "new", "cached", "engine", "event", "of_client"}
OF_ANY_KIND: Final = {"values", "items", "name"}


class Source:
    """The source of a version."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @functools.cache  # noqa: B019 - as long as the tests of this file
    def module(self, name: str) -> ast.Module:
        """A module; where it is a package, with what its files define."""
        path = self._root.joinpath(*name.split("."))
        files = sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
        if name == ENGINE:
            files = [path / "__init__.py"]
        trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
        return ast.Module([node for tree in trees for node in tree.body], [])

    def owner(self, module: str, name: str) -> ast.ClassDef | None:
        """A class of a module."""
        for node in self.module(module).body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return node
        return None

    def method(self, module: str, attribute: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """A method, by the path of a target."""
        name, method = attribute.split(".")
        owner = self.owner(module, name)
        for node in () if owner is None else owner.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == method:
                return node
        return None

    def has(self, module: str, owner: str, attribute: str) -> bool:
        """Whether a class defines an attribute: in its body, or by what a method of it sets."""
        found = self.owner(module, owner)
        return found is not None and attribute in set(_defined(found))


def _defined(owner: ast.ClassDef) -> Iterator[str]:
    for node in owner.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        for target in _targets(node):
            if isinstance(target, ast.Name):
                yield target.id
    for each in ast.walk(owner):
        for target in _targets(each):
            if isinstance(target, ast.Attribute) and last_name(target.value) == "self":
                yield target.attr


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []


@pytest.fixture(scope="module", params=parts.SOURCES)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def source(version: str) -> Source:
    return Source(parts.vllm_sources()[version])


# What is wrapped, and what is read


@pytest.mark.parametrize("target", THEIRS, ids=lambda target: target.attribute)
def test_what_is_wrapped_is_there(target: Target, source: Source) -> None:
    assert source.method(target.module, target.attribute) is not None


@pytest.mark.parametrize("target", THEIRS, ids=lambda target: target.attribute)
def test_nobody_takes_its_place_without_calling_it(target: Target, source: Source) -> None:
    """A subclass of the module's own folder that had a method of that name would not be timed."""
    name, method = target.attribute.split(".")
    package = target.module.rpartition(".")[0]
    for node in ast.walk(source.module(package)):
        if isinstance(node, ast.ClassDef) and name in map(last_name, node.bases):
            for function in functions(node):
                calls = [last_name(each.func) for each in _calls(function)]
                assert function.name != method or method in calls


def _calls(function: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(function) if isinstance(node, ast.Call)]


@pytest.mark.parametrize("read", READS, ids=lambda read: f"{read.owner}-{read.attributes}")
def test_what_is_read_is_there_or_known_to_be_lacking(
    read: Read, version: str, source: Source
) -> None:
    is_there = version not in read.lacking
    for attribute in read.attributes.split():
        assert source.has(read.module, read.owner, attribute) is is_there, attribute


def test_the_table_has_all_that_we_read_and_nothing_else() -> None:
    listed = {attribute for read in READS for attribute in read.attributes.split()}
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in map(OURS.joinpath, READERS)]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    asked = {node.value for node in nodes if isinstance(node, ast.Constant)}
    looked_at = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    of_theirs = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and last_name(node.value) in NAMED
    }
    assert of_theirs - OF_ANY_KIND <= listed
    assert listed <= asked | looked_at


# What else we rely on


def test_the_reasons_of_an_end_are_words(version: str, source: Source) -> None:
    (words,) = [
        ast.literal_eval(node.value)
        for node in source.module(ENGINE).body
        if isinstance(node, ast.Assign) and last_name(node.targets[0]) == "FINISH_REASON_STRINGS"
    ]
    assert "abort" in words
    assert ("error" in words) is (version != FIRST)
    assert source.has(ENGINE, "FinishReason", "__str__")


def test_what_a_request_carries_comes_back_with_each_output(source: Source) -> None:
    update = source.method(SCHEDULER, "Scheduler.update_from_output")
    made = [call for call in _calls(_some(update)) if last_name(call.func) == "EngineCoreOutput"]
    assert made
    for call in made:
        carried = {each.arg: ast.unparse(each.value) for each in call.keywords}
        assert carried["trace_headers"] == "request.trace_headers"
        assert carried["events"] == "request.take_events()"


def test_what_a_request_carries_goes_to_the_scheduler(source: Source) -> None:
    made = source.method(REQUEST, "Request.from_engine_core_request")
    carried = {
        each.arg: ast.unparse(each.value) for call in _calls(_some(made)) for each in call.keywords
    }
    assert carried["trace_headers"] == "request.trace_headers"


def test_stamps_are_of_the_monotonic_clock(source: Source) -> None:
    for attribute in ("EngineCoreEvent.new_event", "EngineCoreOutputs.__post_init__"):
        read = [ast.unparse(call) for call in _calls(_some(source.method(ENGINE, attribute)))]
        assert "time.monotonic()" in read


def test_a_request_leaves_the_states_before_its_span_is_made(source: Source) -> None:
    process = ast.unparse(_some(source.method(OUTPUTS, "OutputProcessor.process_outputs")))
    made_at = process.index("self.do_tracing(")
    left = (process.find("self.request_states.pop("), process.find("self._finish_request("))
    assert any(0 < at < made_at for at in left)
    made = _some(source.method(OUTPUTS, "OutputProcessor.do_tracing"))
    said = [node.value for node in ast.walk(made) if isinstance(node, ast.Constant)]
    assert NATIVE_SPAN in said


NAMES_OF_ARGUMENTS: Final = {
    "OutputProcessor.add_request": ["self", "request"],
    "OutputProcessor.process_outputs": ["self", "engine_core_outputs", "engine_core_timestamp"],
    "OutputProcessor.propagate_error": ["self", "e"],
    "OutputProcessor.do_tracing": ["self", "engine_core_output"],
    "Scheduler.add_request": ["self", "request"],
}


@pytest.mark.parametrize("attribute", NAMES_OF_ARGUMENTS)
def test_what_we_look_at_has_the_names_that_we_know(attribute: str, source: Source) -> None:
    module = SCHEDULER if attribute.startswith("Scheduler") else OUTPUTS
    names = NAMES_OF_ARGUMENTS[attribute]
    given = [each.arg for each in _some(source.method(module, attribute)).args.args]
    assert given[: len(names)] == names


def test_its_server_is_made_with_fastapi(version: str, source: Source) -> None:
    module = "openai.api_server" if version != LAST else "launchers.app"
    calls = [last_name(each.func) for each in _calls(source.module(f"vllm.entrypoints.{module}"))]
    assert "FastAPI" in calls


def test_the_plugins_are_loaded_in_both_processes(source: Source) -> None:
    assert "vllm.general_plugins" in [
        node.value
        for node in ast.walk(source.module("vllm.plugins"))
        if isinstance(node, ast.Constant)
    ]
    for module in ("vllm.engine.arg_utils", "vllm.v1.engine.core"):
        calls = [last_name(call.func) for call in _calls(source.module(module))]
        assert "load_general_plugins" in calls


def _some(method: ast.FunctionDef | ast.AsyncFunctionDef | None) -> Any:
    assert method is not None
    return method


# Whatever the signature


def signature_of(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Callable[..., Any]:
    """A function with the signature of a method: it hands over what it is given."""
    given = method.args
    for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
        if each is not None:
            each.annotation = None
    given.defaults = [ast.Constant(None) for _ in given.defaults]
    given.kw_defaults = [each and ast.Constant(None) for each in given.kw_defaults]
    names: dict[str, Any] = {}
    exec(f"def stub({ast.unparse(given)}):\n    return dict(locals())", names)
    stub: Callable[..., Any] = names["stub"]
    return stub


@pytest.mark.parametrize("target", THEIRS, ids=lambda target: target.attribute)
def test_a_wrapper_takes_the_arguments_of_every_version(target: Target, source: Source) -> None:
    stub = signature_of(_some(source.method(target.module, target.attribute)))
    owner: Any = type("Owner", (), {"plain": stub, "timed": wrap(stub, target.wrapper)})()
    names = [name for name in inspect.signature(stub).parameters if name != "self"]
    values = {name: SimpleNamespace(name=name) for name in names}
    with recorded():
        assert owner.timed(*values.values()) == owner.plain(*values.values())
        assert owner.timed(**values) == owner.plain(**values)
        for first in range(len(names)):
            some = dict(list(values.items())[first:])
            args = list(values.values())[:first]
            assert owner.timed(*args, **some) == owner.plain(*args, **some)
        with pytest.raises(TypeError, match="unknown"):
            owner.timed(**values, unknown=1)
