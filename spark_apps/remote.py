"""Stitching on a Spark that is there already, through its Connect server: the same tasks, without a start of Spark's.

All streams share one session of the server's: it starts Python anew for each, and keeps that as long as it runs. So
the session is not closed; the tasks are ended with the step, and the session has no settings or data of a batch.

A Spark may stand still and keep its connections (stopped, swapping, behind a network that is gone). So no call is
waited for without a limit, each is in a thread that no process waits for at its end, and whoever gives up closes the
channel first, which ends them (I5).
"""

from __future__ import annotations

import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spark_apps.loaded_code import LOADED_CODE
from spark_apps.outcome import read_outcomes
from spark_apps.submit import DEADLINE_SECONDS, HEARTBEAT_SECONDS, assignments_written
from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.contracts.spark_address import RemoteSpark
from wavestitch.contracts.stitch_job import StitchJob, StitchReport, stitch_job_from_json, stitch_report_from_json
from wavestitch.plain_files import plain_text
from wavestitch.write_once import write_first

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

USER = "wavestitch"
_SESSIONS = uuid.UUID("6f7f2a3e-5a0e-4b43-9a86-0c0c3a0f7c11")
_MOST_CLOSED = 100
_CLOSED = "INVALID_HANDLE.SESSION_CLOSED"
_INTERRUPT_SECONDS = 10.0
_ANSWER_SECONDS = 60.0

R = TypeVar("R")

Ended = Callable[[], None]


def stitch_remotely(
    spark: RemoteSpark,
    *,
    job_path: Path,
    result_path: Path,
    say: Callable[[str], None],
    deadline_s: float = DEADLINE_SECONDS,
    on_start: Callable[[Ended], None] = lambda _: None,
) -> StitchReport:
    """Run the job and return its report; a report that an earlier run left stands.

    `on_start` gets what ends the tasks, for whoever hears that they must end. Raises the error of a task as
    `submit_reassembly` does, `BadInput` where that Spark is not ours to use (its version, its code, the token),
    `Transient` where it is not there, dies, or `deadline_s` passes.
    """
    text = plain_text(job_path)
    job = stitch_job_from_json(text)
    outcomes: list[str] = []
    if job.assignments:
        say(f"Spark at {spark.address}: {assignments_written(job)}")
        with warnings.catch_warnings(), _session(spark) as session:
            # Of tries that there never were; the error itself follows.
            warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]")
            outcomes = _collect(spark, session, job, text, say, deadline_s, on_start)
    write_first(result_path, StitchReport(job.plan_id, read_outcomes(outcomes)).to_json())
    return stitch_report_from_json(plain_text(result_path))


def load_client() -> None:
    """Import what speaks to the server: a second that a process may spend while it waits for something else."""
    import pyspark.sql.connect.session  # noqa: F401, PLC0415


def _collect(
    spark: RemoteSpark,
    session: Any,
    job: StitchJob,
    text: str,
    say: Callable[[str], None],
    deadline_s: float,
    on_start: Callable[[Ended], None],
) -> list[str]:
    tag = f"wavestitch-{uuid.uuid4().hex}"

    def ended() -> None:
        with suppress(TimeoutError):
            _aside(partial(session.interruptTag, tag)).exception(_INTERRUPT_SECONDS)

    begun = threading.Event()
    session.registerProgressHandler(partial(_note_begun, begun))
    asked = _aside(partial(_ask, session, tag, len(job.assignments), text))
    on_start(ended)
    try:
        _wait(asked, partial(assignments_written, job), say, deadline_s, begun)
    except BaseException:
        # The step is over, and nobody waits for what its tasks would write.
        ended()
        raise
    error = asked.exception()
    if error is not None:
        raise _translated(spark, error)
    return asked.result()


def _note_begun(begun: threading.Event, *, stages: Iterable[Any] | None, inflight_tasks: int, **_: object) -> None:
    """What Spark tells of a job every two seconds."""
    if inflight_tasks or any(stage.num_completed_tasks for stage in stages or ()):
        begun.set()


def _aside(work: Callable[[], R]) -> Future[R]:
    """In a thread of its own, which ends with the process at the latest."""
    done: Future[R] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # whoever waits for it gets it
            done.set_exception(error)

    threading.Thread(target=run, name="spark-call", daemon=True).start()
    return done


def _close(session: Any) -> None:
    """The channel alone: the client's own way waits for the calls of all clients of this process, which a Spark that
    stands still never answers. A session closes its client once more when it is collected, in whichever thread that
    happens, one that such a call waits for among them: it has none by then.
    """
    client, session._client = session.client, None
    client._channel.close()


def _ask(session: Any, tag: str, tasks: int, job: str) -> list[str]:
    """The outcomes in the order of the assignments: a partition each. Tags are of the thread that runs it."""
    from pyspark.sql.types import StringType, StructField, StructType  # noqa: PLC0415

    from spark_apps.remote_task import NUMBER, OUTCOME, stitch_numbers  # noqa: PLC0415

    code = LOADED_CODE

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return stitch_numbers(job, code, batches)

    session.addTag(tag)
    numbers = session.range(0, tasks, 1, tasks).withColumnRenamed("id", NUMBER)
    found = numbers.mapInArrow(run, StructType([StructField(OUTCOME, StringType())])).toArrow()
    outcomes: list[str] = found.column(OUTCOME).to_pylist()
    return outcomes


