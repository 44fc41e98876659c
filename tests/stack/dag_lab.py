"""A stream of its own on the session's broker, and the DAG of it carried out in this process."""

from __future__ import annotations

import importlib
import pkgutil
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.quantities import Partition
from wavestitch.local.broker import Broker
from wavestitch.producers.chunking import ChunkRecord, cut_recording
from wavestitch.producers.recording import make_recording
from wavestitch.producers.sender import send_chunks

STREAM = """
topic: {topic}
group: {topic}-readers
limits: {{max_clock_skew: 36500 d}}
reading: {{workers: 2}}
expectations:
  - type: expect_column_values_to_be_in_set
    kwargs: {{column: units, value_set: [mV]}}
  - type: expect_table_row_count_to_be_between
    kwargs: {{max_value: 4}}
"""


@dataclass
class Run:
    """How a run of the DAG ended: its state, and per task instance its state and the number of tries; `tries`: those of
    all that a task was mapped to, in their order."""

    run_id: str
    state: str
    tasks: dict[str, tuple[str, int]]
    names: list[str]
    xcoms: dict[str, Any] = field(default_factory=dict)
    tries: dict[str, list[int]] = field(default_factory=dict)

    def states(self) -> dict[str, str]:
        return {task: state for task, (state, _) in self.tasks.items()}


def set_in_flows(monkeypatch: pytest.MonkeyPatch, name: str, made: Callable[..., Any]) -> None:
    """In each module of the flows that has this name, and none is imported later, which would keep it for good."""
    from wavestitch import flows  # noqa: PLC0415 - loads Airflow, whose home is prepared first

    names = [f"{flows.__name__}.{found.name}" for found in pkgutil.iter_modules(flows.__path__)]
    modules = [importlib.import_module(n) for n in names]
    for module in modules:
        if hasattr(module, name):
            monkeypatch.setattr(module, name, made)


@dataclass
class Lab:
    """A stream of its own on the session's broker, and what a test does with it."""

    deployment: Deployment
    broker: Broker
    sent: int = 0

    def send(self, *chunks: list[ChunkRecord]) -> None:
        flat = [c for waveform in chunks for c in waveform]
        send_chunks(flat, topic=self.deployment.stream("ecg").topic, settings=self.deployment.kafka)
        self.sent += len(flat)

    def dag(self) -> Any:
        """The stream's DAG, without a delay between tries."""
        return importlib.import_module("dags.ingest").make_ingest_dag(
            self.deployment.stream("ecg"), retry_delay=timedelta(0)
        )

    def run(self, conf: dict[str, Any] | None = None, *, before: dict[str, Callable[[Any], None]] | None = None) -> Run:
        """One run as a trigger makes it. `before`: what happens as a task begins."""
        from airflow import settings  # noqa: PLC0415

        # What an earlier run's death left in this thread's session would not be there in a new scheduler's.
        settings.Session.remove()
        dag = self.dag()
        for task_id, act in (before or {}).items():
            dag.get_task(task_id)._pre_execute_hook = act
        return run_here(dag, conf)

    def queued(self) -> int:
        """Runs that were triggered and wait for a scheduler."""
        return queued_runs("ingest_ecg")

    def positions(self) -> dict[int, int]:
        head = self.deployment.tables("ecg").head()
        assert head is not None
        return {p: at.next_offset for p, at in head.positions.items()}

    def group(self) -> dict[int, int | None]:
        stream = self.deployment.stream("ecg")
        found = self.deployment.log.group_offsets(stream.group, stream.topic, [Partition(0), Partition(1)])
        return {p: at.offset if at else None for p, at in found.items()}

    def published(self) -> list[str]:
        table = self.deployment.tables("ecg").waveforms()
        assert table is not None
        return sorted(table.scan(selected_fields=("waveform_id",)).to_arrow().column(0).to_pylist())

    def newest(self) -> Any:
        return self.deployment.tables("ecg").batches()[0]


def waveform(number: int, *, units: str = "mV") -> list[ChunkRecord]:
    """Four chunks of a recording that nobody else has."""
    recording = make_recording(
        waveform_id=f"w{number}",
        source="bench",
        channel="II",
        start_time_ns=1_767_225_600_000_000_000 + number * 1_000_000_000,
        sampling_rate_hz=100,
        sample_format="i16le",
        units=units,
        adc_gain=200,
        baseline=0,
        samples=struct.pack("<400h", *((number * 37 + i) % 999 for i in range(400))),
    )
    return cut_recording(recording, 200)


