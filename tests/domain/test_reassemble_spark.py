"""The reassembly through real spark-submit and on a real Spark that is there: ten layouts in one job, and what becomes
of it when things go wrong.

Proves I3 (bytes), I5 (the app ends with its step, and by its deadline) and that errors keep their class on the way.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from spark_apps.remote import stitch_remotely
from spark_apps.stitching import stitch_assignment
from spark_apps.submit import submit_reassembly
from tests.domain.landed_corpus import LAYOUTS, NOON_NS, Sent, random_waveform
from tests.domain.stitch_rig import Landed, land_corpus, make_job, staged
from wavestitch.contracts.errors import Altered, Transient
from wavestitch.contracts.spark_address import RemoteSpark, read_spark_address
from wavestitch.contracts.stitch_job import StitchJob, StitchReport
from wavestitch.local.spark_server import SparkServer
from wavestitch.secret_reference import resolve_secret

SEED = 7
CONF = {"spark.executorEnv.NOTE": "a=b:c ü\\ \n"}


def submit(job: StitchJob, *, say: Callable[[str], None] = print, deadline_s: float = 300) -> StitchReport:
    folder = Path(job.folder)
    (folder / "job.json").write_text(job.to_json())
    return submit_reassembly(
        job_path=folder / "job.json",
        result_path=folder / "report.json",
        master="local[2]",
        conf=CONF,
        java_home=None,
        say=say,
        deadline_s=deadline_s,
    )


def stitch_there(server: SparkServer, job: StitchJob, *, say: Callable[[str], None] = print) -> StitchReport:
    folder = Path(job.folder)
    (folder / "job.json").write_text(job.to_json())
    spark = spark_of(server)
    return stitch_remotely(spark, job_path=folder / "job.json", result_path=folder / "report.json", say=say)


def spark_of(server: SparkServer) -> RemoteSpark:
    return RemoteSpark(read_spark_address(server.remote), resolve_secret(server.token))


@pytest.fixture(params=["spark-submit", "a Spark that is there"])
def stitch(request: pytest.FixtureRequest) -> Callable[..., StitchReport]:
    if request.param == "spark-submit":
        return submit
    return partial(stitch_there, request.getfixturevalue("spark_server"))


def small_job(folder: Path) -> tuple[StitchJob, Landed]:
    sent = [Sent("w", list(range(100)), [50, 50])]
    landed = land_corpus(folder, random.Random(SEED), sent, layout="sticky", files=1)
    return make_job(folder, [landed]), landed


def test_ten_layouts_come_out_of_spark_as_they_were_sent(tmp_path: Path, stitch: Callable[..., StitchReport]) -> None:
    rng = random.Random(SEED)
    corpora = []
    for n in range(10):
        sent = [
            random_waveform(rng, f"layout {n}/{w}", start_time_ns=NOON_NS + rng.randint(0, 3) * 6 * 3600 * 10**9)
            for w in range(rng.randint(1, 25))
        ]
        layout, files = LAYOUTS[n % 3], rng.randint(1, 8)
        corpora.append(land_corpus(tmp_path / str(n), rng, sent, layout=layout, files=files))
    job = make_job(tmp_path, corpora, encoding="small", tasks=8)
    said: list[str] = []
    report = stitch(job, say=said.append)
    assert staged(job, report.results) == {k: v for c in corpora for k, v in c.expected().items()}
    assert [r.assignment for r in report.results] == list(job.assignments)
    assert said
    # Where a task runs makes no difference: this process gives the same names and counters.
    assert report.results == tuple(stitch_assignment(job, a) for a in job.assignments)
    assert not list(tmp_path.rglob("*.tmp"))


def test_an_altered_byte_is_altered_again_in_the_step_that_submitted(
    tmp_path: Path, stitch: Callable[..., StitchReport]
) -> None:
    job, landed = small_job(tmp_path)
    [path] = landed.files
    content = bytearray(path.read_bytes())
    content[content.index(landed.sent[0].raw[:100])] ^= 1
    path.write_bytes(content)
    with pytest.raises(Altered, match=f"landing file {path} row") as caught:
        stitch(job)
    assert caught.value.facts["file"] == str(path)
    assert not (tmp_path / "report.json").exists()


def test_nothing_to_stitch_starts_no_spark(tmp_path: Path, stitch: Callable[..., StitchReport]) -> None:
    job, _ = small_job(tmp_path)
    empty = StitchJob(
        job.plan_id, job.topic_id, job.folder, job.output_folder, job.samples, job.encoding, job.files, ()
    )
    began = time.monotonic()
    assert stitch(empty) == StitchReport(job.plan_id, ())
    assert time.monotonic() - began < 2
    assert not (tmp_path / "report.json.log").exists()


def test_an_app_that_is_not_done_by_its_deadline_is_ended(tmp_path: Path) -> None:
    job, _ = small_job(tmp_path)
    with pytest.raises(Transient, match=r"still running after 1 s .*report\.json\.log"):
        submit(job, deadline_s=1)
    assert_gone(tmp_path)


def test_an_app_without_a_word_is_transient_with_the_last_line_of_its_log(tmp_path: Path) -> None:
    job, _ = small_job(tmp_path)
    (tmp_path / "job.json").write_text(job.to_json())
    with pytest.raises(Transient, match=r"exit code 1\b.*report\.json\.log") as caught:
        submit_reassembly(
            job_path=tmp_path / "job.json",
            result_path=tmp_path / "report.json",
            master="no-such-master",
            conf={},
            java_home=None,
            say=print,
        )
    assert caught.value.facts["exit_code"] == 1


def test_the_app_and_its_workers_end_when_the_step_is_killed(tmp_path: Path) -> None:
    job, landed = small_job(tmp_path)
    (tmp_path / "job.json").write_text(job.to_json())
    landed.files[0].unlink()
    os.mkfifo(landed.files[0])  # nobody ever writes to it: the worker waits in the middle of its task
    step = psutil.Popen([sys.executable, "-c", _STEP, str(tmp_path)], start_new_session=True)
    family: list[psutil.Process] = []
    try:

        def a_worker_is_at_work() -> bool:
            family[:] = step.children(recursive=True)
            return sum("pyspark.daemon" in command(p) for p in family) > 1

        wait_until(a_worker_is_at_work, "no Python worker was started")
    finally:
        step.kill()
        step.wait()
    wait_until(lambda: not any(command(p) for p in family), "something outlived the step")


_STEP = """
import sys
from pathlib import Path
from spark_apps.submit import submit_reassembly
folder = Path(sys.argv[1])
submit_reassembly(job_path=folder / "job.json", result_path=folder / "report.json", master="local[1]", conf={},
                  java_home=None, say=lambda text: print(text, flush=True))
"""


def command(process: psutil.Process) -> list[str]:
    """Its arguments; none where it is gone or dead."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def mentioning(folder: Path) -> list[psutil.Process]:
    """Processes, other than this one, whose command names the folder."""
    found = psutil.process_iter(["pid", "name", "cmdline"])
    return [p for p in found if p.pid != os.getpid() and any(str(folder) in a for a in p.info["cmdline"] or ())]


def assert_gone(folder: Path) -> None:
    wait_until(lambda: not mentioning(folder), "the app outlived its step")


def wait_until(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + 120  # a bound on a busy machine, not a wait
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)  # between two looks at a condition
