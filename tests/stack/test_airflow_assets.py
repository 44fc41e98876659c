"""In a whole Airflow: a stream that is started by its lag, and somebody else's DAG that runs on what it published."""

from __future__ import annotations

from typing import Any

from tests.stack.live_airflow import SECONDS, LiveAirflow, comes_true, recorded

START_NS = 1_577_836_800_000_000_000
BURSTS = 5


def runs(live: LiveAirflow, dag_id: str) -> list[dict[str, Any]]:
    with live.airflow.login() as api:
        return list(api.request("GET", f"/api/v2/dags/{dag_id}/dagRuns")["dag_runs"])


def look(live: LiveAirflow) -> None:
    with live.airflow.login("op") as op:
        assert op.wait("watch", op.trigger("watch"), seconds=SECONDS) == "success"


def test_five_bursts_are_read_by_runs_that_their_lag_starts_and_a_consumer_runs_with_the_snapshot(
    live: LiveAirflow,
) -> None:
    stream = live.declare("brook", {"trigger": "lag", "limits": {"max_clock_skew": "36500 d"}}, flows=["ingest"])
    sent = [f"k{n}" for n in range(BURSTS)]
    for n, waveform_id in enumerate(sent):
        stream.send(recorded(waveform_id, start_ns=START_NS))
        if n in (0, BURSTS - 2):
            look(live)  # the last burst comes after it, while a run may be under way
    live.wait_all("ingest_brook", 1)
    look(live)
    assert comes_true(lambda: stream.published() == sent), stream.published()
    found = live.wait_all("ingest_brook", 1)
    assert stream.positions() == stream.ends()
    assert {run["state"] for run in found} == {"success"}, "none is stranded"
    assert {run["run_type"] for run in found} == {"operator_triggered"}
    assert len(found) <= 3, "one at a time, and none while one waits or is under way"
    look(live)
    assert len(runs(live, "ingest_brook")) == len(found), "nothing is unread: nothing is started"

    heads = {str(h.snapshot_id) for h in stream.deployment.tables("brook").heads() if h.plan_id}
    with live.airflow.login() as api:

        def told() -> list[dict[str, Any]]:
            ended = [r["dag_run_id"] for r in runs(live, "consumer") if r["state"] == "success"]
            return [extra for run in ended for extra in api.xcom("consumer", run, "read")]

        assert comes_true(lambda: bool(told()))
        for extra in told():
            assert extra["snapshot_id"] in heads
            assert extra["days"] == ["2020-01-01"]
            assert extra["stream"] == "brook"
