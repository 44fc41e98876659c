"""Runs our Spark apps through spark-submit, as a child that never outlives its step.

The exit code of spark-submit says only that something failed: the app leaves its error in a file, and it is raised
here again. Never imports pyspark.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from spark_apps.leave_error import error_file
from wavestitch.child_environment import child_environment
from wavestitch.contracts.errors import BadInput, Transient, WavestitchError, error_from_json
from wavestitch.contracts.redaction import spark_redaction
from wavestitch.contracts.stitch_job import StitchJob, StitchReport, stitch_job_from_json, stitch_report_from_json
from wavestitch.modes import MASK, open_new
from wavestitch.plain_files import open_plain, plain_text
from wavestitch.write_once import write_first

APPLICATION = Path(__file__).with_name("reassemble.py")
DEADLINE_SECONDS = 3600.0
HEARTBEAT_SECONDS = 5.0
_ENDING_SECONDS = 10.0
_OUT_OF_MEMORY_CODES = (52, 137)  # Spark's own, and killed by the kernel

_DEFAULTS = {
    "spark.app.name": "wavestitch reassemble",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # Nothing of this is on by default. Whoever reaches a port of the app's is asked for its secret, and cannot listen.
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.master.rest.enabled": "false",
}
_REDACTION = "spark.redaction.regex"
JVM_OPTIONS = "spark.driver.extraJavaOptions"
# The JVM only deals out names: it is gone before optimised code would have paid for its compilation.
# In its memory there may be samples: where it crashes, they stay there.
LOCAL_JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-CreateCoredumpOnCrash"
_LOCAL_DEFAULTS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    JVM_OPTIONS: LOCAL_JVM_OPTIONS,
}


def submit_reassembly(
    *,
    job_path: Path,
    result_path: Path,
    master: str,
    conf: Mapping[str, str],
    java_home: Path | None,
    say: Callable[[str], None],
    environment: Sequence[str] = (),
    deadline_s: float = DEADLINE_SECONDS,
) -> StitchReport:
    """Run the job and return its report; a report that an earlier run left stands.

    `conf` overrides the defaults. The app's output is appended to `{result_path}.log`. Raises the error that the app
    left; `Transient` with the log's last line where it left none, or where `deadline_s` passed.
    """
    job = stitch_job_from_json(plain_text(job_path))
    if not job.assignments:
        write_first(result_path, StitchReport(job.plan_id, ()).to_json())
        return stitch_report_from_json(plain_text(result_path))
    submit_app(
        APPLICATION,
        job_path=job_path,
        result_path=result_path,
        master=master,
        conf=conf,
        java_home=java_home,
        progress=partial(assignments_written, job),
        say=say,
        environment=environment,
        deadline_s=deadline_s,
    )
    return stitch_report_from_json(plain_text(result_path))


def assignments_written(job: StitchJob) -> str:
    """How far the job is, as its folder shows it."""
    tasks, folder = len(job.assignments), Path(job.folder)
    done = len({p.name.split("-")[1] for p in folder.glob("stitched-*.arrow")})
    return f"{min(done, tasks)} of {tasks} assignments written"


def submit_app(
    application: Path,
    *,
    job_path: Path,
    result_path: Path,
    master: str,
    conf: Mapping[str, str],
    java_home: Path | None,
    progress: Callable[[], str],
    say: Callable[[str], None],
    environment: Sequence[str] = (),
    deadline_s: float = DEADLINE_SECONDS,
) -> None:
    """Run one of our apps until its result is there, or raise as `submit_reassembly` does."""
    error_file(result_path).unlink(missing_ok=True)
    log_path = result_path.with_name(f"{result_path.name}.log")
    with properties_file(spark_conf(master, conf)) as properties, _private(log_path) as log:
        argv = [str(spark_submit()), "--master", master, "--properties-file", properties.name]
        argv += ["--load-spark-defaults", str(application), "--job", str(job_path), "--result", str(result_path)]
        bound = [sys.executable, str(Path(__file__).with_name("end_with_parent.py")), str(os.getpid())]
        child = subprocess.Popen(
            bound + argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=spark_environment(java_home, also=environment),
            pass_fds=properties.handles,
            start_new_session=True,
            umask=MASK,
        )
        try:
            code = _wait(child, progress, say, deadline_s, log_path)
            _wait_for_last_words(child, result_path)
        finally:
            _end(child)
    _conclude(code, result_path, log_path)


def left_error(result_path: Path, *, deadline_s: float = _ENDING_SECONDS / 2) -> WavestitchError | None:
    """The error that the app left, as it was raised there; None where it left none within `deadline_s`."""
    path, until = error_file(result_path), time.monotonic() + deadline_s
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.05)
    return error_from_json(json.loads(plain_text(path))) if path.exists() else None


def spark_conf(master: str, conf: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings for the app: `conf` over our defaults.

    Raises `BadInput` for a standalone cluster without its secret: the app would be open to whoever reaches its ports.
    """
    found = {**_DEFAULTS, **(_LOCAL_DEFAULTS if master.startswith("local") else {}), **conf}
    # Of settings whose names have these in them, logs and event logs show no values: whatever else somebody adds.
    found[_REDACTION] = f"({found[_REDACTION]})|{spark_redaction()}" if _REDACTION in found else spark_redaction()
    secret = found.get("spark.authenticate.secret") or found.get("spark.authenticate.secret.file")
    if master.startswith("spark://") and found["spark.authenticate"].lower() == "true" and not secret:
        raise BadInput(
            f"Spark's master is {master}, and [spark.conf] has no spark.authenticate.secret: give the cluster's own "
            '(env:NAME or file:PATH), or say spark.authenticate = "false" for a cluster in a network of its own'
        )
    return found


