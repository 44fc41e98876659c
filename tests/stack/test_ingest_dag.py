"""The DAG of a stream, carried out in this process: real Kafka, Spark and tables; only the scheduler is left out.

Proves I1, I2, I4 and I6 through Airflow, and that what an error is decides whether a task is tried again.
"""

from __future__ import annotations

import contextlib
import importlib
import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest

from tests.stack.dag_lab import Lab, run_here, waveform
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.results import Read
from wavestitch.batch.steps import step_reassemble
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.quantities import Partition
from wavestitch.local.process import wait_until
from wavestitch.local.spark_server import SparkServer

STEPS = ["plan", "read", "reassemble", "validate", "answered", "publish", "commit_offsets"]
UNASKED = {"ask": "skipped"}
XCOM_LIMIT = 4096


def test_a_batch_is_published_once_and_the_next_run_has_nothing_to_do(
    lab: Lab, spark: None, server: Any, viewer: dict[str, str]
) -> None:
    lab.send(waveform(1), waveform(2), waveform(3)[:2])

    first = lab.run()
    assert first.state == "success", first
    assert first.states() == dict.fromkeys(STEPS, "success") | UNASKED | {"catch_up": "skipped"}
    assert all("partition" in name for name in first.names)
    assert lab.published() == ["w1", "w2"]
    assert sum(lab.positions().values()) == lab.sent
    assert lab.group() == lab.positions()
    assert lab.newest().identity_balances
    assert lab.newest().waveforms == {"published": 2, "open": 1, "quarantined": 0}
    for name, value in first.xcoms.items():
        assert len(json.dumps(value)) < XCOM_LIMIT, f"XCom {name} carries more than names and counts"

    # An operator sees it: the run's own tab, its Data Docs, and the page of all streams.
    plan_id = first.xcoms["plan.plan_id"]
    tab_of = f"/wavestitch/run/ingest_ecg?run_id={quote(first.run_id)}"
    # What the tables have to say comes when it comes; the page asks again by itself.
    assert wait_until(lambda: "balances" in server.get(tab_of, headers=viewer).text, seconds=60)
    tab = server.get(tab_of, headers=viewer).text
    assert plan_id in tab
    docs = server.get(f"/wavestitch/docs/ecg/{plan_id}/index.html", headers=viewer)
    assert docs.status_code == 200
    assert "Gate:" in docs.text
    assert "success</span>: The batch was committed: 2 published, 1 open waveforms." in tab
    assert 'href="stream/ecg"' in server.get("/wavestitch/", headers=viewer).text
    page: dict[str, Any] = {}

    def known() -> bool:
        page.update(server.get("/wavestitch/stream/ecg?format=json", headers=viewer).json())
        return page["state"] == "green" and page["open"] is not None

    assert wait_until(known, seconds=60)
    assert (page["backlog"], page["open"], page["quarantined"]) == (0, 2, 0)
    assert page["batches"][0]["plan_id"] == plan_id

    idle = lab.run()
    assert idle.state == "success"
    assert idle.states() == {"plan": "success"} | UNASKED | dict.fromkeys([*STEPS[1:], "catch_up"], "skipped")
    assert "stands at the end" in str(idle.xcoms["plan.nothing"])
    tab = server.get(f"/wavestitch/run/ingest_ecg?run_id={quote(idle.run_id)}", headers=viewer).text
    assert "success</span>: Nothing was to be done: " in tab
    assert "stands at the end" in tab

    # The missing chunks come: what was held is carried in, stitched and published.
    lab.send(waveform(3)[2:])
    assert lab.run().state == "success"
    assert lab.published() == ["w1", "w2", "w3"]
    assert lab.newest().counts["carried_in"] == 2


def test_a_run_that_its_limits_cut_short_triggers_the_next(lab: Lab) -> None:
    definition = lab.deployment.settings.streams / "ecg.yaml"
    definition.write_text(definition.read_text().replace("limits: {", "limits: {max_batch_records: 6, "))
    lab.send(waveform(1), waveform(2))

    first = lab.run()
    assert first.state == "success", first
    assert first.xcoms["plan.plan"]["left"] == 2
    assert first.xcoms["plan.plan"]["forecast"]["batches"] == 2
    assert first.states()["catch_up"] == "success"
    assert lab.queued() == 1

    # What was triggered goes on to the end, and triggers nothing.
    last = lab.run()
    assert last.states() == dict.fromkeys(STEPS, "success") | UNASKED | {"catch_up": "skipped"}
    assert lab.published() == ["w1", "w2"]
    assert lab.queued() == 1


def test_a_run_that_names_offsets_publishes_them_and_leaves_the_positions_alone(lab: Lab) -> None:
    lab.send(waveform(1))
    ends = lab.deployment.log.ends(lab.deployment.stream("ecg").topic, [Partition(0), Partition(1)])
    partition = next(p for p, e in ends.items() if e.stable_end)

    named = lab.run({"offsets": f"{partition}:0-4"})
    assert named.state == "success", named
    assert lab.published() == ["w1"]
    assert lab.newest().kind == "manual"
    assert lab.positions() == {0: 0, 1: 0}
    assert lab.group() == {0: 0, 1: 0}

    # A run from the positions comes by later: it moves on, and publishes nothing a second time.
    assert lab.run().state == "success"
    assert lab.published() == ["w1"]
    assert lab.newest().counts["replay"] == lab.sent
    assert sum(lab.positions().values()) == lab.sent


