"""Who goes first where slots are short: who tells of retention, who is near it, who was asked for, then who waits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.stack.airflow_home import load_dags, prepare_airflow, write_settings
from wavestitch.batch.kept_told import keep_told
from wavestitch.contracts.headroom import Alarm
from wavestitch.contracts.headroom_told import PartitionTold, Told
from wavestitch.contracts.quantities import Partition

prepare_airflow()

ASKED = ["backfill", "decide", "promote", "rewind", "verify"]


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of a deployment with the streams a, b and c."""
    folder: Path = tmp_path_factory.mktemp("priorities")
    (folder / "streams").mkdir()
    for name in "abc":
        (folder / "streams" / f"{name}.yaml").write_text("topic: t\ngroup: g\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVESTITCH_CONFIG", str(write_settings(folder, streams=folder / "streams")))
        yield folder / "landing"


@pytest.fixture(scope="module")
def dags(landing: Path) -> dict[str, Any]:
    """As the scheduler has them."""
    from airflow.serialization.serialized_objects import DagSerialization  # noqa: PLC0415

    return {d: DagSerialization.from_dict(DagSerialization.to_dict(dag)) for d, dag in load_dags().dags.items()}


def weights(dag: Any) -> list[int]:
    """Of each task, of a run that is made now."""
    from airflow.models.taskinstance import TaskInstance  # noqa: PLC0415 - reads the environment

    return [t.weight_rule.get_weight(TaskInstance(task=t, run_id="r", dag_version_id=None)) for t in dag.tasks]


def seen(landing: Path, stream: str, alarm: Alarm, *, told: Alarm = Alarm.GREEN) -> None:
    keep_told(landing, stream, Told({Partition(0): PartitionTold(told)}, seen=alarm))


def test_who_is_near_retention_goes_before_what_was_asked_for_and_that_before_all_others(
    dags: dict[str, Any], landing: Path
) -> None:
    seen(landing, "a", Alarm.RED)
    seen(landing, "b", Alarm.AMBER)
    order = [
        weights(dags["watch"]),
        weights(dags["ingest_a"]),
        weights(dags["ingest_b"]),
        [w for flow in ASKED for w in weights(dags[f"{flow}_a"])],
        weights(dags["ingest_c"]),
    ]
    assert all(min(first) > max(then) for first, then in pairwise(order)), order
    seen(landing, "a", Alarm.GREEN, told=Alarm.RED)
    assert weights(dags["ingest_a"]) == weights(dags["ingest_c"]), "it caught up, and waits as the others do"


def test_an_ingest_s_first_task_weighs_most_so_that_no_stream_waits_to_begin_until_others_have_ended(
    dags: dict[str, Any],
) -> None:
    dag = dags["ingest_c"]
    found = dict(zip((t.task_id for t in dag.tasks), weights(dag), strict=True))
    assert max(found.values()) == found["plan"] == len(dag.tasks)
    assert min(found.values()) == found["catch_up"] == 1


def test_what_was_told_of_retention_and_cannot_be_read_keeps_no_run_from_being_made(
    dags: dict[str, Any], landing: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen(landing, "b", Alarm.RED)
    (landing / ".told" / "b" / "told.json").write_text("{")
    assert weights(dags["ingest_b"]) == weights(dags["ingest_c"])
    monkeypatch.setenv("WAVESTITCH_CONFIG", "/nowhere.toml")
    assert weights(dags["ingest_b"]) == weights(dags["ingest_c"])
    assert "how near retention is cannot be read" in caplog.text