def _wait(
    asked: Future[list[str]],
    progress: Callable[[], str],
    say: Callable[[str], None],
    deadline_s: float,
    begun: threading.Event,
) -> None:
    began = time.monotonic()
    while (elapsed := time.monotonic() - began) < deadline_s:
        if wait([asked], min(HEARTBEAT_SECONDS, deadline_s - elapsed)).done:
            return
        say(f"Spark: {progress()} after {time.monotonic() - began:.0f} s")
    if not begun.is_set():
        raise Transient(
            f"Spark took the job, has begun none of its tasks in {deadline_s:.0f} s, and was told to let them be: it "
            "has no executor for them, or other jobs have all that it has; look at its log and, of a cluster, at the "
            "page of its master, which lists workers and applications. Where this Spark is not among these, start it "
            "again, and then run the step again"
        )
    raise Transient(
        f"Spark was still stitching after {deadline_s:.0f} s, and was told to end its tasks; give it more time or more "
        "cores, or make batches smaller"
    )


@contextmanager
def _session(spark: RemoteSpark) -> Iterator[Any]:
    """The session that all steps of this code share there; it stays when this process has left it."""
    import pyspark  # noqa: PLC0415

    for number in range(_MOST_CLOSED):
        session = _open(spark, str(uuid.uuid5(_SESSIONS, f"{LOADED_CODE} {number}")))
        try:
            try:
                version = _aside(partial(getattr, session, "version")).result(_ANSWER_SECONDS)
            except TimeoutError:
                raise Transient(
                    f"the Spark at {spark.address} took the connection and has not answered for {_ANSWER_SECONDS:.0f} "
                    "s: it stands still; look at its log, start it again (`make down` and `make up` here) and run the "
                    "step again"
                ) from None
            except Exception as error:
                if _CLOSED in str(error):
                    continue  # idle for too long, and closed by the server for good
                raise _translated(spark, error) from None
            if version != pyspark.__version__:
                raise BadInput(
                    f"the Spark at {spark.address} is {version}, and we speak to {pyspark.__version__}; "
                    "start one of that version, or leave out spark.remote to start one for each batch"
                )
            yield session
            return
        finally:
            _close(session)
    raise BadInput(
        f"the Spark at {spark.address} has closed {_MOST_CLOSED} sessions of ours as idle; start it again with "
        "spark.connect.session.manager.defaultSessionTimeout = -1 (docs/operations.md)"
    )


def _open(spark: RemoteSpark, session_id: str) -> Any:
    """A session of this id, without any settings of ours: whoever has the token sees those of a session."""
    import grpc  # noqa: PLC0415
    from pyspark.sql.connect.client import ChannelBuilder  # noqa: PLC0415
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415

    address = spark.address

    class Channel(ChannelBuilder):  # type: ignore[misc]
        """The token goes with each call; never in the address, the environment or an argument."""

        @property
        def host(self) -> str:
            return address.host

        def toChannel(self) -> grpc.Channel:
            way = grpc.ssl_channel_credentials() if address.tls else grpc.local_channel_credentials()
            if not address.tls:
                self.setChannelOption("grpc.enable_http_proxy", 0)  # nobody stands between us and ourselves
            login = grpc.access_token_call_credentials(spark.token)
            return self._secure_channel(address.target, grpc.composite_channel_credentials(way, login))

    params = {ChannelBuilder.PARAM_USER_ID: USER, ChannelBuilder.PARAM_SESSION_ID: session_id}
    session = SparkSession.builder.channelBuilder(Channel(params=params)).create()
    # A step that fails is tried again by who runs it, who says so; here a try more would only hide that.
    session.client.set_retry_policies([])
    return session


def _translated(spark: RemoteSpark, error: BaseException) -> Exception:
    """An error of Spark's as one of ours."""
    import grpc  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    from spark_apps.spark_errors import brief  # noqa: PLC0415

    if not isinstance(error, PySparkException | grpc.RpcError):
        return error if isinstance(error, Exception) else Transient(f"Spark was left: {type(error).__name__}")
    said, code = brief(error), getattr(error, "_grpc_status_code", None)
    if code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
        return BadInput(f"the Spark at {spark.address} does not take our token; give its own as spark.token")
    if code == grpc.StatusCode.UNAVAILABLE:
        return Transient(
            f"no Spark answers at {spark.address}: it is not there, or it died ({said}); look at its log, start it "
            "(`make up` here) and run the step again"
        )
    if "ModuleNotFoundError" in str(error):
        return BadInput(
            f"the Python of the Spark at {spark.address} cannot load our code ({said}); install wavestitch there, too"
        )
    if "PYTHON_VERSION_MISMATCH" in str(error):
        return BadInput(f"the Spark at {spark.address} runs another Python ({said}); give both the same version")
    return Transient(f"Spark gave the job up: {said}")
