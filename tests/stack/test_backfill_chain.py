"""The backfill's DAG over memory edges: the chain of an interval, task by task, as Airflow orders and clears them."""

from __future__ import annotations

import importlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges
from tests.fakes.fake_log import FakeLog
from tests.stack.airflow_home import make_database, write_settings
from tests.stack.dag_lab import Run, run_here

DAY_MS = 86_400_000
FIRST_MS = 1_577_836_800_000  # 2020-01-01
NOW_MS = FIRST_MS + 2000 * DAY_MS
SECOND_DAY = {"interval": "2020-01-02T00:00:00Z/2020-01-03T00:00:00Z"}
STREAM = make_stream("shore", limits={"max_clock_skew": "36500 d", "max_batch_records": 3})


class Shore:
    """A stream in memory, and its DAG."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bench = Bench(FakeLog("waves", 1))
        (folder / "streams").mkdir()
        # Airflow looks the DAG up where it comes from.
        (folder / "streams" / "shore.yaml").write_text("topic: waves\ngroup: g\n")
        monkeypatch.setenv("WAVESTITCH_CONFIG", str(write_settings(folder, streams=folder / "streams")))
        make_database()
        self.flow = importlib.import_module("dags.backfill")
        for module in (self.flow, importlib.import_module("wavestitch.flows.batch_tasks")):
            monkeypatch.setattr(module, "edges_of", lambda _: FakeEdges(self.bench, STREAM, NOW_MS, Carrying()))

    def send(self, waveform_id: str, *, day: int, chunks: int) -> None:
        start_ms = FIRST_MS + day * DAY_MS
        for seq in range(chunks):
            send_chunk(self.bench.log, waveform_id, seq, at_ms=NOW_MS, start_ms=start_ms, count=chunks)

    def run(self, conf: dict[str, Any]) -> Run:
        from airflow import settings  # noqa: PLC0415

        settings.Session.remove()
        dag = self.flow.make_backfill_dag(STREAM, retry_delay=timedelta(0))
        return run_here(dag, conf)

    def published(self) -> list[str]:
        return sorted(row.waveform_id for _, row in self.bench.tables.rows)


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
    shore.bench.log.retain_from(0, 2)
    assert shore.run(SECOND_DAY).states()["report"] == "failed"
    out = capfd.readouterr()
    assert "nothing is left of this interval" in out.out + out.err


def test_a_run_by_hand_says_which_interval_it_means(shore: Shore, capfd: pytest.CaptureFixture[str]) -> None:
    assert shore.run({}).states()["plan"] == "failed"
    out = capfd.readouterr()
    assert "say which interval is meant" in out.out + out.err
