"""Backfill in a real Airflow, by REST and by command, cancelled, cleared: each waveform once, positions stay."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

import pytest

from tests.faults.in_process import run_here
from tests.stack.live_airflow import SECONDS, LiveAirflow, LiveStream, comes_true, recorded
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.run import RunOptions
from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.local.airflow_api import AirflowApi
from wavestitch.settings_sections import Spark

DAY_NS = 86_400_000_000_000
FIRST_NS = 1_577_836_800_000_000_000  # 2020-01-01
RANGE = {"from_date": "2020-01-01T00:00:00Z", "to_date": "2020-01-03T00:00:00Z"}
ARCHIVE: dict[str, Any] = {
    "limits": {"max_clock_skew": "36500 d", "max_batch_records": 8},
    "reading": {"min_slice": 1},
}


def send_archive(stream: LiveStream) -> None:
    """One of the first day, half of which is gone, two of the second, above the limits, and one of the third."""
    stream.send(recorded("d0", start_ns=FIRST_NS))
    stream.delete_records({0: 1})
    for n in range(2):
        stream.send(recorded(f"d1-{n}", start_ns=FIRST_NS + DAY_NS, chunks=4))
    stream.send(recorded("d2", start_ns=FIRST_NS + 2 * DAY_NS))
    stream.send(recorded("d0-again", start_ns=FIRST_NS + 1))


def test_three_intervals_are_backfilled_by_rest_and_again_by_command_each_waveform_once_and_the_lost_is_named(
    live: LiveAirflow,
) -> None:
    stream = live.declare("shore", ARCHIVE, flows=["backfill"])
    send_archive(stream)
    asked = {"dag_id": "backfill_shore", **RANGE, "max_active_runs": 10}
    with live.airflow.login("viewer") as viewer, pytest.raises(BadInput, match="403"):
        viewer.request("POST", "/api/v2/backfills", json=asked)
    with live.airflow.login("op") as op:
        shown = op.request("POST", "/api/v2/backfills/dry_run", json=asked)
        assert [run["logical_date"][:10] for run in shown["backfills"]] == ["2020-01-01", "2020-01-02", "2020-01-03"]
        assert stream.published() == []
        op.request("POST", "/api/v2/backfills", json=asked)
    runs = live.wait_all("backfill_shore", 3)
    # All at once, and never two Sparks: what stands in the place of it fails beside another one.
    assert [run["state"] for run in runs] == ["success"] * 3, runs
    assert max(run["start_date"] for run in runs) < min(run["end_date"] for run in runs)
    assert stream.published() == ["d0-again", "d1-0", "d1-1", "d2"]
    # Where the log begins: the stream's first plan was the backfill's.
    assert stream.positions() == {0: 1}
    with live.airflow.login() as api:
        results = [api.xcom("backfill_shore", run["dag_run_id"], "report") for run in runs]
    assert [found["published"] for found in results] == [1, 2, 1]
    assert [found["lost"] for found in results] == [[[0, 0, 1]]] * 3
    assert results[0]["incomplete"] == ["d0"]
    assert results[1]["batches"] >= 2

    live.wait_backfilled("backfill_shore")
    made = command(
        live, "backfill", "create", "--dag-id", "backfill_shore", "--reprocess-behavior", "completed",
        "--from-date", "2020-01-03", "--to-date", "2020-01-03", "--max-active-runs", "1",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert live.again("backfill_shore", runs[2])["state"] == "success"
    with live.airflow.login() as api:
        again = api.xcom("backfill_shore", runs[2]["dag_run_id"], "report")
    assert (again["published"], again["replays"]) == (0, 2)
    assert stream.published() == ["d0-again", "d1-0", "d1-1", "d2"]
    assert stream.positions() == {0: 1}


def command(live: LiveAirflow, *words: str) -> subprocess.CompletedProcess[str]:
    """Airflow's command, as somebody types it beside the running one."""
    argv = [sys.executable, "-m", "airflow", *words]
    return subprocess.run(argv, env=live.surroundings(), capture_output=True, text=True, timeout=SECONDS, check=False)


