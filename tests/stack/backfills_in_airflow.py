"""Ten backfills at once in a real Airflow, each of which wants a Spark. By `make test-airflow`: its ninety tasks are
minutes of two processors; three at once are in `test_airflow_backfill.py`.
"""

from __future__ import annotations

from itertools import pairwise

from tests.stack.live_airflow import LiveAirflow, recorded
from tests.stack.test_airflow_backfill import DAY_NS, FIRST_NS

SECONDS = 1800
ASKED = {
    "dag_id": "backfill_skerry",
    "from_date": "2020-01-01T00:00:00Z",
    "to_date": "2020-01-10T00:00:00Z",
    "max_active_runs": 10,
}


def test_ten_backfills_at_once_never_run_two_sparks(live: LiveAirflow) -> None:
    """What stands in the place of Spark fails where another one is at work; and by Airflow's own clock."""
    stream = live.declare("skerry", {"limits": {"max_clock_skew": "36500 d"}}, flows=["backfill"])
    stream.send(*(recorded(f"d{n}", start_ns=FIRST_NS + n * DAY_NS) for n in range(10)))
    with live.airflow.login("op") as op:
        op.request("POST", "/api/v2/backfills", json=ASKED)
        runs = live.wait_all("backfill_skerry", 10, seconds=SECONDS)
        sparks = []
        for run in runs:
            path = f"/api/v2/dags/backfill_skerry/dagRuns/{run['dag_run_id']}/taskInstances"
            tasks = op.request("GET", path)["task_instances"]
            sparks += [(t["start_date"], t["end_date"]) for t in tasks if t["task_id"] == "batch.reassemble"]
    assert [run["state"] for run in runs] == ["success"] * 10, runs
    assert max(run["start_date"] for run in runs) < min(run["end_date"] for run in runs), "they were not at once"
    sparks.sort()
    assert len(sparks) == 10
    assert all(ended <= begun for (_, ended), (begun, _) in pairwise(sparks)), sparks
    assert stream.published() == [f"d{n}" for n in range(10)]
