"""The configs that are shipped are right, as far as the real Collector can be built to tell."""

from __future__ import annotations

import subprocess
from copy import deepcopy
from pathlib import Path

import pytest

from tests.integration.collector.collectors import Config, collector, shipped

pytestmark = pytest.mark.peers

LEFT_OUT = {"inline": {"tail_sampling"}, "tap": set(), "sharded": {"load_balancing"}}


def validated(config: Config, folder: Path) -> subprocess.CompletedProcess[str]:
    program, *arguments = collector(config, folder)
    command = [program, "validate", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", LEFT_OUT)
def test_the_collector_takes_it(name: str, tmp_path: Path) -> None:
    config = shipped(name)
    assert config.left_out == LEFT_OUT[name]
    ended = validated(config.config, tmp_path)
    assert ended.returncode == 0, ended.stderr


def test_it_would_not_take_a_key_that_does_not_exist(tmp_path: Path) -> None:
    config = deepcopy(shipped("inline").config)
    config["exporters"]["otlp_grpc/llmlat"]["sending_queue"]["storrage"] = "file_storage"
    ended = validated(config, tmp_path)
    assert ended.returncode != 0
    assert "storrage" in ended.stderr


@pytest.mark.parametrize("name", LEFT_OUT)
def test_sampling_stands_behind_the_processor(name: str) -> None:
    """What goes to the processor is not sampled yet, and what comes back is, if anything."""
    (whole,) = [shipped(name).config]
    for pipeline, parts in whole["service"]["pipelines"].items():
        is_sampled = any("sampl" in each for each in parts["processors"])
        assert not is_sampled or pipeline == "traces/out"
