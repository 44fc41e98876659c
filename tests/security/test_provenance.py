"""What is installed and what is read by people is what somebody looked at (check 10)."""

from __future__ import annotations

import os
import re
import subprocess
import unicodedata
from pathlib import Path

import pytest

from tests.conftest import ROOT

LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
TEXTS = ("*.py", "*.md", "*.sh", "*.toml", "*.yaml", "Makefile")


@pytest.mark.parametrize("lock", [p for p in LOCKS if p.name != "overrides.txt"], ids=lambda p: p.name)
def test_every_requirement_is_pinned_by_version_and_hash(lock: Path) -> None:
    found = re.split(r"\n(?=\S)", re.sub(r"(?m)^#.*\n", "", lock.read_text()).strip())
    assert found
    for requirement in found:
        assert re.match(r"[A-Za-z0-9._\[\],-]+==\S+", requirement), f"{lock.name}: no version: {requirement[:80]}"
        assert "--hash=sha256:" in requirement, f"{lock.name}: no hash: {requirement[:80]}"


def test_every_jar_is_pinned_by_its_digest() -> None:
    lines = (ROOT / "wavestitch" / "local" / "jars.sha256").read_text().split("\n")
    digests = [line for line in lines if line and not line.startswith("#")]
    assert len(digests) > 40
    assert all(re.match(r"[0-9a-f]{64}\s+\S+\.jar$", line) for line in digests)


def test_no_text_of_ours_hides_what_it_says() -> None:
    """Characters that are not shown, or turn the order of others around, make code read as something else."""
    for pattern in TEXTS:
        for path in ROOT.rglob(pattern):
            if any(part.startswith(".") for part in path.relative_to(ROOT).parts[:-1]):
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
                hidden = [c for c in line if unicodedata.category(c) in ("Cf", "Co", "Cn") and c != "\u00ad"]
                assert not hidden, f"{path.relative_to(ROOT)}:{number} holds {hidden!r}"


def test_what_installs_the_rest_is_the_pinned_one_even_where_another_is_on_path(tmp_path: Path) -> None:
    (tmp_path / "uv").write_text("#!/bin/sh\necho another uv\n")
    (tmp_path / "uv").chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    argv = [str(ROOT / "scripts" / "uv.sh"), "--version"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300, check=True)
    pinned = re.search(r"^uv==(\S+)", (ROOT / "requirements" / "uv.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    assert done.stdout.startswith(f"uv {pinned[1]}")