def _private(path: Path) -> IO[bytes]:
    """A log to append to, for its owner and group."""
    return os.fdopen(open_new(path, os.O_WRONLY | os.O_APPEND), "ab")


def _wait(
    child: subprocess.Popen[bytes],
    progress: Callable[[], str],
    say: Callable[[str], None],
    deadline_s: float,
    log_path: Path,
) -> int:
    began = time.monotonic()
    say(f"Spark: {progress()}, log in {log_path}")
    while (elapsed := time.monotonic() - began) < deadline_s:
        try:
            return child.wait(min(HEARTBEAT_SECONDS, deadline_s - elapsed))
        except subprocess.TimeoutExpired:
            say(f"Spark: {progress()} after {time.monotonic() - began:.0f} s")
    raise Transient(
        f"the Spark app was still running after {deadline_s:.0f} s and was ended; its log is {log_path}. Give it more "
        "time or more cores, or make batches smaller",
        log=str(log_path),
    )


def _wait_for_last_words(child: subprocess.Popen[bytes], result_path: Path) -> None:
    """When the JVM dies, spark-submit goes first; the app notices a moment later, says why, and goes, too."""
    deadline = time.monotonic() + _ENDING_SECONDS
    while time.monotonic() < deadline and not error_file(result_path).exists():
        try:
            os.killpg(child.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End what is left of the child's process group, first by asking. Python workers end when their JVM does."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, sign)
        except ProcessLookupError:
            return
        try:
            child.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            continue


def _conclude(code: int, result_path: Path, log_path: Path) -> None:
    if code == 0 and result_path.exists():
        return
    left = left_error(result_path, deadline_s=0)
    if left is not None:
        raise left
    memory = ", which means out of memory" if code in _OUT_OF_MEMORY_CODES or code == -signal.SIGKILL else ""
    raise Transient(
        f"spark-submit ended with exit code {code}{memory}, and the app left no error. The last line of its log "
        f"({log_path}): {_last_line(log_path)}",
        log=str(log_path),
        exit_code=code,
    )


def _last_line(log_path: Path) -> str:
    with open_plain(log_path) as log:
        log.seek(max(0, os.fstat(log.fileno()).st_size - 4096))
        lines = [x for x in log.read().decode(errors="replace").splitlines() if x.strip()]
    return lines[-1][:400] if lines else "(it is empty)"


def _spark_home() -> Path:
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise BadInput("PySpark is not installed in this environment; install the package with its requirements")
    return Path(found.submodule_search_locations[0])


def spark_submit() -> Path:
    """Spark's own program of that name."""
    return _spark_home() / "bin" / "spark-submit"


def spark_environment(java_home: Path | None, *, also: Sequence[str] = ()) -> dict[str, str]:
    """What Spark gets of this process's environment, with this very Python and this very Spark on both sides.

    `also` names variables that it gets besides what every program needs: no secret of Airflow's or Kafka's by default.
    """
    home = _spark_home()
    ours = {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if java_home is not None:
        ours["JAVA_HOME"] = str(java_home)
    # First, so that whoever says just `spark-submit` gets it.
    path = f"{home / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**child_environment(os.environ, also=also), **ours, "PATH": path}


@dataclass(frozen=True, slots=True)
class PropertiesFile:
    """Its name, as the child of a process with these open handles can open it."""

    name: str
    handles: tuple[int, ...]


@contextmanager
def properties_file(conf: Mapping[str, str]) -> Iterator[PropertiesFile]:
    """Settings for spark-submit. Not as arguments: these anybody here can read, and a setting may be a secret.

    The file is in memory and has no name in any folder: it goes with the last process that has it, however that ends.
    """
    handle = os.memfd_create("spark.properties")
    with os.fdopen(handle, "wb") as file:
        file.write(spark_properties(conf).encode("latin-1"))
        file.flush()
        yield PropertiesFile(f"/proc/self/fd/{handle}", (handle,))


def spark_properties(conf: Mapping[str, str]) -> str:
    """A Java properties file: everything but plain letters and digits is escaped."""

    def escape(text: str) -> str:
        units = text.encode("utf-16-be")
        codes = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
        return "".join(chr(c) if c < 128 and chr(c).isalnum() else f"\\u{c:04x}" for c in codes)

    return "".join(f"{escape(name)}={escape(value)}\n" for name, value in sorted(conf.items()))