@pytest.mark.parametrize(
    ("conf", "words"),
    [
        ({"offsets": "0:0-99999"}, "was asked for; the log of"),
        ({"gate": "park"}, "gate park needs a reason"),
        ({"plan_id": "0" * 32}, "no plan in"),
    ],
)
def test_what_cannot_be_done_fails_on_the_first_try_in_spite_of_retries(
    lab: Lab,
    conf: dict[str, Any],
    words: str,
    capfd: pytest.CaptureFixture[str],
    server: Any,
    viewer: dict[str, str],
) -> None:
    lab.send(waveform(1))
    refused = lab.run(conf)
    assert refused.state == "failed"
    assert refused.tasks["plan"] == ("failed", 1)
    tab = server.get(f"/wavestitch/run/ingest_ecg?run_id={quote(refused.run_id)}&format=json", headers=viewer).json()
    assert (tab["state"], tab["says"]) == ("failed", "It failed at plan.")
    assert tab["lists"] == {"What the tasks say": [f"plan: {refused.xcoms['plan.failed_with']}"]}
    assert refused.states()["read"] == "upstream_failed"
    out = capfd.readouterr()
    assert words in out.out + out.err


def test_a_terminal_error_inside_spark_is_still_terminal_outside(
    lab: Lab, spark: None, capfd: pytest.CaptureFixture[str]
) -> None:
    sent = waveform(1)
    lab.send(sent)

    def damaged(_: Any) -> None:
        """The step itself, with a disk that goes bad while Spark starts: only the stitching sees it."""
        (folder,) = lab.deployment.settings.landing.glob("ecg/*/")

        def submit(job: Path, outcome: Path) -> None:
            (landed,) = folder.glob("slice-*.arrow")
            found = bytearray(landed.read_bytes())
            found[found.index(bytes(sent[1].value))] ^= 1
            landed.chmod(0o600)
            landed.write_bytes(found)
            spark = importlib.import_module("wavestitch.flows.spark_connection")
            spark.submit_through_connection(lab.deployment.settings, job, outcome)

        read = Read(tuple(p.name for p in folder.glob("receipt-*.json")), 0, 0, 0.0)
        step_reassemble(DeploymentEdges(lab.deployment, "ecg", submit=submit), folder.name, read)

    broken = lab.run(before={"reassemble": damaged})
    assert broken.tasks["reassemble"] == ("failed", 1)
    assert broken.state == "failed"
    assert list(lab.deployment.settings.landing.glob("ecg/*/*.error.json")), "it did not get as far as Spark"
    out = capfd.readouterr()
    assert "the bytes on disk are not those that were landed" in out.out + out.err
    assert lab.published() == []
    assert lab.group() == lab.positions() == {0: 0, 1: 0}


def test_a_connection_that_airflow_does_not_have_is_said_at_once(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Airflow's own hook would look for a YARN cluster instead."""
    lab.send(waveform(1))
    monkeypatch.setenv("WAVESTITCH_SPARK__CONNECTION", "spark_elsewhere")
    found = lab.run()
    assert found.tasks["reassemble"] == ("failed", 1)
    out = capfd.readouterr()
    assert "Airflow has no connection 'spark_elsewhere'" in out.out + out.err


def test_a_transient_error_is_tried_again_and_the_batch_goes_through(lab: Lab) -> None:
    lab.send(waveform(1))
    tries: list[int] = []

    def away_once(context: Any) -> None:
        tries.append(context["ti"].try_number)
        if len(tries) == 1:
            raise Transient("the disk was away")

    found = lab.run(before={"validate": away_once})
    assert found.state == "success"
    assert found.tasks["validate"] == ("success", 2)
    assert tries == [1, 2]
    assert lab.published() == ["w1"]


def test_a_closed_gate_stops_the_run_until_somebody_parks_the_plan_with_a_reason(lab: Lab) -> None:
    lab.send(*(waveform(n) for n in range(5)))
    stopped = lab.run({"gate": "stop"})
    assert stopped.state == "failed"
    assert stopped.tasks["validate"] == ("failed", 1)
    assert lab.group() == {0: 0, 1: 0}

    plan_id = stopped.xcoms["plan.plan_id"]
    parked = lab.run({"plan_id": plan_id, "gate": "park", "why": "five are too many"})
    assert parked.state == "success", parked
    assert lab.published() == []
    assert lab.newest().plan_id == plan_id
    assert "five are too many (dag_test)" in lab.newest().note
    assert lab.newest().waveforms["quarantined"] == 5
    assert sum(lab.positions().values()) == lab.sent


def test_a_step_that_is_out_of_time_leaves_no_spark_behind(lab: Lab, spark: None) -> None:
    lab.send(waveform(1))
    dag = lab.dag()
    task = dag.get_task("reassemble")
    task.execution_timeout, task.retries = timedelta(seconds=4), 0
    before = set(psutil.Process().children())
    assert run_here(dag).tasks["reassemble"] == ("failed", 1)
    assert wait_until(lambda: not processes_about(lab.deployment.settings.landing), seconds=6)
    # Ended and waited for: a child that nobody waited for stays in the table of processes, and its pipe stays open.
    assert set(psutil.Process().children()) <= before


def test_where_the_settings_name_a_spark_that_is_there_it_stitches_and_no_connection_is_asked(
    lab: Lab, spark_server: SparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVESTITCH_SPARK__REMOTE", spark_server.remote)
    monkeypatch.setenv("WAVESTITCH_SPARK__TOKEN", spark_server.token)
    monkeypatch.setenv("WAVESTITCH_SPARK__CONNECTION", "spark_elsewhere")  # there is none: asked, it would be refused
    lab.send(waveform(1), waveform(2))
    assert lab.run().state == "success"
    assert lab.published() == ["w1", "w2"]
    assert lab.group() == lab.positions()


def processes_about(folder: Path) -> list[str]:
    """Command lines of processes that were given a path in this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(entry.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in found if str(folder) in line]
