"""Cases of the campaign run side by side: each once, none begun too late, and no process stays."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.faults import campaign
from tests.faults.campaign import Provisions, Worker


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[subprocess.Popen[str]]:
    """The workers' processes, as they are started."""
    started: list[subprocess.Popen[str]] = []
    real = Worker._start

    def start(worker: Worker) -> subprocess.Popen[str]:
        started.append(real(worker))
        return started[-1]

    monkeypatch.setattr(Worker, "_start", start)
    monkeypatch.setattr(campaign, "STATE", tmp_path)
    return started


PROVISIONS = [Provisions(Path("no-java"), Path("no-jars"))] * 2
CASES = [("a class that nobody has", seed) for seed in range(5)]


def test_each_is_run_once_and_what_becomes_of_it_is_a_run(ended: list[subprocess.Popen[str]]) -> None:
    runs = list(campaign._runs(PROVISIONS, CASES, until=time.monotonic() + 300))
    assert sorted((run["class"], run["seed"]) for run in runs) == CASES
    assert all(not run["ok"] and "KeyError" in run["error"] for run in runs)
    assert len(ended) == 2, "each worker goes on with the next case"
    assert all(child.poll() is not None for child in ended)


def test_none_is_begun_when_the_time_is_over(ended: list[subprocess.Popen[str]]) -> None:
    assert list(campaign._runs(PROVISIONS, CASES, until=time.monotonic())) == []
    assert not ended


def test_who_looks_no_further_leaves_no_process(ended: list[subprocess.Popen[str]]) -> None:
    runs = campaign._runs(PROVISIONS, CASES, until=time.monotonic() + 300)
    next(runs)
    runs.close()
    assert ended
    assert all(child.poll() is not None for child in ended)
