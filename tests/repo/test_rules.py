"""Each rule in checks/ catches a planted violation, accepts the right way, and holds here."""

from pathlib import Path
from typing import NamedTuple

import pytest

from checks.__main__ import main
from checks.rules import RULES
from tests.repo.programs import Plant

SDK = "src/llmlat_otel"
PROCESSOR = "collector_processor/llmlat_processor"
GUARD = "try:\n    read()\nexcept Exception:\n    count()\n"
FUNCTION_OF_51_LINES = "def long() -> None:\n" + "    step()\n" * 50
LOCK = (
    '[[package]]\nname = "x"\nsource = {{ registry = "{registry}" }}\n'
    '[[package]]\nname = "llmlat-otel"\n[package.metadata]\nrequires-dist = [{{ name = "x" }}]\n'
)
PROJECT = '[project]\nname = "llmlat-otel"\ndependencies = ["x>=1"]\n'
INDEX = "https://index.example.org/simple"


class Row(NamedTuple):
    """One tree: `text` stands at `path`, other files as in `others`; `finds` is what is said."""

    name: str
    rule: str
    path: str
    text: str
    finds: str = ""
    others: tuple[tuple[str, str], ...] = ()


CAUGHT = [
    Row(
        "Any in a file that meets nothing foreign",
        "any-crossings",
        f"{PROCESSOR}/stages/novelty.py",
        "from typing import Any, Final\n",
        "imports Any",
    ),
    Row("a module of 401 lines", "bounds", f"{SDK}/core/emit.py", "x = 1\n" * 401, "401 lines"),
    Row("a function of 51 lines", "bounds", "bench/cost.py", FUNCTION_OF_51_LINES, "has 51 lines"),
    Row(
        "a part whose functions are long in the middle",
        "bounds",
        f"{PROCESSOR}/window.py",
        "".join(f"def f{n}() -> None:\n" + "    step()\n" * 11 for n in range(3)),
        "median function of 12 lines",
    ),
    Row("a module named utils", "module-names", f"{SDK}/core/utils.py", "", "named utils"),
    Row("a package named _common", "module-names", "tests/_common/a.py", "", "named _common"),
    Row(
        "an attribute of ours as a literal",
        "contract-names",
        f"{SDK}/core/emit.py",
        'NAME = "llmlat.queue.duration"\n',
        "'llmlat.queue.duration'",
    ),
    Row(
        "an attribute of ours glued together",
        "contract-names",
        f"{PROCESSOR}/stages/annotate.py",
        'def name(phase: str) -> str:\n    return f"llmlat.{phase}.duration"\n',
        "'llmlat.'",
    ),
    Row(
        "a foreign attribute that the contract names",
        "contract-names",
        f"{SDK}/instrumentors/openai.py",
        'KEY = "server.address"\n',
        "'server.address'",
        (("semconv/llmlat_semconv/attributes.py", 'SERVER_ADDRESS = "server.address"\n'),),
    ),
    Row("a public module without __all__", "exports", f"{SDK}/testing.py", "", "without __all__"),
    Row(
        "exports out of order",
        "exports",
        f"{SDK}/__init__.py",
        'from llmlat_otel.core.a import b, c\n__all__ = ["c", "b"]\n',
        "not sorted",
    ),
    Row(
        "a public function that is not exported",
        "exports",
        f"{SDK}/__init__.py",
        'def phase() -> None:\n    """A phase."""\n\n\n__all__ = []\n',
        "phase is public but not in __all__",
    ),
    Row(
        "an export that does not exist",
        "exports",
        f"{SDK}/errors.py",
        '__all__ = ["Gone"]\n',
        "Gone, which does not exist",
    ),
    Row(
        "an export that is defined elsewhere without a docstring",
        "exports",
        f"{SDK}/__init__.py",
        'from llmlat_otel.core.manual import tool\n__all__ = ["tool"]\n',
        "tool is exported without a docstring",
        ((f"{SDK}/core/manual.py", "def tool() -> None: ...\n"),),
    ),
    Row("a third guard", "guards", f"{SDK}/core/clock.py", GUARD * 3, "one of 3 places"),
    Row("no guard at all", "guards", f"{SDK}/core/emit.py", "x = 1\n", "no place that catches"),
    Row(
        "a bare except that swallows",
        "guards",
        f"{SDK}/core/wrapping.py",
        f"{GUARD * 2}try:\n    read()\nexcept:\n    pass\n",
        "except BaseException that does not raise again",
    ),
    Row(
        "Exception hidden in suppress()",
        "guards",
        f"{SDK}/core/wrapping.py",
        f"{GUARD * 2}with suppress(ValueError, Exception):\n    read()\n",
        "one of 3 places",
    ),
    Row(
        "keywords through the guard",
        "guards",
        f"{SDK}/core/wrapping.py",
        f"{GUARD * 2}guarded(TARGET, read, *args, **kwargs)\n",
        "guarded() with keywords",
    ),
    Row(
        "a class in an __init__.py",
        "init-files",
        f"{PROCESSOR}/stages/critical_path/__init__.py",
        "class Walk:\n    pass\n",
        "implementation",
    ),
    Row(
        "a folder of somebody's machine",
        "machine-paths",
        "docs/concepts.md",
        "see /" + "home/ada/llmlat for more\n",
        "the path /h",
    ),
    Row(
        "an index of one's own",
        "packaging-files",
        "pyproject.toml",
        f'{PROJECT}[[tool.uv.index]]\nurl = "{INDEX}"\n',
        "sets index",
        (("uv.lock", LOCK.format(registry=INDEX)),),
    ),
    Row(
        "a lock made against a mirror with a port",
        "packaging-files",
        "uv.lock",
        LOCK.format(registry="http://127.0.0.1:8080/simple"),
        "127.0.0.1:8080",
        (("pyproject.toml", PROJECT),),
    ),
    Row(
        "a dependency that was never locked",
        "packaging-files",
        "uv.lock",
        LOCK.format(registry=INDEX),
        "y (no extra)",
        (("pyproject.toml", PROJECT.replace('"x>=1"', '"x>=1", "y"')),),
    ),
    Row("time outside the clock", "sdk-boundaries", f"{SDK}/core/emit.py", "import time\n", "time"),
    Row(
        "one function of time outside the clock",
        "sdk-boundaries",
        f"{SDK}/core/wrapping.py",
        "def now() -> int:\n    from time import monotonic_ns\n    return monotonic_ns()\n",
        "imports time",
    ),
    Row(
        "the OpenTelemetry SDK in core",
        "sdk-boundaries",
        f"{SDK}/core/emit.py",
        "from opentelemetry.sdk.trace import TracerProvider\n",
        "opentelemetry.sdk.trace",
    ),
    Row(
        "the trace API outside emit",
        "sdk-boundaries",
        f"{SDK}/core/propagation.py",
        "from opentelemetry import trace\n",
        "opentelemetry.trace",
    ),
    Row(
        "a span attribute set outside emit",
        "sdk-boundaries",
        f"{SDK}/instrumentors/openai.py",
        "def note(span) -> None:\n    span.set_attribute(KEY, 1)\n",
        "uses set_attribute",
    ),
    Row(
        "a proxy outside wrapping",
        "sdk-boundaries",
        f"{SDK}/core/instrumentor.py",
        "import wrapt\n\n\nclass Stream(wrapt.ObjectProxy):\n    pass\n",
        "uses ObjectProxy",
    ),
    Row(
        "an async method written after a sync one",
        "sync-twins",
        f"{SDK}/core/wrapping.py",
        "def read(s):\n    n = 0\n    for e in s:\n        mark(e)\n        n += 1\n"
        "    s.close()\n    return n\n\n\n"
        "async def aread(s):\n    n = 0\n    async for e in s:\n        mark(e)\n        n += 1\n"
        "    await s.aclose()\n    return n\n",
        "async aread() is a twin",
    ),
    Row(
        "a skipped test",
        "tests-form",
        "tests/a/test_b.py",
        "@pytest.mark.skipif(True)\ndef test_it():\n    assert 1\n",
        "pytest skipif",
    ),
    Row(
        "a test that sleeps",
        "tests-form",
        "tests/a/test_b.py",
        "def test_it():\n    time.sleep(1)\n    assert 1\n",
        "a sleep",
    ),
    Row(
        "a test that cannot fail",
        "tests-form",
        "tests/a/test_b.py",
        "def test_it():\n    call()\n",
        "asserts nothing",
    ),
    Row(
        "a dataclass without slots",
        "values",
        f"{PROCESSOR}/model.py",
        "@dataclass(frozen=True)\nclass Span:\n    name: str\n",
        "dataclass Span without slots",
    ),
]

