"""Who may backfill and rewind is Airflow's to say, by role: nobody who may only look, and nobody has to be an admin."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.faults.in_process import run_here
from tests.stack.live_airflow import SECONDS, LiveAirflow, recorded
from tests.stack.test_airflow_rewind import answer, ask
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.run import RunOptions
from wavestitch.contracts.errors import BadInput

START_NS = 1_577_836_800_000_000_000
DECLARED: dict[str, Any] = {"limits": {"max_clock_skew": "36500 d"}}
BACKFILL = {"dag_id": "backfill_haven", "from_date": "2020-01-01T00:00:00Z", "to_date": "2020-01-01T00:00:00Z"}


def changes(backfill: str, rewind: str) -> dict[tuple[str, str], Any]:
    """What somebody may want of this stream's DAGs, and to say so: of one backfill that was made, and of one rewind."""
    run = f"/api/v2/dags/rewind_haven/dagRuns/{rewind}"
    date = {"logical_date": None}
    return {
        ("POST", "/api/v2/backfills/dry_run"): BACKFILL,
        ("POST", "/api/v2/backfills"): BACKFILL,
        ("PUT", f"/api/v2/backfills/{backfill}/pause"): None,
        ("PUT", f"/api/v2/backfills/{backfill}/cancel"): None,
        ("POST", "/api/v2/dags/backfill_haven/dagRuns"): {**date, "conf": {"interval": "2020-01-01/2020-01-02"}},
        ("POST", "/api/v2/dags/rewind_haven/dagRuns"): {**date, "conf": {"to": "earliest", "why": "to see"}},
        ("POST", "/api/v2/dags/ingest_haven/dagRuns"): date,
        ("PATCH", f"{run}/taskInstances/approve/-1/hitlDetails"): {"chosen_options": ["Approve"], "params_input": {}},
        ("PATCH", run): {"state": "success"},
        ("POST", f"{run}/clear"): {"dry_run": False},
        ("POST", "/api/v2/dags/rewind_haven/clearTaskInstances"): {"dry_run": False, "dag_run_id": rewind},
    }


def test_a_viewer_changes_nothing_of_a_stream_and_somebody_who_is_no_admin_backfills_and_rewinds_it(
    live: LiveAirflow,
) -> None:
    stream = live.declare("haven", DECLARED, flows=["ingest", "backfill", "rewind"])
    stream.send(recorded("h0", start_ns=START_NS))
    run_here(stream.deployment, stream.name, RunOptions(PlanRequest()))
    assert stream.positions() == {0: 2}

    with live.airflow.login("user") as user:
        assert user.request("POST", "/api/v2/backfills/dry_run", json=BACKFILL)["total_entries"] == 1
        made = user.request("POST", "/api/v2/backfills", json=BACKFILL)
        rewind = ask(live, "haven", "earliest", user="user")
    with live.airflow.login("viewer") as viewer:
        for (method, path), said in changes(str(made["id"]), rewind).items():
            with pytest.raises(BadInput, match="refused with 403"):
                viewer.request(method, path, json=said)
            assert httpx.request(method, f"{live.airflow.url}{path}", json=said, trust_env=False).status_code == 401
        assert viewer.request("GET", f"/api/v2/backfills/{made['id']}")["dag_id"] == "backfill_haven"
    assert [run["state"] for run in live.wait_all("backfill_haven", 1)] == ["success"]
    assert (stream.positions(), stream.published()) == ({0: 2}, ["h0"])

    answer(live, "user", "haven", rewind, "Approve")
    with live.airflow.login("user") as user:
        assert user.wait("rewind_haven", rewind, seconds=SECONDS) == "success"
        done = user.xcom("rewind_haven", rewind, "apply")
    assert (done["asked_by"], done["approved_by"]) == ("user", "user")
    assert stream.positions() == {0: 0}
