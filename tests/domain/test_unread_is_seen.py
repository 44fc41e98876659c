"""What nobody has read is seen wherever it lies: behind a transaction that stays open, in a partition that is new."""

from __future__ import annotations

import pytest

from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.kept_partition import Visibility
from wavestitch.batch.headroom import measure_room
from wavestitch.batch.plan import PlanRequest
from wavestitch.contracts.headroom import Alarm, Room, Thresholds
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import EpochMs, Offset, Partition

T = 1_767_614_400_000
DAY = 86_400_000
MINUTE = 60_000


def begun(partitions: int) -> Bench:
    """A stream with one batch, of a topic that keeps a week."""
    bench = Bench(FakeLog("waves", partitions))
    bench.log.retention_ms = 7 * DAY
    send(bench, "first", at_ms=T)
    run_batch(bench, make_stream(), PlanRequest(), clock_ms=T + 1, how=Carrying())
    return bench


def send(bench: Bench, waveform: str, *, at_ms: int, partition: int = 0) -> None:
    send_chunk(bench.log, waveform, 0, b"\x01\x00", at_ms=at_ms, start_ms=T, count=1, partition=partition)


def look(bench: Bench, *, at_ms: int) -> Room:
    return measure_room(
        make_stream(), log=bench.log, tables=bench.tables, past=[], now=EpochMs(at_ms), thresholds=Thresholds()
    )


def plan_of_next(bench: Bench, *, at_ms: int) -> Plan:
    send(bench, f"at {at_ms}", at_ms=at_ms - 5)
    run_batch(bench, make_stream(), PlanRequest(), clock_ms=at_ms, how=Carrying())
    return list(bench.plans.values())[-1]


def test_what_waits_behind_an_open_transaction_is_unread_and_its_alarm_comes_before_retention_takes_it() -> None:
    bench = begun(2)
    bench.log.append(Partition(1), T + 10, b"x", (), b"", Visibility.OPEN)
    for n in range(20):
        send(bench, f"w{n}", at_ms=T + 100 + n, partition=1)
    assert not any("transaction" in said for said in plan_of_next(bench, at_ms=T + MINUTE // 2).remarks), "at work"
    colours = []
    for day in (1, 4, 6):
        plan, room = plan_of_next(bench, at_ms=T + day * DAY), look(bench, at_ms=T + day * DAY)
        assert (room.backlog, room.waiting, room.lost) == (21, 21, 0)
        said = f"topic waves partition 1 (21 offsets from 0 on, open for {day}.0 d): an open transaction keeps it"
        (remark,) = room.remarks
        assert remark.startswith(said)
        assert remark in plan.remarks
        colours.append(room.alarm)
    assert colours == [Alarm.GREEN, Alarm.AMBER, Alarm.RED]
    bench.log.retain_from(Partition(1), Offset(21))
    room = look(bench, at_ms=T + 8 * DAY)
    assert (room.lost, room.backlog, room.remarks) == (21, 0, ())


def test_what_is_held_up_is_said_without_a_time_where_the_records_have_none() -> None:
    bench = begun(2)
    bench.log.append(Partition(1), -1, b"x", (), b"", Visibility.OPEN)
    (remark,) = look(bench, at_ms=T + DAY).remarks
    assert remark.startswith("topic waves partition 1 (1 offsets from 0 on): an open transaction")


def test_a_partition_that_retention_took_before_any_batch_saw_it_counts_as_lost() -> None:
    bench = begun(1)
    bench.log.add_partition()
    for n in range(5):
        send(bench, f"a{n}", at_ms=T + 10, partition=1)
    assert (look(bench, at_ms=T + 1000).backlog, look(bench, at_ms=T + 1000).lost) == (5, 0)
    bench.log.retain_from(Partition(1), Offset(5))
    room = look(bench, at_ms=T + 8 * DAY)
    assert (room.alarm, room.lost, room.partitions[1].lost) == (Alarm.RED, 5, 5)


@pytest.mark.parametrize(("early", "lately", "per_second"), [(0, 30, 0.5), (594, 6, 1.0), (0, 0, 0.0)])
def test_bytes_last_as_long_as_the_faster_of_the_last_minute_and_the_last_ten_leaves_them(
    early: int, lately: int, per_second: float
) -> None:
    bench = begun(1)
    bench.log.retention_bytes = 1 << 20
    now = T + DAY
    for n in range(early + lately):
        send(bench, f"w{n}", at_ms=now - (5 * MINUTE if n < early else MINUTE // 2))
    head = bench.tables.head()
    assert head is not None
    mean = head.mean_record_bytes
    assert mean
    room = look(bench, at_ms=now)
    expected = (bench.log.retention_bytes - room.backlog * mean) / (mean * per_second) if per_second else None
    assert room.left_s == (expected if expected is None else pytest.approx(expected))
