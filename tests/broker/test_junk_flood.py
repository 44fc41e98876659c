"""A misdirected producer on a real log and tables: the stream goes on, every offset is explained, junk expires (I1).

The operator's commands about it are the real ones, too.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from tests.builders.recordings import cut, recordings
from tests.conftest import TopicFactory
from tests.deployment_rig import STREAM, DeploymentRig, make_deployment_rig
from tests.domain.maintenance_rig import limits, went
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.batch.stream_facts import stream_facts
from wavestitch.cli import app
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.quantities import EpochMs
from wavestitch.local.broker import Broker
from wavestitch.maintain.run import maintain_stream

LINE = b"a line of somebody's log file\n"
KEPT = 40
LIMITS = f"65536 B, max_junk_bytes: {KEPT * len(LINE)} B, max_held_rows: 9"
DAY_MS = 86_400_000


@pytest.fixture
def whole(
    tmp_path: Path, broker: Broker, topic_factory: TopicFactory, java_home: Path, monkeypatch: pytest.MonkeyPatch
) -> DeploymentRig:
    folder = tmp_path / "deployment"
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(folder / "wavestitch.toml"))
    topic = topic_factory(partitions=2)
    return make_deployment_rig(
        folder, bootstrap=broker.bootstrap, topic=topic, java_home=java_home, max_waveform_bytes=LIMITS
    )


def misdirect(broker: Broker, whole: DeploymentRig, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _ in range(count):
        producer.produce(whole.topic, value=LINE, partition=1)
    assert producer.flush(30) == 0


def command(*argv: str) -> Any:
    done = CliRunner().invoke(app, list(argv))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def junk(whole: DeploymentRig) -> list[tuple[int, bool]]:
    """Offset of each held record that is no chunk, and whether the table has its bytes."""
    table = whole.deployment.tables(STREAM).stored()[1].ensure()
    rows = table.scan(row_filter="record_reason is not null").to_arrow().to_pylist()
    assert all(r["stored"] == (r["payload"] is not None) for r in rows)
    assert {r["length"] for r in rows} <= {len(LINE)}
    return sorted((r["offset"], r["stored"]) for r in rows)


def expire(whole: DeploymentRig, *, apply: bool, after_days: int) -> int:
    now = EpochMs(time.time_ns() // 1_000_000 + after_days * DAY_MS)
    found = limits(junk=30 * 86_400)
    report = maintain_stream(whole.deployment, STREAM, apply=apply, only=["junk"], limits=found, now=now)
    assert not report.failures
    return went(report, "junk")


def test_a_flood_stops_nothing_is_seen_and_expires(whole: DeploymentRig, broker: Broker, tmp_path: Path) -> None:
    first, second, third = (recordings(2, prefix=name, seed=n) for n, name in enumerate("abc"))
    waits = cut(recordings(1, prefix="open"))[:1]
    whole.send([*cut(first), *waits])
    misdirect(broker, whole, 300)
    published = whole.run_without_spark()["published"]
    assert published["identity_balances"]
    assert published["counts"]["quarantined"] == 300
    assert f"{300 - KEPT} records that are no chunks were held without their bytes" in published["remarks"][0]
    offsets = [offset for offset, _ in junk(whole)]
    assert [offset for offset, stored in junk(whole) if stored] == offsets[:KEPT]

    # There is no room any more, and more junk than max_held_rows allows rows: neither is the waveforms' business.
    misdirect(broker, whole, 300)
    whole.send(cut(second))
    assert whole.run_without_spark()["published"]["identity_balances"]
    assert whole.published().keys() == {r.waveform_id for r in first + second}
    assert sum(stored for _, stored in junk(whole)) == KEPT
    assert len(junk(whole)) == 600
    (remark,) = stream_facts(whole.deployment, STREAM).remarks
    assert "300 of partition 1" in remark

    # By its place: one with its bytes, one without.
    into = tmp_path / "record.arrow"
    kept, bare = f"1:{offsets[0]}", f"1:{offsets[-1]}"
    (shown,) = json.loads(command("held", STREAM, "record", kept, "--into", str(into), "--json"))
    assert (shown["without_bytes"], shown["held_for"]) == (False, "not_a_chunk")
    with pa.ipc.open_file(into) as reader:
        assert reader.read_all()["payload"].to_pylist() == [LINE]
    assert "held without its bytes" in " ".join(command("held", STREAM, "record", bare).split())
    with pytest.raises(Refused, match=rf"topic {whole.topic} has it at partition 1 offset {offsets[-1]}"):
        command("held", STREAM, "record", bare, "--into", str(tmp_path / "other.arrow"))

    # It expires: shown first, then done; what waits stays.
    before = whole.deployment.tables(STREAM).head()
    assert expire(whole, apply=False, after_days=31) == 600
    assert whole.deployment.tables(STREAM).head() == before
    assert expire(whole, apply=True, after_days=29) == 0
    assert expire(whole, apply=True, after_days=31) == 600
    head = whole.deployment.tables(STREAM).head()
    assert head is not None
    assert head.held is not None
    assert (head.held.counts, head.held.junk_bytes) == ({"open": 1}, 0)
    assert junk(whole) == []

    # There is room again, and whoever reads it once more holds it once more.
    tables, log = whole.deployment.tables(STREAM), whole.deployment.log
    stream = whole.deployment.stream(STREAM)
    back = plan_rewind(stream, Target(word="earliest"), log=log, tables=tables, who="ops", why="once more")
    apply_rewind(stream, back, accept_skip=False, log=log, tables=tables)
    whole.send(cut(third))
    assert whole.run_without_spark()["published"]["identity_balances"]
    assert whole.published().keys() == {r.waveform_id for r in first + second + third}
    assert [stored for _, stored in junk(whole)] == [True] * KEPT + [False] * (600 - KEPT)
