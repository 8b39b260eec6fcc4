"""Every snippet in the documents is run or checked, so that the documents stay true.

What a fence says decides what happens to its block:

    python   run; the blocks of one file share one namespace, in order. One that begins with a name,
             `# acme.py`, is a file of that name instead, and is tested if it is `# test_acme.py`
    console  run; lines after `$ ` are commands, what follows is their output (`...` is anything)
    sh       every command line exists: make targets, `llmlat` commands and options, files, extras
    json, toml, yaml    parse
    text, mermaid       are shown only

A fence that says anything else, or nothing, is refused. Snippets run in a folder of their own that
shows this repository's files, with a model server on loopback behind the OPENAI_* variables.
"""

import doctest
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from checks.packaging_files import toml
from checks.tree import text_files

ROOT = Path(__file__).parents[2]
DOCUMENTS = [path for path, _ in text_files(ROOT) if path.endswith(".md")]

_FENCE = re.compile(r"^( *)```(\S*)[^\n]*\n(.*?)^\1```\s*$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# (\w+\.py)\n")
_PATIENCE_S = 60
_NOT_FOR_SNIPPETS = ("OTEL_", "LLMLAT_", "MAKE", "MFLAGS")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A fenced block: its language, its text, and the line of the document that it starts at."""

    language: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where snippets run: a folder, and the variables that they see."""

    folder: Path
    variables: Mapping[str, str]

    def run(self, command: list[str] | str) -> subprocess.CompletedProcess[str]:
        """Runs a program, or a line in the shell, its errors among its output."""
        return subprocess.run(
            command,
            shell=isinstance(command, str),
            cwd=self.folder,
            env=dict(self.variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )

    def write(self, snippet: Snippet) -> str:
        """Writes a file if the snippet is one; its name, empty if it is none."""
        name = _NAME.match(snippet.text)
        if name is not None:
            (self.folder / name[1]).write_text(snippet.text, encoding="utf-8")
        return "" if name is None else name[1]


@pytest.fixture
def place(tmp_path: Path, model_server: str) -> Place:
    """A folder that shows our files, with our programs on PATH and a server behind OPENAI_*."""
    for shown in ROOT.iterdir():
        if not shown.name.startswith(".") or shown.name == ".venv":
            (tmp_path / shown.name).symlink_to(shown)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(_NOT_FOR_SNIPPETS)}
    ours = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": f"{model_server}/v1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": model_server,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }
    return Place(tmp_path, {**inherited, **ours})


def snippets(document: str) -> list[Snippet]:
    """The fenced blocks of a document, in order."""
    return [
        Snippet(m.group(2), m.group(3), document.count("\n", 0, m.start(3)) + 1)
        for m in _FENCE.finditer(document)
    ]


def problems(document: str, place: Place) -> list[str]:
    """What is not true in a document's snippets, each with its line."""
    found = snippets(document)
    python = [snippet for snippet in found if snippet.language == "python"]
    tests = [name for name in map(place.write, python) if name.startswith("test_")]
    return [
        *(f"line {s.line}: {p}" for s in found for p in CHECKS.get(s.language, _refuse)(s, place)),
        *_run_python([each for each in python if not _NAME.match(each.text)], place),
        *_run_tests(tests, place),
    ]


def _run_python(blocks: list[Snippet], place: Place) -> Iterator[str]:
    """Blocks of one document as one program whose line numbers are those of the document."""
    program = ""
    for block in blocks:
        program += "\n" * (block.line - 1 - program.count("\n")) + block.text
    if program:
        (place.folder / "snippets.py").write_text(program, encoding="utf-8")
        result = place.run([sys.executable, "snippets.py"])
        if result.returncode:
            yield f"python failed:\n{result.stdout}"


def _run_tests(names: list[str], place: Place) -> Iterator[str]:
    for name in names:
        result = place.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name])
        if result.returncode:
            yield f"{name} failed:\n{result.stdout}"


def _run_console(snippet: Snippet, place: Place) -> Iterator[str]:
    for session in re.split(r"^\$ ", snippet.text, flags=re.MULTILINE)[1:]:
        command, _, want = session.partition("\n")
        got = place.run(command).stdout
        if not doctest.OutputChecker().check_output(_plain(want), _plain(got), doctest.ELLIPSIS):
            yield f"`{command}` printed\n{got}"