def run_here(dag: Any, conf: dict[str, Any] | None = None) -> Run:
    """One run in this process."""
    # Airflow 3.3.2 ends such a run by looking for its deadline in the database, where `test` has not written it.
    dag.deadline = None
    # And a failed one by a context for its callback in which a form's fields without a default have no value.
    dag.has_on_failure_callback = False
    return outcome_of(dag.test(run_conf=conf, logical_date=None))


def clear_here(dag: Any, run: Run, *, only: Sequence[str] = ()) -> Run:
    """What failed of this run cleared, or these tasks, as somebody does it on Airflow's page, and carried out in this
    process."""
    from airflow.models.dagrun import DagRun  # noqa: PLC0415
    from airflow.models.taskinstance import clear_task_instances  # noqa: PLC0415
    from airflow.sdk.definitions.dag import _run_task  # noqa: PLC0415
    from airflow.serialization.serialized_objects import DagSerialization  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    def kept(session: Any) -> Any:
        return session.query(DagRun).filter(DagRun.run_id == run.run_id, DagRun.dag_id == dag.dag_id).one()

    dag.deadline, dag.has_on_failure_callback = None, False  # as above
    with create_session() as session:
        states = None if only else ["failed", "upstream_failed"]
        found = kept(session).get_task_instances(state=states, session=session)
        cleared = [ti for ti in found if not only or ti.task_id in only]
        clear_task_instances(cleared, session, dag_run_state="running")
    with create_session() as session:
        dag_run = kept(session)
        dag_run.dag = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
        while dag_run.state == "running":
            session.expire_all()
            due, _ = dag_run.update_state(session=session)
            for ti in due:
                ti.try_number += ti.state != "up_for_reschedule"
                ti.state = "scheduled"
            session.commit()
            for ti in due:
                _run_task(ti=ti, task=dag.get_task(ti.task_id))
        return outcome_of(dag_run)


def outcome_of(dag_run: Any) -> Run:
    from airflow.models.xcom import XComModel  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    tis = sorted(dag_run.get_task_instances(), key=lambda ti: ti.map_index)
    with create_session() as session:
        rows = session.query(XComModel).filter(XComModel.run_id == dag_run.run_id, XComModel.dag_id == dag_run.dag_id)
        xcoms = {f"{x.task_id}.{x.key}": x.value for x in rows}
    return Run(
        str(dag_run.run_id),
        str(dag_run.state),
        {ti.task_id: (str(ti.state), ti.try_number) for ti in tis},
        sorted(ti.rendered_map_index for ti in tis if ti.task_id == "read" and ti.rendered_map_index),
        xcoms,
        {task: [ti.try_number for ti in tis if ti.task_id == task] for task in {ti.task_id for ti in tis}},
    )


def headers_of(role: str) -> dict[str, str]:
    """Of a user who has this role, and its name, at the API server of this process."""
    from airflow.api_fastapi.app import get_auth_manager  # noqa: PLC0415
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser  # noqa: PLC0415

    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username=role, role=role))
    return {"Authorization": f"Bearer {token}"}


def queued_runs(dag_id: str) -> int:
    """Runs that were triggered and wait for a scheduler."""
    from airflow.models.dagrun import DagRun  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    with create_session() as session:
        return session.query(DagRun).filter(DagRun.dag_id == dag_id, DagRun.state == "queued").count()


def end_runs(dag_id: str) -> None:
    """Whatever other tests of this process have left of it, queued or under way."""
    from airflow.models.dagrun import DagRun  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    with create_session() as session:
        left = session.query(DagRun).filter(DagRun.dag_id == dag_id, DagRun.state.in_(["queued", "running"]))
        left.update({"state": "failed"}, synchronize_session=False)


def asset_events(name: str) -> list[dict[str, Any]]:
    """What was said with each update of an asset, oldest first."""
    from airflow.models.asset import AssetEvent, AssetModel  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415

    with create_session() as session:
        asked = session.query(AssetEvent).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        return [dict(e.extra) for e in asked.filter(AssetModel.name == name).order_by(AssetEvent.id)]


def answers(lab: Lab) -> bool:
    """A young broker loads its groups while the first one asks; that is no fault, but a try."""
    try:
        # Not by asking for offsets: librdkafka's admin client crashes where the broker answers that with "not yet".
        lab.deployment.log.members(lab.deployment.stream("ecg").group)
    except Transient:
        return False
    return True
