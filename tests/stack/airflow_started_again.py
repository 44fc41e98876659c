"""A whole Airflow, stopped and started again: `make test-airflow` runs it, since a start is dear."""

from __future__ import annotations

from tests.stack.live_airflow import LiveAirflow
from wavestitch.local.airflow_stack import stop_airflow
from wavestitch.local.process import session_members


def test_a_new_start_keeps_address_and_history(live: LiveAirflow) -> None:
    airflow = live.airflow
    with airflow.login() as api:
        api.wait_for_dag("trivial")
        assert api.wait("trivial", api.trigger("trivial"), seconds=180) == "success"
    assert stop_airflow(live.home) is True
    again = live.start()
    assert again.url == airflow.url
    with again.login() as api:
        assert api.request("GET", "/api/v2/dags/trivial/dagRuns")["total_entries"] >= 1
    assert stop_airflow(live.home) is True
    assert session_members(again.pid) == []