ACCEPTED = [
    Row(
        "Any where objects of a library are read",
        "any-crossings",
        f"{SDK}/instrumentors/novelty.py",
        "from typing import Any\n",
    ),
    Row("a module of 400 lines", "bounds", f"{SDK}/core/emit.py", "x = 1\n" * 400),
    Row("long generated code", "bounds", "semconv/llmlat_semconv/attributes.py", "x = 1\n" * 900),
    Row(
        "attributes in a docstring and a module path",
        "contract-names",
        f"{SDK}/core/emit.py",
        '"""Writes llmlat.queue.duration."""\n\nTARGET = "openai.resources.chat"\n',
    ),
    Row(
        "documented, sorted exports",
        "exports",
        f"{SDK}/testing.py",
        'LIMIT = 1\n\n\nclass ManualClock:\n    """A clock."""\n\n\ndef fake() -> None:\n'
        '    """A fake."""\n\n\n__all__ = ["LIMIT", "ManualClock", "fake"]\n',
    ),
    Row(
        "two guards, and a marker that raises again",
        "guards",
        f"{SDK}/core/emit.py",
        f"{GUARD * 2}try:\n    read()\nexcept BaseException:\n    mark()\n    raise\n",
    ),
    Row(
        "what has keywords of its own, through the guard",
        "guards",
        f"{SDK}/core/emit.py",
        f"{GUARD * 2}guarded(TARGET, partial(read, *args, **kwargs))\n",
    ),
    Row(
        "an __init__.py with a public function",
        "init-files",
        f"{SDK}/__init__.py",
        '"""The SDK."""\n\nfrom a import b\n\n__all__ = ["b", "c"]\n\n\ndef c() -> None: ...\n',
    ),
    Row("a path of every Linux", "machine-paths", "docs/a.md", "reads /proc/sys/kernel and ~/a\n"),
    Row("a module with a name", "module-names", f"{SDK}/core/commonality.py", ""),
    Row(
        "a lock made from pyproject.toml",
        "packaging-files",
        "uv.lock",
        LOCK.format(registry=INDEX),
        others=(("pyproject.toml", PROJECT),),
    ),
    Row("time in the clock", "sdk-boundaries", f"{SDK}/core/clock.py", "import time\n"),
    Row(
        "a provider made by the one import",
        "sdk-boundaries",
        f"{SDK}/providing.py",
        "from opentelemetry import trace\nfrom opentelemetry.sdk.trace import TracerProvider\n",
    ),
    Row(
        "an event added through the emitter to a span whose type is named",
        "sdk-boundaries",
        f"{SDK}/core/manual.py",
        "from opentelemetry.trace import Span\n\n\ndef mark(sdk, span: Span) -> None:\n"
        "    sdk.emitter.add_event(span, NAME)\n",
    ),
    Row(
        "the two sides of one protocol, written out",
        "sync-twins",
        f"{SDK}/core/wrapping.py",
        "def __exit__(self, *a):\n    try:\n        return self.s.__exit__(*a)\n    finally:\n"
        "        end()\n\n\nasync def __aexit__(self, *a):\n    try:\n"
        "        return await self.s.__aexit__(*a)\n    finally:\n        end()\n",
    ),
    Row(
        "a test that expects an error and lets others run",
        "tests-form",
        "tests/a/test_b.py",
        "async def test_it():\n    await asyncio.sleep(0)\n    with pytest.raises(E):\n"
        "        f()\n",
    ),
    Row(
        "a frozen dataclass with slots",
        "values",
        f"{PROCESSOR}/model.py",
        "@dataclass(frozen=True, slots=True)\nclass Span:\n    name: str\n",
    ),
]


