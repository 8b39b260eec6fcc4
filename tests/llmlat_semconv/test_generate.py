"""What follows from the model is written out, is the same every time, and is never stale."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import check
import generate
from problems import UnreadableContractError
from resolve import load

Plant = Callable[[str, str, str], None]


def test_the_committed_files_are_fresh() -> None:
    assert generate.stale(load(check.SEMCONV), generate.SEMCONV.parent) == []


def test_every_generated_module_says_that_it_is_generated() -> None:
    modules = (check.SEMCONV / "llmlat_semconv").glob("*.py")
    silent = [path.name for path in modules if "GENERATED" not in path.read_text().split("\n")[0]]

    assert silent == ["__init__.py"]


def test_generating_twice_gives_the_same_bytes(contract: Path) -> None:
    assert generate.generated(load(contract)) == generate.generated(load(contract))


def test_what_is_written_is_fresh(contract: Path) -> None:
    root = ["--root", str(contract.parent)]

    assert generate.main(root) == 0
    assert generate.main([*root, "--check"]) == 0


def test_a_stale_file_is_named(
    contract: Path, plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    root = ["--root", str(contract.parent)]
    generate.main(root)
    plant("model/events.yaml", "brief: The parent has waited", "brief: The parent waited")

    assert generate.main([*root, "--check"]) == 1
    assert capsys.readouterr().err == (
        "semconv/llmlat_semconv/events.py: stale. Run `make semconv` and commit the result.\n"
    )


def test_a_released_snapshot_is_not_overwritten(
    contract: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    released = contract / "snapshots" / "0.1.0.yaml"
    released.write_text("untouched")

    assert generate.main(["--root", str(contract.parent), "--snapshot", "0.1.0"]) == 1
    assert "is released" in capsys.readouterr().err
    assert released.read_text() == "untouched"


def test_a_snapshot_can_be_forced_and_holds_what_is_committed(contract: Path) -> None:
    released = contract / "snapshots" / "0.1.0.yaml"
    released.write_text("untouched")

    generate.main(["--root", str(contract.parent), "--snapshot", "0.1.0", "--force"])

    assert released.read_text() == (check.SEMCONV / "snapshots" / "0.1.0.yaml").read_text()


def test_a_snapshot_is_of_the_model_s_own_version(
    contract: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate.main(["--root", str(contract.parent), "--snapshot", "0.2.0"]) == 1
    assert capsys.readouterr().err == "the model is version 0.1.0, not 0.2.0\n"


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        pytest.param(
            "model/manifest.yaml",
            ("schemas/0.1.0", "schemas/next"),
            "not a URL that ends in x.y.z",
            id="a version that is none",
        ),
        pytest.param(
            "templates.yaml",
            ("    over: llmlat.finding.kind\n", ""),
            "llmlat.finding.{member}: no `over`",
            id="a template without its enum",
        ),
    ],
)
def test_nothing_is_written_from_a_model_that_cannot_be_read(
    contract: Path, plant: Plant, file: str, change: tuple[str, str], message: str
) -> None:
    plant(file, *change)

    with pytest.raises(UnreadableContractError, match=re.escape(message)):
        load(contract)
    assert generate.main(["--root", str(contract.parent)]) == 2
    assert not (contract / "llmlat_semconv").exists()


def test_the_diagram_shares_an_edge_where_the_table_does() -> None:
    page = generate.generated(load(check.SEMCONV))["docs/phases.md"]

    assert "|-send-|=wait=|=first_content=|=stream=|-finalize-| |-backoff-|" in page
    assert "|----queue----|-prefill-|---decode--|-detokenize-|\n" in page
    assert "|-kv_transfer-|\n" in page
