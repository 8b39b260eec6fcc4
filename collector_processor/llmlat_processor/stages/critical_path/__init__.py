"""Two critical paths per root: to the first useful content and to the end.

tree ─> facts ─> calls ─> edges ─> accounts (walk + labels + exchange) ─> paths
└─> slack, ledger, what-if
"""

from llmlat_processor.stages.critical_path.paths import critical_paths

__all__ = ["critical_paths"]
