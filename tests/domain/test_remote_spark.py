"""A Spark that is there already: who is let in, what is refused, and when tasks end."""

from __future__ import annotations

import gc
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from spark_apps import remote
from spark_apps.loaded_code import LOADED_CODE
from spark_apps.remote import stitch_remotely
from spark_apps.server import ConnectServer
from tests.domain.test_reassemble_spark import command, small_job, spark_of, stitch_there, wait_until
from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.contracts.spark_address import RemoteSpark, read_spark_address
from wavestitch.contracts.stitch_job import StitchReport
from wavestitch.local.loopback_port import free_ports
from wavestitch.local.process import session_members
from wavestitch.local.spark_server import SparkServer, start_spark_server, stop_spark_server

SOON = {
    "spark.connect.execute.reattachable.senderMaxStreamDuration": "2s",
    "spark.connect.execute.manager.detachedTimeout": "2s",
    "spark.connect.execute.manager.maintenanceInterval": "2s",
}


@pytest.fixture
def own_server(java_home: Path, tmp_path: Path) -> Iterator[SparkServer]:
    """One of the test's own, which it may kill; it notices soon that nobody listens."""
    folder = tmp_path / "spark"
    try:
        yield start_spark_server(folder=folder, program=ConnectServer(java_home, conf=SOON), say=print)
    finally:
        stop_spark_server(folder)


@pytest.fixture
def stopping_server(spark_server: SparkServer) -> Iterator[SparkServer]:
    """Some of its Python may be stopped: what is left of that goes on afterwards."""
    yield spark_server
    for process in workers(spark_server):
        with suppress(psutil.NoSuchProcess):
            process.resume()


def stuck_job(server: SparkServer, folder: Path) -> Path:
    """The path of a job whose task never ends: the Python that it is given was stopped while it had nothing to do."""
    for name in ("before", "stuck"):
        (folder / name).mkdir()
    stitch_there(server, small_job(folder / "before")[0])
    daemons_and_workers = workers(server)
    forked = [p for p in daemons_and_workers if p.ppid() in {other.pid for other in daemons_and_workers}]
    assert forked, "no Python waits for its next task"
    for process in forked:
        process.suspend()
    job, _ = small_job(folder / "stuck")
    (folder / "job.json").write_text(job.to_json())
    return folder / "job.json"


def workers(server: SparkServer) -> list[psutil.Process]:
    """Its Python: daemons and workers."""
    found = []
    for pid in session_members(server.pid):
        with suppress(psutil.NoSuchProcess):  # it ended meanwhile
            process = psutil.Process(pid)
            found += [process] if "spark_apps.worker_daemon" in command(process) else []
    return found


def at_work(server: SparkServer) -> bool:
    """Whether one that was stopped has got a task and is still there."""
    return any(_has_a_task(p) for p in workers(server))


def _has_a_task(process: psutil.Process) -> bool:
    try:
        if process.status() != psutil.STATUS_STOPPED:
            return False
        ports = {f"{connection.laddr.port:04X}" for connection in process.net_connections("tcp")}
    except psutil.NoSuchProcess:
        return False
    sockets = [line.split() for table in ("tcp", "tcp6") for line in Path("/proc/net", table).read_text().splitlines()]
    unread = {s[1].split(":")[1] for s in sockets[1:] if ":" in s[4] and int(s[4].split(":")[1], 16)}
    return bool(ports & unread)


def run_stuck(server: SparkServer, folder: Path, **how: object) -> StitchReport:
    job = stuck_job(server, folder)
    return stitch_remotely(spark_of(server), job_path=job, result_path=folder / "r.json", say=print, **how)  # type: ignore[arg-type]


def test_who_has_not_its_token_is_refused_in_one_sentence(tmp_path: Path, spark_server: SparkServer) -> None:
    job, _ = small_job(tmp_path)
    (tmp_path / "job.json").write_text(job.to_json())
    stranger = RemoteSpark(read_spark_address(spark_server.remote), "not-the-token")
    with pytest.raises(BadInput, match=rf"the Spark at {spark_server.remote} does not take our token; give its own"):
        stitch_remotely(stranger, job_path=tmp_path / "job.json", result_path=tmp_path / "r.json", say=print)
    assert "not-the-token" not in repr(stranger)


