"""The model's YAML files as they stand on disk, read strictly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from problems import UnreadableContractError

MANIFEST = "model/manifest.yaml"
CONCRETE = "model/concrete.yaml"
TEMPLATES = "templates.yaml"
# Both make plain values only; the C one is several times faster where it is built in.
_LOADER: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML file: its path relative to the contract's folder, and what it says."""

    file: str
    content: dict[str, Any]


def _construct(text: str) -> Any:
    """Plain values of YAML text; a key given twice is refused, which PyYAML lets pass."""
    loader = _LOADER(text)
    try:
        node = loader.get_single_node()
        _refuse_twice(node)
        return loader.construct_document(node) if node else None
    finally:
        loader.dispose()


def _refuse_twice(node: yaml.Node | None) -> None:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_twice(item)
    elif isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value]
        if len(keys) != len(set(keys)):
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: a key given twice: {keys}")
        for _, value in node.value:
            _refuse_twice(value)


def read_document(root: Path, file: str) -> Document:
    """Reads one file.

    Raises:
        UnreadableContractError: The file is missing, is not YAML, or is not a mapping.
    """
    try:
        content = _construct((root / file).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UnreadableContractError(f"{file}: {error}") from error
    if not isinstance(content, dict):
        raise UnreadableContractError(f"{file}: not a mapping")
    return Document(file, content)


def read_model(root: Path) -> tuple[Document, ...]:
    """Reads the model's own files by name: neither the manifest nor what is generated from it.

    Raises:
        UnreadableContractError: There is none, or one of them cannot be read.
    """
    files = sorted(f"model/{path.name}" for path in (root / "model").glob("*.yaml"))
    own = [file for file in files if file not in (MANIFEST, CONCRETE)]
    if not own:
        raise UnreadableContractError(f"{root / 'model'}: no YAML files")
    return tuple(read_document(root, file) for file in own)
