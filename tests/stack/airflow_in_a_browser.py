"""What an operator does in a browser: a backfill is made in its dialogue, a closed gate is looked at and answered, a
rewind asked for and approved of. By `make test-airflow`: it needs a Chromium, and minutes.
"""

from __future__ import annotations

from tests.stack.browser import logged_in
from tests.stack.live_airflow import SECONDS, LiveAirflow, recorded
from tests.stack.pictures import take
from tests.stack.test_airflow_backfill import ARCHIVE
from tests.stack.test_airflow_gate import FEW, START_NS, trigger
from tests.stack.test_airflow_rewind import waits


def test_a_closed_gate_is_looked_at_and_answered_and_a_rewind_asked_for_and_approved_of(live: LiveAirflow) -> None:
    stream = live.declare("firth", FEW, flows=["ingest", "rewind"])
    stream.send(*(recorded(f"f{n}", start_ns=START_NS) for n in range(2)))
    run = trigger(live, "ingest_firth")
    run.question()
    with logged_in(live.airflow, "user", "/required_actions") as page, live.airflow.login() as api:
        page.get_by_text("firth: the gate is closed").first.wait_for()
        page.goto(live.told(run.run_id)[0]["facts"]["page"])
        with page.expect_popup() as found:
            page.get_by_role("link", name="What the gate found (Data Docs)").first.click()
        found.value.get_by_text("expect_table_row_count_to_be_between").first.wait_for()
        found.value.close()
        take(page, "closed-gate")
        page.locator("[name=element_why]").fill("two of them today")
        page.get_by_test_id("hitl-option-Accept").click()
        assert run.ended() == "success"
        assert stream.note() == "gate: accept; two of them today (user)"

        page.goto(f"{live.airflow.url}/dags/rewind_firth")
        page.get_by_role("button", name="Trigger").first.click()
        page.locator("[name=element_to]").fill("earliest")
        page.locator("[name=element_why]").fill("to see")
        page.get_by_test_id("trigger-dag-submit").click()
        page.get_by_test_id("trigger-dag-submit").wait_for(state="hidden")
        (asked,) = api.request("GET", "/api/v2/dags/rewind_firth/dagRuns")["dag_runs"]
        waits(live, "firth", asked["dag_run_id"])
        page.goto(live.told(asked["dag_run_id"])[0]["facts"]["page"])
        page.get_by_text("4 offsets are read again").wait_for()
        take(page, "rewind-preview")
        page.get_by_test_id("hitl-option-Approve").click()
        assert api.wait("rewind_firth", asked["dag_run_id"], seconds=SECONDS) == "success"
    assert stream.positions() == {0: 0}


def test_a_stream_without_a_schedule_is_offered_the_dialogue(live: LiveAirflow) -> None:
    """By somebody who is no admin. Nothing was sent, so that each run is its plan and its report."""
    stream = live.declare("beach", ARCHIVE, flows=["backfill"])
    with logged_in(live.airflow, "op", "/dags/backfill_beach") as page:
        page.get_by_role("button", name="Trigger").first.click()
        page.get_by_text("Run this Dag for a range of dates").click()
        for n, day in enumerate(("2020/01/01", "2020/01/02")):
            page.get_by_test_id("datetime-input").nth(n).click()
            asked = page.locator("[data-scope=popover][data-state=open]").last
            asked.get_by_placeholder("YYYY/MM/DD").fill(day)
            asked.get_by_placeholder("HH:mm").fill("00:00")
            page.keyboard.press("Escape")
        page.get_by_text("2 runs will be triggered.").wait_for()
        take(page, "backfill-dialogue")
        page.get_by_role("button", name="Run Backfill").click()
        page.get_by_text("Run this Dag for a range of dates").wait_for(state="hidden")
    runs = live.wait_all("backfill_beach", 2)
    assert [run["state"] for run in runs] == ["success"] * 2, runs
    assert {run["triggering_user_name"] for run in runs} == {"op"}
    with live.airflow.login() as api:
        said = api.xcom("backfill_beach", runs[0]["dag_run_id"], "report")["said"]
    assert "nothing that may start in the interval" in said[0]
    assert stream.positions() == {0: 0}
