"""Config files as tests write them: read into a deployment, or into what is said of them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from llmlat_processor.config.deployment import Configured, read
from llmlat_processor.config.problems import ConfigError
from llmlat_processor.settings import Deployment

HOME = {"HOME": "/op"}

INLINE = "destinations: {spans: {endpoint: backend:4317}}\n"
TAP = "mode: tap\ndestinations: {derived: {endpoint: backend:4317}}\n"


def configured(
    content: str, environ: Mapping[str, str] | None = None, missing: Mapping[str, str] | None = None
) -> Configured:
    """What a file says.

    Args:
        content: of the file, indented as a whole or not.
        environ: variables beside the home.
        missing: files that cannot be read, with the reason.
    """
    faults = missing or {}

    def fault_of(file: Path) -> str:
        return faults.get(str(file), "")

    text = textwrap.dedent(content)
    return read("f.yaml", text.encode(), {**HOME, **(environ or {})}, fault_of)


def deployment(content: str, environ: Mapping[str, str] | None = None) -> Deployment:
    """The deployment of a file that can be used."""
    return configured(content, environ).deployment


def said(
    content: str, environ: Mapping[str, str] | None = None, missing: Mapping[str, str] | None = None
) -> list[str]:
    """All that is wrong with a file, without its name."""
    with pytest.raises(ConfigError) as refused:
        configured(content, environ, missing)
    return [line.removeprefix("f.yaml:").strip() for line in str(refused.value).splitlines()]