@contextmanager
def no_spark(live: LiveAirflow) -> Iterator[None]:
    """Whatever starts a Spark waits for its pool meanwhile: a run that is at work on a batch stays at work on it."""
    with live.airflow.login("op") as op:

        def slots(number: int) -> None:
            name = Spark().pool
            path, pool = f"/api/v2/pools/{name}", {"pool": name, "include_deferred": False}
            with live.nothing_is_scheduled():
                op.request("PATCH", path, json={**pool, "slots": number})

        slots(0)
        try:
            yield
        finally:
            slots(1)


def waits_for_spark(api: AirflowApi, run_id: str) -> bool:
    """Whether this run has read what it is to stitch."""
    with suppress(Transient, BadInput):  # a busy machine, or a run that is not there yet
        states = api.task_states("backfill_shoal", run_id)
        return any(task.task_id == "batch.reassemble" and task.state == "scheduled" for task in states)
    return False


def test_a_backfill_that_is_cancelled_made_again_and_cleared_publishes_each_waveform_once_and_moves_no_position(
    live: LiveAirflow,
) -> None:
    stream = live.declare("shoal", ARCHIVE, flows=["backfill"])
    stream.send(*(recorded(f"d{n}", start_ns=FIRST_NS + n * DAY_NS) for n in range(2)))
    run_here(stream.deployment, stream.name, RunOptions(PlanRequest(until={Partition(0): Offset(1)})))
    assert (stream.positions(), stream.published()) == ({0: 1}, [])
    asked = {"dag_id": "backfill_shoal", **RANGE, "to_date": "2020-01-02T00:00:00Z", "max_active_runs": 1}
    with live.airflow.login("user") as user:
        with no_spark(live):
            made = user.request("POST", "/api/v2/backfills", json=asked)
            runs = user.request("GET", "/api/v2/dags/backfill_shoal/dagRuns", params={"order_by": "logical_date"})
            first, second = (run["dag_run_id"] for run in runs["dag_runs"])
            assert comes_true(lambda: waits_for_spark(user, first))
            user.request("PUT", f"/api/v2/backfills/{made['id']}/cancel")
        # What was at work goes on to its end; what was queued has failed, and did nothing.
        assert [run["state"] for run in live.wait_all("backfill_shoal", 2)] == ["success", "failed"]
        assert (stream.positions(), stream.published()) == ({0: 1}, ["d0"])

        # Cleared it waits for ever: it is marked as failed, and made again.
        path = f"/api/v2/dags/backfill_shoal/dagRuns/{quote(second)}"
        user.request("POST", f"{path}/clear", json={"dry_run": False})
        assert user.run_state("backfill_shoal", second) == "queued"
        user.request("PATCH", path, json={"state": "failed"})
        with no_spark(live):
            user.request("POST", "/api/v2/backfills", json={**asked, "reprocess_behavior": "failed"})
            assert comes_true(lambda: waits_for_spark(user, second))
            user.request("POST", f"{path}/clear", json={"dry_run": False})
    assert [run["state"] for run in live.wait_all("backfill_shoal", 2)] == ["success", "success"]
    assert (stream.positions(), stream.published()) == ({0: 1}, ["d0", "d1"])


def test_a_backfill_of_the_ingest_dag_is_refused_and_its_own_dag_is_offered_one(live: LiveAirflow) -> None:
    live.declare("strand", {"schedule": "0 3 1 1 *"}, flows=["ingest", "backfill"])
    with live.airflow.login("op") as op:
        with pytest.raises(BadInput, match="does not allow backfill"):
            op.request("POST", "/api/v2/backfills", json={"dag_id": "ingest_strand", **RANGE})
        assert op.request("GET", "/api/v2/dags/backfill_strand/details")["is_backfillable"] is True