def test_where_no_spark_is_a_step_may_be_tried_again(tmp_path: Path) -> None:
    job, _ = small_job(tmp_path)
    (tmp_path / "job.json").write_text(job.to_json())
    nobody = RemoteSpark(read_spark_address(f"sc://127.0.0.1:{free_ports(1)[0]}"), "t")
    with pytest.raises(Transient, match="no Spark answers at sc://127"):
        stitch_remotely(nobody, job_path=tmp_path / "job.json", result_path=tmp_path / "r.json", say=print)


def test_a_spark_of_another_version_is_refused(
    tmp_path: Path, spark_server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyspark  # noqa: PLC0415

    monkeypatch.setattr(pyspark, "__version__", "3.5.9")
    with pytest.raises(BadInput, match=r"is 4\.\d\.\d+, and we speak to 3\.5\.9; start one of that version"):
        stitch_there(spark_server, small_job(tmp_path)[0])


def test_other_code_of_ours_stitches_nothing(
    tmp_path: Path, spark_server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "LOADED_CODE", "0" * 32)
    job, _ = small_job(tmp_path)
    with pytest.raises(BadInput, match=rf"runs other code of ours \({LOADED_CODE[:12]} .* than this step \(0000"):
        stitch_there(spark_server, job)
    assert not list(Path(job.output_folder).glob("*"))


def test_steps_one_after_another_share_what_python_the_server_has_started(
    tmp_path: Path, spark_server: SparkServer
) -> None:
    """Spark keeps a Python daemon for each session for ever: streams that had one each would fill the machine."""
    counts = []
    for n in range(4):
        (tmp_path / str(n)).mkdir()
        stitch_there(spark_server, small_job(tmp_path / str(n))[0])
        counts.append(len([p for p in workers(spark_server) if p.ppid() not in {w.pid for w in workers(spark_server)}]))
    assert counts[-1] == counts[0]


def test_two_steps_at_once_get_their_own_outcomes(tmp_path: Path, spark_server: SparkServer) -> None:
    jobs = []
    for n in range(2):
        (tmp_path / str(n)).mkdir()
        jobs.append(small_job(tmp_path / str(n))[0])
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda job: stitch_there(spark_server, job), jobs))
    for job, report in zip(jobs, reports, strict=True):
        assert [r.assignment for r in report.results] == list(job.assignments)
        assert all((Path(job.output_folder) / str(r.file)).exists() for r in report.results)


def test_no_step_waits_for_a_call_of_another(tmp_path: Path, spark_server: SparkServer) -> None:
    """Nor does a session that is collected, whenever that is: in a thread of gRPC's it would hold all steps up."""
    from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator  # noqa: PLC0415

    stands = threading.Event()
    other = ExecutePlanResponseReattachableIterator._get_or_create_release_thread_pool().submit(stands.wait)
    at_last = threading.Timer(60, stands.set)
    at_last.start()
    try:
        stitch_there(spark_server, small_job(tmp_path)[0])
        gc.collect()
        assert not other.done(), "the step has waited for it"
    finally:
        at_last.cancel()
        stands.set()


def test_a_step_that_is_out_of_time_leaves_no_task_behind(tmp_path: Path, stopping_server: SparkServer) -> None:
    with pytest.raises(Transient, match=r"still stitching after 6 s, and was told to end its tasks"):
        run_stuck(stopping_server, tmp_path, deadline_s=6)  # Spark says every two what is at work
    wait_until(lambda: not at_work(stopping_server), "the task outlived its step")


