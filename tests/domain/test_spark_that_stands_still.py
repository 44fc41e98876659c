"""A Spark that is connected and answers no more (stopped, swapping). A step ends at its deadline all the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pyspark
import pytest
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc

from spark_apps import remote
from spark_apps.remote import stitch_remotely
from tests.domain.test_reassemble_spark import small_job, wait_until
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.spark_address import RemoteSpark, read_spark_address


class StandsStill(base_pb2_grpc.SparkConnectServiceServicer):  # type: ignore[misc]
    """Of Spark's protocol, until `over`: nothing but which version it is, where it `answers` that."""

    def __init__(self, *, answers: bool) -> None:
        self.answers, self.over, self.asked = answers, threading.Event(), list[str]()

    def AnalyzePlan(self, request: Any, context: Any) -> Any:
        if not self.answers:
            self._waits("version")
        version = base_pb2.AnalyzePlanResponse.SparkVersion(version=pyspark.__version__)
        return base_pb2.AnalyzePlanResponse(session_id=request.session_id, spark_version=version)

    def Config(self, request: Any, context: Any) -> Any:
        return self._waits("job")

    def ExecutePlan(self, request: Any, context: Any) -> Any:
        yield self._waits("job")

    def Interrupt(self, request: Any, context: Any) -> Any:
        return self._waits("interrupt")

    def _waits(self, what: str) -> Any:
        self.asked.append(what)
        self.over.wait(60)
        raise RuntimeError("it stood still")


@pytest.fixture
def still(request: pytest.FixtureRequest) -> Iterator[tuple[StandsStill, RemoteSpark]]:
    spark = StandsStill(answers=request.param)
    server = grpc.server(ThreadPoolExecutor(8))
    base_pb2_grpc.add_SparkConnectServiceServicer_to_server(spark, server)
    port = server.add_secure_port("127.0.0.1:0", grpc.local_server_credentials())
    server.start()
    try:
        yield spark, RemoteSpark(read_spark_address(f"sc://127.0.0.1:{port}"), "token")
    finally:
        spark.over.set()
        server.stop(0).wait(10)


def refused(tmp_path: Path, spark: RemoteSpark, *, deadline_s: float) -> tuple[str, float]:
    """What the step says, and after how many seconds; in a thread, so that a step that never ends fails the test."""
    job, _ = small_job(tmp_path)
    (tmp_path / "job.json").write_text(job.to_json())
    found, began = list[BaseException](), time.monotonic()

    def step() -> None:
        try:
            stitch_remotely(
                spark, job_path=tmp_path / "job.json", result_path=tmp_path / "r.json", say=print, deadline_s=deadline_s
            )
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=step, daemon=True)
    thread.start()
    thread.join(20)
    assert found, "the step waits for a Spark that stands still"
    assert isinstance(found[0], Transient), found[0]
    return found[0].message, time.monotonic() - began


@pytest.mark.parametrize("still", [True], indirect=True)
def test_a_step_in_the_middle_ends_at_its_deadline_and_so_do_its_calls(
    still: tuple[StandsStill, RemoteSpark], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_INTERRUPT_SECONDS", 0.2)
    spark, there = still
    said, took = refused(tmp_path, there, deadline_s=1)
    assert "has begun none of its tasks in 1 s, and was told to let them be" in said
    assert took < 15
    assert spark.asked == ["job", "interrupt"]
    wait_until(lambda: not [t for t in threading.enumerate() if t.name == "spark-call"], "a call outlived its step")


@pytest.mark.parametrize("still", [False], indirect=True)
def test_one_that_does_not_even_say_which_it_is_is_named(
    still: tuple[StandsStill, RemoteSpark], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_ANSWER_SECONDS", 0.5)
    spark, there = still
    said, _ = refused(tmp_path, there, deadline_s=60)
    assert f"the Spark at {there.address} took the connection and has not answered for 0 s: it stands still" in said
    assert spark.asked == ["version"]
