"""A stream that is started by its lag: the level decides, and what would only be refused is not started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.domain.maintenance_rig import STREAM, Rig
from tests.fakes.fake_log import Visibility
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.lag_trigger import Start, start_by_lag
from wavestitch.batch.watch import watch_stream
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import parse_stream


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    made = Rig(tmp_path)
    definition = tmp_path / "streams" / f"{STREAM}.yaml"
    definition.write_text(f"{definition.read_text()}trigger: lag\n")
    return made


def looked(rig: Rig) -> Start:
    return start_by_lag(rig.deployment, watch_stream(rig.deployment, STREAM))


def test_it_is_started_where_it_has_not_begun_or_something_is_unread_and_not_where_nothing_is(rig: Rig) -> None:
    assert looked(rig) == (True, "it has not begun")
    rig.publish("w0", positions={0: Position(Offset(0))})
    assert looked(rig) == (False, "nothing that can be read is unread")
    rig.log.append(Partition(0), timestamp_ms=1, key=None, headers=(), value=b"x")
    rig.log.append(Partition(0), timestamp_ms=1, key=None, headers=(), value=b"y", seen=Visibility.OPEN)
    assert looked(rig) == looked(rig) == (True, "1 offsets are unread"), "a look that was lost loses nothing"


def test_it_is_not_started_for_what_waits_behind_an_open_transaction(rig: Rig) -> None:
    rig.publish("w0", positions={0: Position(Offset(0))})
    rig.log.append(Partition(0), timestamp_ms=1, key=None, headers=(), value=b"x", seen=Visibility.OPEN)
    rig.log.append(Partition(0), timestamp_ms=1, key=None, headers=(), value=b"y")
    assert looked(rig) == (False, "nothing that can be read is unread")


def test_it_is_not_started_where_its_plan_would_be_refused(rig: Rig) -> None:
    head = rig.publish("w0", positions={0: Position(Offset(0))})
    for _ in range(3):
        rig.log.append(Partition(0), timestamp_ms=1, key=None, headers=(), value=b"x")
    plan = rig.plan(head, clock_ms=0)
    DeploymentEdges(rig.deployment, STREAM).close_gate(plan, report=None, verdict="none")
    now, why = looked(rig)
    assert not now
    assert "stands at a closed gate" in why
    rig.log.partitions[Partition(0)].log_start = Offset(2)
    assert looked(rig) == (False, "retention took 2 offsets unread, and somebody must accept that by name")
    rig.log.name = "gone"
    assert looked(rig) == (False, "it cannot be looked at")


def test_a_schedule_and_a_lag_are_not_both_what_starts_it() -> None:
    with pytest.raises(BadInput, match="trigger: lag is for a stream without a schedule"):
        parse_stream("topic: t\ngroup: g\ntrigger: lag\nschedule: '0 * * * *'\n", name="ecg")
