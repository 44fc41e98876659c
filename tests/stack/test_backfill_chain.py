"""The backfill's DAG over memory edges: the chain of an interval, task by task, as Airflow orders and clears them, and
what somebody answers by Airflow's own API.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges
from tests.fakes.fake_log import FakeLog
from tests.stack.airflow_home import make_database, write_settings
from tests.stack.dag_lab import Run, clear_here, headers_of, run_here, set_in_flows
from wavestitch.batch.edges import Progress
from wavestitch.batch.run import RunOptions, Silent, run_batch
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.receipt import Receipt

DAY_MS = 86_400_000
FIRST_MS = 1_577_836_800_000  # 2020-01-01
NOW_MS = FIRST_MS + 2000 * DAY_MS
SECOND_DAY = {"interval": "2020-01-02T00:00:00Z/2020-01-03T00:00:00Z"}
STREAM = make_stream("shore", limits={"max_clock_skew": "36500 d", "max_batch_records": 3})


@dataclass(frozen=True)
class Landing(FakeEdges):
    """Edges over which the first batch does not go well, and that tell what lies in the landing."""

    shore: Shore

    def read(self, plan: Plan, units: Sequence[int], *, progress: Progress) -> list[Receipt]:
        if self.shore.hiccups and plan.ranges[0].start == 0:
            self.shore.hiccups -= 1
            raise Transient("the broker does not answer just now")
        self.shore.landed.append(plan.plan_id)
        self.shore.most_landed = max(self.shore.most_landed, len(set(self.shore.landed)))
        return super().read(plan, units, progress=progress)

    def free(self, plan_id: str) -> int:
        self.shore.landed = [i for i in self.shore.landed if i != plan_id]
        return 0


class Shore:
    """A stream in memory, and its DAG. `how`: what its gate says; `hiccups`: of the first batch's read, yet to come;
    `landed`: the plans whose payload lies in the landing, and `most_landed`, how many that were at once."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bench = Bench(FakeLog("waves", 1))
        self.how, self.hiccups = Carrying(), 0
        self.landed: list[str] = []
        self.most_landed = 0
        (folder / "streams").mkdir()
        # Airflow looks the DAG up where it comes from.
        (folder / "streams" / "shore.yaml").write_text("topic: waves\ngroup: g\n")
        monkeypatch.setenv("WAVESTITCH_CONFIG", str(write_settings(folder, streams=folder / "streams")))
        make_database()
        self.flow = importlib.import_module("dags.backfill")
        set_in_flows(monkeypatch, "edges_of", self.edges)
        monkeypatch.setattr(self.flow, "edges_of", self.edges)

    def edges(self, _: str) -> Landing:
        return Landing(self.bench, STREAM, NOW_MS, self.how, self)

    def send(self, waveform_id: str, *, day: int, chunks: int) -> None:
        start_ms = FIRST_MS + day * DAY_MS
        for seq in range(chunks):
            send_chunk(self.bench.log, waveform_id, seq, at_ms=NOW_MS, start_ms=start_ms, count=chunks)

    def run(self, conf: dict[str, Any], *, before_read: Callable[[Any], None] | None = None) -> Run:
        """Nobody is asked at a closed gate, unless the form says so: who then answers does it `before_read`."""
        from airflow import settings  # noqa: PLC0415

        settings.Session.remove()
        dag = self.dag()
        dag.get_task("batch.read")._pre_execute_hook = before_read
        return run_here(dag, {"gate": "stop", **conf})

    def again(self, run: Run) -> Run:
        """That run, what failed of it cleared."""
        return clear_here(self.dag(), run)

    def dag(self) -> Any:
        return self.flow.make_backfill_dag(STREAM, retry_delay=timedelta(0))

    def published(self) -> list[str]:
        return sorted(row.waveform_id for _, row in self.bench.tables.rows)


@dataclass
class Somebody:
    """Answers the question of the first batch through Airflow's API server, as soon as the second one asks for its
    turn. `asked`: what was put before them; `landed`: what lay in the landing then; `refused`: what a viewer heard."""

    server: Any
    shore: Shore
    answer: dict[str, Any]
    asked: dict[str, Any] = field(default_factory=dict)
    landed: set[str] = field(default_factory=set)
    refused: int = 0

    def look(self, context: Any) -> None:
        ti = context["ti"]
        task = f"/api/v2/dags/{ti.dag_id}/dagRuns/{quote(ti.run_id)}/taskInstances/batch.ask/0"
        waits = self.server.get(task, headers=headers_of("admin"))
        if self.asked or waits.json().get("state") != "awaiting_input":
            return
        path = f"{task}/hitlDetails"
        self.asked, self.landed = self.server.get(path, headers=headers_of("admin")).json(), set(self.shore.landed)
        self.refused = self.server.patch(path, headers=headers_of("viewer"), json=self.answer).status_code
        done = self.server.patch(path, headers=headers_of("admin"), json=self.answer)
        assert done.status_code == 200, done.text


