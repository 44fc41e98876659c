"""What others are told of a batch is of that batch, however late they are told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from tests.builders.table_rows import NOON, published_row, stage
from tests.domain.maintenance_rig import STREAM, Rig
from tests.stack.airflow_home import prepare_airflow
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.contracts.batch_row import describe_head
from wavestitch.contracts.position import HeadKind

prepare_airflow()


def test_an_event_of_a_batch_whose_snapshot_has_expired_names_no_other_ones(tmp_path: Path) -> None:
    from wavestitch.flows.assets import describe_published_batch  # noqa: PLC0415 - not before Airflow's home is made

    rig = Rig(tmp_path)
    first = rig.publish("w0", plan_id="a" * 32, recorded=False)
    rig.tables.append_batches([replace(describe_head(first, stream=STREAM), waveforms={"published": 1})])
    edges = DeploymentEdges(rig.deployment, STREAM)
    told = describe_published_batch(edges, "a" * 32)
    assert told is not None
    assert told["snapshot_id"] == str(first.snapshot_id)
    later = [stage(rig.tables.data_folder(), "later", [published_row("w1", start=NOON + timedelta(days=9))])]
    rig.record(rig.tables.commit(first, first.next(kind=HeadKind.INGEST, plan_id="b" * 32, decision="d9"), later))
    rig.maintain("snapshots")
    late = describe_published_batch(edges, "a" * 32)
    assert late == {**told, "snapshot_id": None, "days": []}