def test_who_hears_of_the_end_ends_the_tasks(tmp_path: Path, stopping_server: SparkServer) -> None:
    """As Airflow's `on_kill` does."""
    heard: list[Callable[[], None]] = []
    over = threading.Event()

    def end_it() -> None:
        while not over.wait(0.05):  # until its task has begun, there is none to be ended
            if at_work(stopping_server):
                heard[0]()

    listener = threading.Thread(target=end_it, daemon=True)
    listener.start()
    try:
        with pytest.raises(Transient, match="Spark gave the job up"):
            run_stuck(stopping_server, tmp_path, on_start=heard.append)
    finally:
        over.set()
    listener.join(30)
    wait_until(lambda: not at_work(stopping_server), "the task was not ended")


def test_a_server_that_dies_in_the_middle_is_transient(tmp_path: Path, own_server: SparkServer) -> None:
    killer = threading.Timer(2, os.killpg, (own_server.pid, signal.SIGKILL))
    with pytest.raises(Transient, match=r"no Spark answers at .* it died .* run the step again"):
        run_stuck(own_server, tmp_path, on_start=lambda _: killer.start())
    killer.join(30)


def test_the_tasks_of_a_step_that_was_killed_end_soon(tmp_path: Path, own_server: SparkServer) -> None:
    job = stuck_job(own_server, tmp_path)
    step = subprocess.Popen([sys.executable, "-c", _STEP, str(job), own_server.remote, own_server.token])
    try:
        wait_until(lambda: at_work(own_server), "no worker was at work")
    finally:
        step.kill()
        step.wait()
    wait_until(lambda: not at_work(own_server), "the task outlived its step")


_STEP = """
import sys
from pathlib import Path
from spark_apps.remote import stitch_remotely
from wavestitch.contracts.spark_address import RemoteSpark, read_spark_address
from wavestitch.secret_reference import resolve_secret
job = Path(sys.argv[1])
spark = RemoteSpark(read_spark_address(sys.argv[2]), resolve_secret(sys.argv[3]))
stitch_remotely(spark, job_path=job, result_path=job.with_name("r.json"), say=print)
"""


def test_its_token_is_in_no_argument_variable_or_log_and_its_port_on_loopback(
    tmp_path: Path, spark_server: SparkServer
) -> None:
    stitch_there(spark_server, small_job(tmp_path)[0])
    file = Path(spark_server.token.removeprefix("file:"))
    token = file.read_text()
    looked_at = set()
    for pid in session_members(spark_server.pid):
        with suppress(psutil.NoSuchProcess):  # a Python that has nothing to do may end at any time
            process = psutil.Process(pid)
            assert token not in " ".join(command(process))
            assert token not in process.environ().values()
            assert {c.laddr.ip for c in process.net_connections("tcp")} <= {"127.0.0.1", "::ffff:127.0.0.1"}
            looked_at.add(pid)
    assert spark_server.pid in looked_at
    for path in (file, file.with_name("spark.properties")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert token not in file.with_name("spark.log").read_text()


def test_one_that_was_started_with_other_code_is_started_again(
    tmp_path: Path, own_server: SparkServer, java_home: Path
) -> None:
    program = ConnectServer(java_home, conf=SOON)
    assert start_spark_server(folder=tmp_path / "spark", program=program, say=print) == own_server
    door = tmp_path / "spark" / "door.json"
    door.write_text(json.dumps({**json.loads(door.read_text()), "code": "older"}))
    token = Path(own_server.token.removeprefix("file:")).read_text()
    again = start_spark_server(folder=tmp_path / "spark", program=program, say=print)
    assert again.pid != own_server.pid
    assert Path(again.token.removeprefix("file:")).read_text() != token


def test_the_digest_of_the_code_is_read_with_the_code() -> None:
    """An update may come while a step reads: it must not be said of what was loaded before. In a worker it is read
    last, so that what it speaks of is loaded."""
    step = "import wavestitch.batch.deployment_edges, sys; print(*sys.modules)"
    worker = "import spark_apps.remote_task, sys; print(*sys.modules)"
    steps, workers = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        for code in (step, worker)
    )
    assert "spark_apps.loaded_code" in steps
    ours = [name for name in workers if name.split(".")[0] in ("spark_apps", "wavestitch")]
    assert ours[-2:] == ["spark_apps.loaded_code", "spark_apps.remote_task"]
