"""What code was run: results that other code gave say nothing of this one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from tests.conftest import ROOT


def code_digest(folders: Iterable[str]) -> str:
    """Of every module in these folders that takes part; tests themselves do not."""
    seal = hashlib.sha256()
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.name.startswith("test_"):
                seal.update(path.read_bytes())
    return seal.hexdigest()[:16]
