"""Maintenance between real batches: what comes after it finds all it needs. I1, I2, I3, I6, I7."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.builders.recordings import cut, recordings
from tests.conftest import TopicFactory
from tests.deployment_rig import STREAM, DeploymentRig, make_deployment_rig
from tests.domain.maintenance_rig import limits, went
from tests.faults.in_process import run_here
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.batch.run import RunOptions
from wavestitch.batch.stream_state import load_state
from wavestitch.contracts.errors import Fenced
from wavestitch.contracts.maintenance import MaintenanceReport
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.quantities import EpochMs
from wavestitch.local.broker import Broker
from wavestitch.maintain.run import maintain_stream
from wavestitch.tables.stream_tables import StreamTables


class Killed(BaseException):
    """As if the process were gone: nothing in the product catches it."""


@pytest.fixture
def whole(tmp_path: Path, broker: Broker, topic_factory: TopicFactory, java_home: Path) -> DeploymentRig:
    topic = topic_factory(partitions=2)
    return make_deployment_rig(tmp_path / "deployment", bootstrap=broker.bootstrap, topic=topic, java_home=java_home)


def batch(whole: DeploymentRig, *, dies_after: str = "", **options: Any) -> dict[str, Any]:
    def after_step(step: str) -> None:
        if step == dies_after:
            raise Killed(step)

    return run_here(whole.deployment, STREAM, RunOptions(after_step=after_step, **options))


def maintain(whole: DeploymentRig, *, now: EpochMs | None = None, **changes: Any) -> MaintenanceReport:
    """Everything that may go goes at once."""
    return maintain_stream(whole.deployment, STREAM, apply=True, limits=limits(**changes), now=now)


def plans(whole: DeploymentRig) -> list[str]:
    return sorted(p.name for p in (whole.folder / "landing" / STREAM).iterdir() if not p.name.startswith("."))


def test_the_next_batch_and_a_rewind_find_all_they_need(whole: DeploymentRig) -> None:
    sent = recordings(6)
    expected = {r.waveform_id: bytes(r.samples) for r in sent}
    chunks = cut(sent)
    late = chunks[5]
    whole.send([c for c in chunks[: len(chunks) // 2] if c is not late])
    batch(whole)
    waiting = load_state(whole.deployment.tables(STREAM), topic_id="").held
    assert waiting
    maintain(whole)
    assert load_state(whole.deployment.tables(STREAM), topic_id="").held == waiting
    assert plans(whole) == []

    # What waited is healed out of the held table, whose files and snapshots have been through maintenance.
    whole.send([late, *chunks[len(chunks) // 2 :]])
    batch(whole)
    assert whole.published() == expected
    report = maintain(whole)
    assert (
        went(report, "held") == 0
    )  # the only retained heads are the newest; the one before it has not been expired yet
    report = maintain(whole)
    assert went(report, "held") == len(waiting)
    assert report.after.snapshots["waveforms"] == 1

    # Everything is read again: all of it is known, piece by piece, and nothing is published twice.
    stream, tables = whole.deployment.stream(STREAM), whole.deployment.tables(STREAM)
    found = plan_rewind(stream, Target("earliest"), log=whole.deployment.log, tables=tables, who="test", why="again")
    apply_rewind(stream, found, accept_skip=False, log=whole.deployment.log, tables=tables)
    done = batch(whole)["published"]
    assert done["counts"]["replay"] == len(chunks)
    assert done["waveforms"] == {"published": 0, "open": 0, "quarantined": 0}
    maintain(whole)
    assert whole.published() == expected
    assert "nothing" in batch(whole)
    rows = [b for b in tables.batches() if b.partitions]
    assert len(rows) == 3
    assert all(b.identity_balances for b in rows)


@pytest.mark.parametrize("step", ["read", "validate"])
def test_a_batch_that_was_stopped_survives_maintenance_and_is_carried_through(whole: DeploymentRig, step: str) -> None:
    sent = recordings(4)
    whole.send(cut(sent))
    with pytest.raises(Killed):
        batch(whole, dies_after=step)
    (plan_id,) = plans(whole)
    before = sorted(p for p in whole.folder.glob("landing/**/*") if p.is_file() and not p.name.startswith("."))
    staged = sorted(whole.folder.glob("warehouse/*/waveforms/data/*.parquet"))
    assert bool(staged) == (step == "validate")
    report = maintain(whole)
    assert any("is under way" in k for a in report.actions for k in a.kept)
    after = sorted(p for p in whole.folder.glob("landing/**/*") if p.is_file() and not p.name.startswith("."))
    assert after == before
    assert sorted(whole.folder.glob("warehouse/*/waveforms/data/*.parquet")) == staged
    batch(whole, plan_id=plan_id)
    assert whole.published() == {r.waveform_id: bytes(r.samples) for r in sent}


def test_payload_stays_until_the_offsets_stand_however_the_batch_ended(whole: DeploymentRig) -> None:
    sent = recordings(3)
    whole.send(cut(sent))
    with pytest.raises(Killed):
        batch(whole, dies_after="publish")
    (plan_id,) = plans(whole)
    payload = list(whole.folder.glob("landing/**/slice-*.arrow"))
    assert payload
    # Committed, and the group has not moved yet: for Kafka's own tools these offsets are still to be read.
    maintain(whole)
    assert [p for p in payload if p.exists()] == payload
    assert "nothing" in batch(whole)  # the next plan projects the head
    maintain(whole, finished_batches=10**6)
    assert not [p for p in payload if p.exists()]
    assert plans(whole) == [plan_id]
    maintain(whole)
    assert plans(whole) == []
    assert whole.published() == {r.waveform_id: bytes(r.samples) for r in sent}


def test_a_plan_whose_head_was_expired_ends_fenced_and_goes(whole: DeploymentRig) -> None:
    start_ns = time.time_ns()
    sent = recordings(2, start_ns=start_ns)
    whole.send(cut(sent))
    with pytest.raises(Killed):
        batch(whole, dies_after="read")
    (stopped,) = plans(whole)
    # Backfills leave the positions alone: the plan could still commit, as long as its head is known.
    for n in range(2):
        first = start_ns + n * 3600 * 10**9
        batch(whole, request=PlanRequest(PlanKind.BACKFILL, scope=Scope(first - 1, first + 1)))
    maintain(whole)
    assert stopped in plans(whole)
    maintain(whole, now=EpochMs(time.time_ns() // 1_000_000 + 2 * 3_600_000))
    assert StreamTables.heads(whole.deployment.tables(STREAM))[-1].sequence > 1
    with pytest.raises(Fenced, match="left the table's history"):
        batch(whole, plan_id=stopped)
    maintain(whole)
    assert stopped not in plans(whole)
    batch(whole)
    assert whole.published() == {r.waveform_id: bytes(r.samples) for r in sent}


def test_an_abandoned_batch_is_fenced_and_its_offsets_are_read_by_the_next(whole: DeploymentRig) -> None:
    sent = recordings(2)
    whole.send(cut(sent))
    plan_id = whole.plan().plan_id
    whole.deployment.folder(STREAM, plan_id).abandon(who="ops", why="test", at_ms=EpochMs(0))
    with pytest.raises(Fenced, match="abandoned by ops"):
        batch(whole, plan_id=plan_id)
    maintain(whole)
    assert plans(whole) == []
    batch(whole)
    assert whole.published() == {r.waveform_id: bytes(r.samples) for r in sent}
