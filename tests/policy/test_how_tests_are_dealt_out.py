"""A run of the tests ends and says what failed, also where a worker dies in the middle (real pytest, real workers)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

_PYTEST = ["-m", "pytest", "-n", "2", "--no-loadscope-reorder", "-p", "no:cacheprovider", "--rootdir=.", "-q", "."]
_CONFTEST = """
from tests.two_processors import BothProcessors


def pytest_xdist_make_scheduler(config, log):
    return BothProcessors(config, log)
"""
_FILE = """
import os
import pytest


@pytest.mark.parametrize("number", range({tests}))
def test_here(number):
    with open({record!r}, "a") as record:
        print("{name}", number, file=record)
    if ("{name}", number) == ("test_3", 2):
        os.abort()
"""


def test_where_a_worker_dies_every_other_test_runs_once_and_the_run_ends(tmp_path: Path) -> None:
    record = tmp_path / "record"
    # Files of one test and of several: before the one that kills, after it, and more than a worker is given at once.
    tests = {f"test_{i}": 1 + i % 5 for i in range(12)}
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    for name, count in tests.items():
        (tmp_path / f"{name}.py").write_text(_FILE.format(tests=count, record=str(record), name=name))

    run = subprocess.run(
        [sys.executable, *_PYTEST],
        cwd=tmp_path,
        check=False,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )

    expected = sorted(f"{name} {number}" for name, count in tests.items() for number in range(count))
    assert run.returncode == 1, run.stdout + run.stderr
    assert f"1 failed, {sum(tests.values()) - 1} passed" in run.stdout, run.stdout
    assert sorted(record.read_text().splitlines()) == expected
