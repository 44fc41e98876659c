"""Mutants of what no test runs in its own process: each is written into a copy of the tree, where tests start that.

Nobody sees from outside what another process runs, so which tests those are stands here.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.mutants.reach import ROOT

_A_BATCH = "tests/broker/test_whole_batch.py::test_ten_waveforms_arrive_and_the_offsets_move_last"
_BY_A_SPARK_THAT_IS_THERE = ("tests/domain/test_remote_spark.py", "tests/domain/test_preload.py", _A_BATCH)
TESTS: Mapping[str, tuple[str, ...]] = {
    "consumers/record_probe.py": ("tests/broker/test_log_view.py",),
    "consumers/unit_process.py": ("tests/unit/test_readers_that_die.py", "tests/broker/test_unit_reader.py"),
    "spark_apps/end_with_parent.py": (_A_BATCH,),
    "spark_apps/loaded_code.py": _BY_A_SPARK_THAT_IS_THERE,
    "spark_apps/reassemble.py": (_A_BATCH, "tests/security/test_a_whole_run.py"),
    "spark_apps/remote_task.py": _BY_A_SPARK_THAT_IS_THERE,
    "spark_apps/without_pandas.py": (_A_BATCH,),
    "spark_apps/worker_daemon.py": _BY_A_SPARK_THAT_IS_THERE,
    "spark_apps/warm_up.py": (_A_BATCH,),
    "wavestitch/batch/edges.py": ("tests/domain/test_batch_steps.py",),
    "wavestitch/batch/preload.py": ("tests/domain/test_preload.py",),
    "wavestitch/contracts/reasons.py": ("tests/unit/test_decide_examples.py",),
}
_SECONDS = 900
"""A run that takes longer has found something: the tests of a module take a minute or two."""
_TO_END_SECONDS = 60


def killed_in_copy(
    module: str, tests: Sequence[str], mutants: Sequence[Mutant], *, copy: Path
) -> Iterator[tuple[Mutant, bool]]:
    """Each of the module's, and whether a test fails on it. Raises `RuntimeError` where one fails on the product as it
    is."""
    path = copy / module
    as_it_is = path.read_text(encoding="utf-8")
    if _fail(tests, copy):
        raise RuntimeError(f"tests of {module} fail on the product as it is, {_log(copy)} says how")
    for mutant in mutants:
        path.write_text(mutant.source, encoding="utf-8")
        try:
            yield mutant, _fail(tests, copy)
        finally:
            path.write_text(as_it_is, encoding="utf-8")


def copy_tree(to: Path) -> None:
    """What is kept of it, as it is now; what was downloaded is the same."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    (to / ".wavestitch").mkdir()
    (to / ".wavestitch" / "cache").symlink_to((ROOT / ".wavestitch" / "cache").resolve())


def _fail(tests: Sequence[str], copy: Path) -> bool:
    options = ["-x", "-q", "-W", "ignore", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-o", "addopts=--import-mode=importlib", f"--rootdir={copy}"]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    with _log(copy).open("wb") as log:
        running = subprocess.Popen(
            command,
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            return running.wait(_SECONDS) != 0
        except subprocess.TimeoutExpired:
            return True
        finally:
            _end(running)


def _end(running: subprocess.Popen[bytes]) -> None:
    """Asked to, tests stop what they have started."""
    for with_signal in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(running.pid, with_signal)
        with suppress(subprocess.TimeoutExpired):
            running.wait(_TO_END_SECONDS)
            return


def _log(copy: Path) -> Path:
    return copy.with_suffix(".log")
