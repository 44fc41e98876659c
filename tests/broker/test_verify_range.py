"""A range verified on real parts: broker, Iceberg, Great Expectations, and Spark once; nothing is changed by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from tests.builders.altered_rows import alter_row
from tests.builders.deleted_rows import delete_rows
from tests.builders.ranges import span
from tests.builders.recordings import START_NS, cut, recordings
from tests.conftest import TopicFactory
from tests.deployment_rig import STREAM, DeploymentRig, make_deployment_rig
from tests.faults.in_process import read_here
from tests.product_logins import address_for_tests
from wavestitch.batch.carry import Silent
from wavestitch.batch.comparing_edges import VerifyingEdges
from wavestitch.batch.verify import Verified, VerifyRequest, verify_range
from wavestitch.cli import app
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.verification import Agreement, Compared
from wavestitch.local.broker import Broker

HOUR = 3600 * 1_000_000_000


@pytest.fixture
def whole(tmp_path: Path, broker: Broker, topic_factory: TopicFactory, java_home: Path) -> DeploymentRig:
    made = make_deployment_rig(
        tmp_path / "deployment", bootstrap=broker.bootstrap, topic=topic_factory(), java_home=java_home
    )
    made.send(cut(recordings(4)))
    made.run_without_spark()
    return made


def state(whole: DeploymentRig) -> tuple[Any, ...]:
    """All that a verification must leave alone."""
    tables = whole.deployment.tables(STREAM)
    folders = ("landing", "docs", "warehouse")
    files = [str(p) for f in folders for p in sorted((whole.folder / f).rglob("*"))]
    group = whole.deployment.log.group_offsets(whole.group, whole.topic, [Partition(0)])
    table, left = tables.waveforms(), tables.held_left()
    assert table is not None
    return tables.heads(), tables.batches(), group, table.current_snapshot(), left, files


def verify(whole: DeploymentRig, *ranges: OffsetRange, scope: Scope | None = None, **how: Any) -> Verified:
    parts = {"read": read_here} | how
    before = state(whole)
    done = verify_range(
        VerifyingEdges(whole.deployment, STREAM, **parts), VerifyRequest(ranges, scope), watcher=Silent()
    )
    assert state(whole) == before
    return done


def unlike(done: Verified) -> dict[str, Compared]:
    return {one.waveform_id: one for one in done.waveforms if one.found is not Agreement.SAME}


def alter_first_sample(whole: DeploymentRig, waveform_id: str) -> None:
    table = whole.deployment.tables(STREAM).waveforms()
    assert table is not None
    samples = table.scan(row_filter=f"waveform_id == '{waveform_id}'").to_arrow()["samples"][0].as_py()
    alter_row(table, waveform_id, samples=[samples[0] + 1, *samples[1:]])


def test_spark_stitches_a_range_once_more_and_the_command_says_that_all_is_the_same(
    whole: DeploymentRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(whole.folder / "wavestitch.toml"))
    before, report = state(whole), whole.folder / "report.json"
    said = CliRunner().invoke(app, ["verify", STREAM, "--offsets", "0:0-1000", "--into", str(report)])
    assert said.exit_code == 0, said.output
    assert "the table says what the log says: 4 same" in said.output.replace("\n", " ")
    assert state(whole) == before
    kept = json.loads(report.read_text())
    assert (kept["counts"]["same"], kept["exit_code"]) == (4, 0)
    assert kept["snapshot_id"] == before[3].snapshot_id


def test_an_altered_row_differs_a_deleted_one_is_missing_and_what_kafka_deleted_is_lost(whole: DeploymentRig) -> None:
    assert unlike(verify(whole)) == {}
    plan_id = whole.deployment.tables(STREAM).batches()[0].plan_id
    alter_first_sample(whole, "w-0001")
    (one,) = unlike(verify(whole, scope=Scope(START_NS, START_NS + 2 * HOUR))).values()
    assert (one.waveform_id, one.found, one.plan_id) == ("w-0001", Agreement.DIFFERS, plan_id)
    assert "samples" in one.columns
    table = whole.deployment.tables(STREAM).waveforms()
    assert table is not None
    delete_rows(table, ["w-0002"])
    found = {i: one.found for i, one in unlike(verify(whole)).items()}
    assert found == {"w-0001": Agreement.DIFFERS, "w-0002": Agreement.MISSING_IN_TABLE}

    end = TopicPartition(whole.topic, 0, 1)
    admin = AdminClient({"bootstrap.servers": address_for_tests(whole.deployment.kafka)})
    admin.delete_records([end])[end].result(30)
    done = verify(whole, span(0, 0, 1000))
    lost = unlike(done)["w-0000"]
    assert (lost.found, lost.lost) == (Agreement.MISSING_IN_KAFKA, (span(0, 0, 1),))
    assert done.lost == (span(0, 0, 1),)