def name_of(row: Row) -> str:
    """The row's plain English name."""
    return row.name


@pytest.mark.parametrize("row", CAUGHT, ids=name_of)
def test_a_planted_violation_is_reported_with_its_file(
    row: Row, plant: Plant, tmp_path: Path
) -> None:
    for path, text in (*row.others, (row.path, row.text)):
        plant(path, text)
    found = RULES[row.rule](tmp_path)
    assert [v for v in found if row.path.startswith(v.path) and row.finds in v.what], found
    assert all(v.why and v.fix for v in found)


@pytest.mark.parametrize("row", ACCEPTED, ids=name_of)
def test_the_right_way_is_accepted(row: Row, plant: Plant, tmp_path: Path) -> None:
    for path, text in (*row.others, (row.path, row.text)):
        plant(path, text)
    assert [str(v) for v in RULES[row.rule](tmp_path)] == []


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_been_seen_to_fail_and_to_pass(rule: str) -> None:
    assert rule in {row.rule for row in CAUGHT}
    assert rule in {row.rule for row in ACCEPTED}


@pytest.mark.parametrize("rule", RULES)
def test_this_repository_follows_the_rule(rule: str, root: Path) -> None:
    assert [str(violation) for violation in RULES[rule](root)] == []


def test_the_runner_says_where_what_why_and_how_to_fix(
    plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(f"{SDK}/core/emit.py", "\nimport time\n")
    assert main(["sdk-boundaries", "module-names", "--root", str(tmp_path)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "sdk-boundaries: 1 violations"
    assert printed[1] == f"{SDK}/core/emit.py:2: imports time"
    assert printed[2].startswith("    why: ")
    assert printed[3].startswith("    fix: ")
    assert printed[4] == "module-names: ok"


def test_the_runner_is_content_with_a_clean_tree(tmp_path: Path) -> None:
    assert main(["module-names", "--root", str(tmp_path)]) == 0


def test_the_runner_refuses_a_rule_that_it_does_not_have(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["no-such-rule"])
    assert "no rule named no-such-rule" in capsys.readouterr().err
