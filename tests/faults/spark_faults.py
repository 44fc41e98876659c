"""Spark in trouble (rows 4 and 5 of the matrix), with real spark-submit: what dies, is tried again, or lies about.

The driver is killed while a task writes; a Python worker is killed and its task tried again; each task fails once, or
runs twice at once; temporary and half-written files stand in the folder of staged files.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.deployment_rig import STREAM
from tests.faults.fault_class import Bench, Counts, FaultClass, Need
from tests.faults.file_faults_aftermath import check_files, settle
from tests.faults.local_faults_batch import Produced, make_deployment, plans_of, produce_mixture, quiet, rig_at
from wavestitch.contracts.errors import Altered, WavestitchError

_STAGED = Path("warehouse") / STREAM / "waveforms" / "data"
_SLOW = Path(__file__).with_name("spark_faults_slow_tasks")
_DEADLINE = 100


def make_spark_deployment(
    bench: Bench, seed: int, *, master: str = "local[2,4]", conf: str = ""
) -> tuple[Path, Produced]:
    produced = produce_mixture(bench.bootstrap, seed=seed)
    folder = make_deployment(
        bench.folder / "deployment",
        bootstrap=bench.bootstrap,
        topic=produced.topic,
        java_home=bench.java_home,
        spark=f'master = "{master}"\n{conf}',
    )
    return folder, produced


def run_once(folder: Path, plan_id: str | None = None) -> str:
    """How a batch through spark-submit ends, in one word."""
    try:
        found = rig_at(folder).run(plan_id=plan_id)
    except WavestitchError as error:
        return type(error).__name__
    return "nothing" if "nothing" in found else "done"


def conclude(folder: Path, produced: Produced, *ends: str) -> Counts:
    """The plan again, where it was not done; then batches until nothing is left."""
    check_files(folder, produced, tidy=False)
    again = [run_once(folder, plans_of(folder)[-1])] if ends[-1] != "done" else []
    assert set(again) <= {"done"}, f"carried through again it ended with {again}"
    quiet(folder)
    return settle(folder, produced, (*ends, *again))


@contextlib.contextmanager
def killing(folder: Path, words: str, *, once_written: bool) -> Iterator[list[int]]:
    """Kill one process whose command line has these words, as soon as it is there (and a task has begun to write)."""
    killed: list[int] = []
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.01):
            if once_written and not any(folder.glob(f"{_STAGED}/.*.tmp")):
                continue
            for pid in processes_with(words, below=os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                    return

    hunter = threading.Thread(target=look, daemon=True)
    hunter.start()
    try:
        yield killed
    finally:
        over.set()
        hunter.join()


def processes_with(words: str, *, below: int) -> list[int]:
    """Descendants of process `below` whose command line has the words."""
    lines: dict[int, str] = {}
    parent: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            lines[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            parent[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])

    def descends(pid: int) -> bool:
        while pid in parent and pid != below:
            pid = parent[pid]
        return pid == below

    return [pid for pid, line in lines.items() if words in line and pid != below and descends(pid)]


def driver_killed(bench: Bench, seed: int) -> Counts:
    """The JVM dies while a task writes."""
    folder, produced = make_spark_deployment(bench, seed)
    with slowly(), killing(folder, "org.apache.spark.deploy.SparkSubmit", once_written=True) as killed:
        end = run_once(folder)
    assert killed, "the driver was not killed"
    assert end == "Transient", f"with its driver killed the batch ended with {end}"
    return conclude(folder, produced, end)


def worker_killed(bench: Bench, seed: int) -> Counts:
    """A Python worker dies while it writes; Spark tries its task again."""
    folder, produced = make_spark_deployment(bench, seed)
    with slowly(), killing(folder, "pyspark.daemon", once_written=True) as killed:
        end = run_once(folder)
    assert killed, "no worker was killed"
    assert end == "done", f"with a worker killed, and tries left, the batch ended with {end}"
    return conclude(folder, produced, end)


def task_fails_once(bench: Bench, seed: int) -> Counts:
    """Each task fails at its first try, with an error that is nobody's."""
    folder, produced = make_spark_deployment(bench, seed)
    with slowly(STITCH_TEST_FAIL_FIRST=str(bench.folder / "failed")):
        end = run_once(folder)
    assert list((bench.folder / "failed").iterdir()), "no task failed"
    assert end == "done", f"with tries left the batch ended with {end}"
    return conclude(folder, produced, end)


