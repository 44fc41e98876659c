"""docs/guarantees.md names tests and fault classes: each of them exists, and no fault or trap is left out."""

from __future__ import annotations

import re

from tests.conftest import ROOT
from tests.faults import broker_faults, local_faults

TEXT = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
MATRIX = TEXT.split("## The fault matrix")[1].split("## Traps")[0]
TRAPS = TEXT.split("## Traps")[1].split("## Limits")[0]


def test_every_test_that_is_named_is_there() -> None:
    sources = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", TEXT))
    missing = sorted(n for n in named if f"def {n}(" not in sources)
    assert missing == []
    paths = sorted(p for p in set(re.findall(r"`(tests/[\w/.]+)`", TEXT)) if not (ROOT / p).exists())
    assert paths == []


def test_every_fault_class_that_is_named_is_run_and_every_one_that_is_run_is_named() -> None:
    classes = {c.name for c in (*broker_faults.CLASSES, *local_faults.CLASSES)}
    rows = [line for line in MATRIX.splitlines() if line.startswith("|")]
    assert set(re.findall(r"\*([^*]+)\*", "\n".join(rows))) == classes


def test_every_row_of_the_matrix_and_every_trap_has_its_line() -> None:
    assert [int(n) for n in re.findall(r"^\| (\d+) \|", MATRIX, re.MULTILINE)] == list(range(1, 34))
    assert [int(n) for n in re.findall(r"^\| T(\d+) ", TRAPS, re.MULTILINE)] == list(range(1, 40))
