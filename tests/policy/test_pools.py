"""What there is little of is waited for in a pool of Airflow's, by every task that takes it, and by no other."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.stack.airflow_home import load_dags, make_database, prepare_airflow, write_settings
from wavestitch.settings_sections import Spark, Verify

prepare_airflow()

READERS = "brokers"


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Of all DAGs of one stream, by the settings' defaults but for a pool for readers."""
    folder: Path = tmp_path_factory.mktemp("pools")
    (folder / "streams").mkdir()
    (folder / "streams" / "a.yaml").write_text("topic: t\ngroup: g\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WAVESTITCH_CONFIG", str(write_settings(folder, streams=folder / "streams")))
        patch.setenv("WAVESTITCH_KAFKA__POOL", READERS)
        patch.setenv("WAVESTITCH_KAFKA__POOL_SLOTS", "3")
        yield {f"{d}.{t.task_id}": t for d, dag in load_dags().dags.items() for t in dag.tasks}


def in_pool(tasks: dict[str, Any], pool: str) -> set[str]:
    return {name for name, task in tasks.items() if task.pool == pool}


def test_whatever_starts_a_spark_waits_for_one_pool_and_whatever_reads_a_batch_for_another(
    tasks: dict[str, Any],
) -> None:
    assert in_pool(tasks, "spark") == {
        "ingest_a.reassemble",
        "backfill_a.batch.reassemble",
        "backfill_a.across_cuts.reassemble",
        "decide_a.reassemble",
        "promote_a.reassemble",
    }
    assert in_pool(tasks, READERS) == {
        "ingest_a.read",
        "backfill_a.batch.read",
        "backfill_a.across_cuts.read",
        "promote_a.read",
    }
    assert in_pool(tasks, "verify") == {"verify_a.verify", "promote_a.preview"}
    assert {task.pool for task in tasks.values()} == {"spark", "verify", READERS, "default_pool"}


def test_a_task_whose_code_can_lead_to_a_spark_is_in_its_pool_and_no_other_holds_a_slot_of_it(
    tasks: dict[str, Any],
) -> None:
    """One way leads there: the stage that stitches. The edges that compare carry it, too, in their own process."""
    assert reached(tasks, 'carried_out("reassemble"') == in_pool(tasks, Spark().pool)
    assert reached(tasks, "comparing_edges_of(") == in_pool(tasks, Verify().pool)
    assert Spark().pool_slots == 1, "by default no two Sparks are there at once"


def test_what_holds_a_slot_for_hours_is_in_no_pool_that_a_batch_waits_for(tasks: dict[str, Any]) -> None:
    """Else one of it, of one stream, keeps all others from their next batch: weights take nobody's slot away."""
    long = timedelta(hours=3)
    waits = {task.pool for name, task in tasks.items() if name.startswith("ingest_")} - {"default_pool"}
    assert waits == {"spark", READERS}
    holders = {name for name, task in tasks.items() if task.pool in waits and task.execution_timeout > long}
    assert holders == set()


def reached(tasks: dict[str, Any], way: str) -> set[str]:
    return {name for name, task in tasks.items() if way in code_of(task)}


def code_of(task: Any) -> str:
    callable_of = getattr(task, "python_callable", None) or getattr(task, "partial_kwargs", {}).get("python_callable")
    return inspect.getsource(callable_of) if callable_of is not None else ""


def test_what_starts_of_airflow_makes_the_pools_once_and_what_somebody_changed_stays(tasks: dict[str, Any]) -> None:
    make_database()
    from airflow.jobs.job import Job  # noqa: PLC0415 - reads the environment
    from airflow.models.pool import Pool  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    from wavestitch.flows import pools  # noqa: PLC0415
    from wavestitch.ui.airflow_plugin import WavestitchPlugin  # noqa: PLC0415

    def slots() -> dict[str, int]:
        with create_session() as session:
            return {pool.pool: pool.slots for pool in session.query(Pool) if pool.pool in ("spark", "verify", READERS)}

    assert tasks
    assert pools in WavestitchPlugin.listeners
    with create_session() as session:  # other tests of this process have some
        session.query(Pool).filter(Pool.pool.in_(("spark", "verify", READERS))).delete()
    pools.on_starting(component=object())
    assert slots() == {}, "a task's process starts, too, and has no database"
    pools.on_starting(component=Job())
    assert slots() == {"spark": 1, "verify": 1, READERS: 3}
    with create_session() as session:
        session.query(Pool).filter(Pool.pool == "spark").one().slots = 2
    pools.on_starting(component=Job())
    assert slots() == {"spark": 2, "verify": 1, READERS: 3}


def test_settings_that_cannot_be_read_keep_no_part_of_airflow_from_starting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_database()
    from airflow.jobs.job import Job  # noqa: PLC0415

    from wavestitch.flows import pools  # noqa: PLC0415

    monkeypatch.setenv("WAVESTITCH_CONFIG", "/nowhere.toml")
    pools.on_starting(component=Job())
    assert "the pools of the settings are not made" in caplog.text