def task_runs_twice(bench: Bench, seed: int) -> Counts:
    """Two attempts of each task write at once, as speculation makes them.

    Spark itself starts a copy on another host only, so the worker does: two attempts, side by side, in its process.
    """
    folder, produced = make_spark_deployment(bench, seed, conf='[spark.conf]\n"spark.speculation" = "true"\n')
    with slowly(STITCH_TEST_TWICE=str(bench.folder / "twice")):
        end = run_once(folder)
    assert list((bench.folder / "twice").iterdir()), "no task was run twice"
    assert end == "done", f"with every task run twice the batch ended with {end}"
    return conclude(folder, produced, end)


def stale_files(bench: Bench, seed: int) -> Counts:
    """What other jobs and dead tasks left: temporary folders, hidden halves, and half a file under a final name."""
    rng = random.Random(seed)
    folder, produced = make_spark_deployment(bench, seed)
    plant(folder)
    with slowly(), killing(folder, "org.apache.spark.deploy.SparkSubmit", once_written=True):
        first = run_once(folder)
    ends = [first, run_once(folder, plans_of(folder)[-1])]
    whole = {p: p.read_bytes() for p in folder.glob(f"{_STAGED}/*.parquet") if p.name != "planted.parquet"}
    assert ends[-1] == "done", ends
    # The next plan finds a name taken by half of what belongs there: said by name, and never taken for the whole.
    path, content = rng.choice(sorted(whole.items()))
    assert half_a_file_is_refused(bench, seed, content, path.name)
    return conclude(folder, produced, *ends)


def plant(folder: Path) -> None:
    """Leftovers in the folder of staged files, none of which may ever be published."""
    staged = folder / _STAGED
    (staged / "_temporary" / "0" / "task_0").mkdir(parents=True)
    (staged / "_temporary" / "0" / "task_0" / "part-0.parquet").write_bytes(b"PAR1 of a job that died")
    (staged / f".{'0' * 32}.tmp").write_bytes(b"PAR1" + bytes(1000))
    (staged / "planted.parquet").write_bytes(b"PAR1 and nothing else")


def half_a_file_is_refused(bench: Bench, seed: int, content: bytes, name: str) -> bool:
    """A file that is written once, where its name is taken by the first half of it."""
    from wavestitch.write_once import write_digested  # noqa: PLC0415

    folder = bench.folder / f"halves-{seed}"
    folder.mkdir()
    (folder / name).write_bytes(content[: len(content) // 2])
    try:
        write_digested(folder, lambda digest: name, lambda file: file.write(content))
    except Altered:
        return (folder / name).stat().st_size == len(content) // 2 and not list(folder.glob(".*"))
    return False


@contextlib.contextmanager
def slowly(**more: str) -> Iterator[None]:
    """Spark's Python workers load `spark_faults_slow_tasks/sitecustomize.py`; `more` tells it how to disturb."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="slow-tasks-") as folder:
        # Of our variables Spark's children see only those that every program needs: what else is to be known is a file.
        shutil.copy(_SLOW / "sitecustomize.py", folder)
        Path(folder, "disturb.json").write_text(json.dumps(more))
        os.environ["PYTHONPATH"] = os.pathsep.join([folder, *filter(None, [before.get("PYTHONPATH")])])
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


_KINDS: tuple[Callable[[Bench, int], Counts], ...] = (
    driver_killed,
    worker_killed,
    task_fails_once,
    task_runs_twice,
    stale_files,
)


def spark_in_trouble(bench: Bench, seed: int) -> Counts:
    return _KINDS[seed % len(_KINDS)](bench, seed)


CLASSES = (FaultClass("Spark in trouble", (4, 5), Need.BROKER, 10, (1,), spark_in_trouble),)