def _plain(text: str) -> str:
    """Without blanks at the ends of lines and of the text, which nobody can see."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


def _check_shell(snippet: Snippet, place: Place) -> Iterator[str]:
    for line in snippet.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words and re.match(r"\w+=", words[0]):
            words.pop(0)
        if words:
            check = COMMANDS.get(Path(words[0]).name, _unknown_command)
            yield from (f"`{line.strip()}`: {problem}" for problem in check(words[1:], place))


def _check_make(words: list[str], place: Place) -> Iterator[str]:
    result = place.run(["make", "--dry-run", "--directory", str(ROOT), *words])
    if result.returncode:
        yield result.stdout


def _check_llmlat(words: list[str], place: Place) -> Iterator[str]:
    command = [word for word in words[:1] if not word.startswith("-")]
    help_text = place.run(["llmlat", *command, "--help"])
    if help_text.returncode:
        yield help_text.stdout
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("-") and option not in re.findall(r"[\w-]+", help_text.stdout):
            yield f"there is no option {option}"


def _check_python(words: list[str], place: Place) -> Iterator[str]:
    if words[:1] == ["-m"]:
        if importlib.util.find_spec(words[1].partition(".")[0]) is None:
            yield f"there is no module {words[1]}"
    elif words[:1] != ["-c"]:
        yield from (f"there is no {w}" for w in words[:1] if not (place.folder / w).exists())


def _check_install(words: list[str], place: Place) -> Iterator[str]:
    """`pip install 'llmlat-otel[extra]'`: the extra exists."""
    project = toml((place.folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extras in re.findall(r"llmlat-otel\[([\w,-]+)\]", " ".join(words)):
        missing = set(extras.split(",")) - set(project["optional-dependencies"])
        yield from (f"there is no extra {extra}" for extra in sorted(missing))


def _check_nothing(words: list[str] | Snippet, place: Place) -> Iterator[str]:
    yield from ()


def _unknown_command(words: list[str], place: Place) -> Iterator[str]:
    yield "nobody checks this command; run it in a `console` block or show it as `text`"


def _refuse(snippet: Snippet, place: Place) -> Iterator[str]:
    yield f"a fence says what is in it, and {snippet.language!r} is none of {', '.join(CHECKS)}"


def _parses(parse: Callable[[str], object], error: type[Exception]) -> "Check":
    def check(snippet: Snippet, place: Place) -> Iterator[str]:
        try:
            parse(snippet.text)
        except error as reason:
            yield f"does not parse: {reason}"

    return check


Check = Callable[[Snippet, Place], Iterator[str]]

CHECKS: Mapping[str, Check] = {
    "python": _check_nothing,  # all blocks together, by _run_python
    "console": _run_console,
    "sh": _check_shell,
    "json": _parses(json.loads, ValueError),
    "toml": _parses(toml, ValueError),
    "yaml": _parses(yaml.safe_load, yaml.YAMLError),
    "text": _check_nothing,
    "mermaid": _check_nothing,
}

COMMANDS: Mapping[str, Callable[[list[str], Place], Iterator[str]]] = {
    "make": _check_make,
    "llmlat": _check_llmlat,
    "python": _check_python,
    "pytest": _check_nothing,
    "pip": _check_install,
    "cd": _check_nothing,
    "git": _check_nothing,
    "export": _check_nothing,
}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_snippet_is_true(document: str, place: Place) -> None:
    assert problems((ROOT / document).read_text(encoding="utf-8"), place) == []


FALSE = {
    "python that raises, with its line": ("python", "x = 1\ny = x / 0\n", "line 4"),
    "a test that fails": ("python", "# test_x.py\ndef test_x():\n    assert 1 == 2\n", "1 == 2"),
    "output that is not printed": ("console", "$ echo one\ntwo\n", "`echo one` printed"),
    "a target that does not exist": ("sh", "make coffee\n", "coffee"),
    "a command that does not exist": ("sh", "llmlat brew\n", "invalid choice"),
    "an option that does not exist": ("sh", "llmlat --sugar\n", "no option --sugar"),
    "a script that does not exist": ("sh", "python examples/coffee.py\n", "no examples/coffee.py"),
    "an extra that does not exist": ("sh", "pip install llmlat-otel[tea]\n", "no extra tea"),
    "a command that nobody checks": ("sh", "brew coffee\n", "nobody checks"),
    "JSON that does not parse": ("json", "{'a': 1}\n", "does not parse"),
    "a fence that does not say what it is": ("", "x\n", "a fence says"),
}


@pytest.mark.parametrize(("language", "text", "says"), FALSE.values(), ids=FALSE)
def test_a_false_snippet_is_reported(language: str, text: str, says: str, place: Place) -> None:
    found = problems(f"\n```{language}\n{text}```\n", place)
    assert says in "\n".join(found)


def test_true_snippets_are_accepted(place: Place) -> None:
    document = (
        "```python\nfrom openai import OpenAI\n\nclient = OpenAI()\n```\n"
        "then\n"
        "```python\nask = [{'role': 'user', 'content': 'Hi'}]\n"
        "for stream in (True, False):\n"
        "    got = client.chat.completions.create(model='m', messages=ask, stream=stream)\n"
        "    print(list(got) if stream else got.choices[0].message.content)\n```\n"
        "```python\n# lamp.py\nLIGHT = 1\n```\n"
        "```python\n# test_lamp.py\nimport lamp\n\ndef test_it():\n    assert lamp.LIGHT\n```\n"
        "```console\n$ echo one; echo two\none\n...\n$ ls README.md\nREADME.md\n```\n"
        "```sh\nmake test ARGS=-x  # all of them\npip install 'llmlat-otel[processor]'\n```\n"
        "```toml\na = 1\n```\n```yaml\na: 1\n```\n```text\nanything\n```\n"
    )
    assert problems(document, place) == []
