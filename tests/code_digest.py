"""What code was run: results that other code gave say nothing of this one."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

from tests.conftest import ROOT


@cache
def code_digest(folders: tuple[str, ...]) -> str:
    """Of every module in these folders that takes part, as it was when it was asked for first; tests themselves do not.
    What is said beside the code, in comments and docstrings, is no part of it."""
    seal = hashlib.sha256()
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.name.startswith("test_"):
                seal.update(f"{path.relative_to(ROOT)}\n{spoken(path)}\n".encode())
    return seal.hexdigest()[:16]


def spoken(path: Path) -> str:
    """The code of a module, however it is written down."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_a_remark(one)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_a_remark(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
