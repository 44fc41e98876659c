"""What an operator does in a browser: a backfill is made in its dialogue, a closed gate is looked at and answered, a
rewind asked for, approved of and undone by keyboard alone. By `make test-airflow`: it needs a Chromium, and minutes.
"""

from __future__ import annotations

import re
import time
from typing import Any

from tests.stack.browser import logged_in
from tests.stack.live_airflow import LiveAirflow, recorded
from tests.stack.pictures import take
from tests.stack.test_airflow_backfill import ARCHIVE
from tests.stack.test_airflow_gate import FEW, START_NS, trigger
from tests.stack.test_airflow_rewind import DECLARED as REWINDS
from tests.stack.test_airflow_rewind import ended, ingest, waits

_MOST_TABS = 200


def test_a_closed_gate_is_looked_at_and_answered(live: LiveAirflow) -> None:
    stream = live.declare("firth", FEW, flows=["ingest"])
    stream.send(*(recorded(f"f{n}", start_ns=START_NS) for n in range(2)))
    run = trigger(live, "ingest_firth")
    run.question()
    with logged_in(live.airflow, "user", "/required_actions") as page:
        page.get_by_text("firth: the gate is closed").first.wait_for()
        page.goto(live.told(run.run_id)[0]["facts"]["page"])
        with page.expect_popup() as found:
            page.get_by_role("link", name="What the gate found (Data Docs)").first.click()
        found.value.get_by_text("expect_table_row_count_to_be_between").first.wait_for()
        found.value.close()
        take(page, "closed-gate", height=720)
        page.locator("[name=element_why]").fill("two of them today")
        page.get_by_test_id("hitl-option-Accept").click()
        assert run.ended() == "success"
        assert stream.note() == "gate: accept; two of them today (user)"


def test_a_rewind_is_previewed_approved_of_and_undone_by_keyboard_alone(live: LiveAirflow) -> None:
    """By somebody who is no admin, and who follows the links of what is told. How long it took is printed."""
    stream = live.declare("ridge", REWINDS, flows=["rewind"])
    stream.send(*(recorded(f"r{n}", start_ns=START_NS) for n in range(2)))
    ingest(stream)
    assert stream.positions() == {0: 4}
    with logged_in(live.airflow, "op", "/dags/rewind_ridge") as page:
        began = time.monotonic()
        run_id = ask_by_keyboard(live, page, "ridge", "earliest")
        page.goto(live.told(run_id)[0]["facts"]["page"])
        page.get_by_text("4 offsets are read again").wait_for()
        take(page, "rewind-preview", height=810)
        approve_by_keyboard(live, page, "ridge", run_id)
        assert stream.positions() == {0: 0}
        page.goto(f"{live.airflow.url}/dags/rewind_ridge/runs/{run_id}/plugin/wavestitch_batch")
        done = page.frame_locator("iframe[title=Batch]").get_by_text("To undo it").inner_text()
        (undo,) = re.findall(r"undo:[0-9]+", done)
        take(page, "batch-tab", height=760)
        page.goto(f"{live.airflow.url}/dags/rewind_ridge")
        back = ask_by_keyboard(live, page, "ridge", undo)
        page.goto(live.told(back)[0]["facts"]["page"])
        reach(page, page.locator("[name=element_accept_skip]"))
        page.keyboard.press("Space")
        approve_by_keyboard(live, page, "ridge", back)
        print(f"by keyboard alone in {time.monotonic() - began:.0f} s, Airflow's own part included")
    assert stream.positions() == {0: 4}


def reach(page: Any, wanted: Any) -> None:
    """By the tabulator, as somebody has to who has no mouse."""
    wanted.wait_for(state="attached")
    for _ in range(_MOST_TABS):
        if wanted.evaluate("found => found === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the keyboard does not lead to {wanted}")


def ask_by_keyboard(live: LiveAirflow, page: Any, stream: str, to: str) -> str:
    """The run in which a preview of it waits for somebody."""
    with live.airflow.login() as api:
        before = {run["dag_run_id"] for run in _runs(api, stream)}
        reach(page, page.get_by_role("button", name="Trigger").first)
        page.keyboard.press("Enter")
        for name, text in (("to", to), ("why", "to see")):
            reach(page, page.locator(f"[name=element_{name}]"))
            page.keyboard.type(text)
        reach(page, page.get_by_test_id("trigger-dag-submit"))
        page.keyboard.press("Enter")
        page.get_by_test_id("trigger-dag-submit").wait_for(state="hidden")
        (run_id,) = {run["dag_run_id"] for run in _runs(api, stream)} - before
    waits(live, stream, run_id)
    return str(run_id)


def approve_by_keyboard(live: LiveAirflow, page: Any, stream: str, run_id: str) -> None:
    reach(page, page.get_by_test_id("hitl-option-Approve"))
    page.keyboard.press("Enter")
    assert ended(live, stream, run_id) == "success"


def _runs(api: Any, stream: str) -> list[dict[str, Any]]:
    return list(api.request("GET", f"/api/v2/dags/rewind_{stream}/dagRuns")["dag_runs"])


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