@pytest.fixture
def shore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shore:
    return Shore(tmp_path, monkeypatch)


def test_an_interval_above_the_limits_is_a_chain_and_what_lies_across_its_cuts_is_read_together(shore: Shore) -> None:
    shore.send("first", day=0, chunks=1)
    shore.send("second", day=1, chunks=4)
    found = shore.run(SECOND_DAY)
    assert found.state == "success", found
    assert shore.published() == ["second"]
    assert len(found.xcoms["plan.return_value"]) == 2
    assert len(found.xcoms["plan_across_cuts.return_value"]) == 1
    assert found.xcoms["report.return_value"]["published"] == 1


def test_an_interval_of_which_nothing_is_there_succeeds_and_one_that_retention_took_does_not(
    shore: Shore, capfd: pytest.CaptureFixture[str]
) -> None:
    empty = shore.run(SECOND_DAY)
    assert empty.state == "success", empty
    assert empty.states()["report"] == "success"
    assert empty.states()["plan_across_cuts"] == "skipped"
    shore.send("gone", day=1, chunks=2)
    shore.bench.log.retain_from(Partition(0), Offset(2))
    assert shore.run(SECOND_DAY).states()["report"] == "failed"
    out = capfd.readouterr()
    assert "nothing is left of this interval" in out.out + out.err


def test_a_run_by_hand_says_which_interval_it_means(shore: Shore, capfd: pytest.CaptureFixture[str]) -> None:
    assert shore.run({}).states()["plan"] == "failed"
    out = capfd.readouterr()
    assert "say which interval is meant" in out.out + out.err


def test_behind_a_batch_that_waits_or_stopped_nothing_is_read_and_after_it_was_accepted_the_rest_goes_on(
    shore: Shore, capfd: pytest.CaptureFixture[str]
) -> None:
    sent = [f"w{n}" for n in range(6)]
    for one in sent:
        shore.send(one, day=1, chunks=1)
    shore.how, shore.hiccups = Carrying(spoiled=sent[:3]), 1
    stood = shore.run(SECOND_DAY)
    first, second = stood.xcoms["plan.return_value"]
    assert (stood.state, shore.published()) == ("failed", [])
    assert (shore.landed, shore.most_landed) == ([first], 1)
    assert stood.tries["batch.read"] == [2, 1]
    said = capfd.readouterr()
    stopped = f"batch {second[:16]} of stream shore comes after batch {first[:16]} of the same backfill"
    assert stopped in said.out + said.err
    assert "Its task validate is failed" in said.out + said.err
    run_batch(shore.edges(""), RunOptions(plan_id=first, gate="accept", why="looked at"), watcher=Silent())
    went_on = shore.again(stood)
    assert (went_on.state, shore.published(), shore.most_landed) == ("success", sent, 1), went_on
    assert went_on.xcoms["report.return_value"]["published"] == len(sent)


def test_somebody_accepts_the_batch_that_waits_at_its_gate_and_those_behind_it_which_read_nothing_go_on(
    shore: Shore, server: Any
) -> None:
    sent = [f"w{n}" for n in range(6)]
    for one in sent:
        shore.send(one, day=1, chunks=1)
    shore.how = Carrying(spoiled=sent[:3])
    said = {"chosen_options": ["Accept"], "params_input": {"why": "looked at"}}
    somebody = Somebody(server, shore, said)
    done = shore.run({**SECOND_DAY, "gate": "ask"}, before_read=somebody.look)
    assert (done.state, shore.published(), shore.most_landed) == ("success", sent, 1), done
    first, _ = done.xcoms["plan.return_value"]
    assert somebody.landed == {first}
    assert somebody.refused == 403
    assert somebody.asked["options"] == ["Accept", "Stop"]
    assert "the batches behind this one read nothing until it is accepted" in somebody.asked["body"]
    notes = {row.plan_id: row.note for row in shore.bench.tables.history}
    assert notes[first] == "gate: accept; looked at (admin)"
