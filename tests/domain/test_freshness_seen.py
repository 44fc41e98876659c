"""How fresh a stream is, as its batches leave it and a look sees it: on the product's own steps, in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.builders.webhook import listening_webhook
from tests.domain.maintenance_rig import STREAM, Rig
from tests.fakes.batch import Bench, Carrying, run_batch, run_interval
from tests.fakes.fake_log import FakeLog
from tests.fakes.kept_partition import Visibility
from wavestitch.batch.headroom import measure_room
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.batch.watch import room_to_json, watch_stream, watched_line
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import GateClosed
from wavestitch.contracts.freshness import Freshness
from wavestitch.contracts.headroom import Thresholds
from wavestitch.contracts.headroom_told import Told
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import EpochMs, Offset, Partition, Seconds

T = 1_767_614_400_000
SECOND, MINUTE, DAY = 1000, 60_000, 86_400_000
ECG = make_stream(freshness="15s")
P0 = Partition(0)


def send(bench: Bench, waveform: str, *, at_ms: int, seq: int = 0, count: int = 1, partition: int = 0) -> None:
    send_chunk(bench.log, waveform, seq, b"\x01\x00", at_ms=at_ms, start_ms=T, count=count, partition=partition)


def batch(bench: Bench, *, at_ms: int) -> BatchRow:
    """One more ingest, which commits at that time; its row."""
    run_batch(bench, ECG, PlanRequest(), clock_ms=at_ms, how=Carrying())
    return bench.tables.batches()[0]


def look(bench: Bench, *, at_ms: int, told: bool = False) -> Freshness:
    rows = bench.tables.batches()
    room = measure_room(
        ECG,
        log=bench.log,
        tables=bench.tables,
        past=rows,
        now=EpochMs(at_ms),
        thresholds=Thresholds(),
        told=Told(late=told),
    )
    assert room is not None
    assert room.freshness is not None
    return room.freshness


def test_a_waveform_waits_from_its_last_chunk_on_however_late_that_comes_and_whether_it_was_held_meanwhile() -> None:
    bench = Bench(FakeLog("waves", 2))
    send(bench, "whole", at_ms=T - MINUTE, count=2)
    send(bench, "whole", at_ms=T, seq=1, count=2)
    send(bench, "parts", at_ms=T - 9 * MINUTE, count=2)
    row = batch(bench, at_ms=T + 10 * SECOND)
    assert row.waits is not None
    assert (row.waits.waveforms, row.waits.late, row.waits.longest_s) == (1, 0, 10.0)
    send(bench, "parts", at_ms=T + MINUTE, seq=1, count=2, partition=1)
    row = batch(bench, at_ms=T + MINUTE + 5 * SECOND)
    assert row.waits is not None
    assert (row.waits.waveforms, row.waits.late, row.waits.longest_s) == (1, 0, 5.0)
    assert not look(bench, at_ms=T + 2 * MINUTE).alarmed, "the producer was late, nobody else"


def test_a_stream_that_stands_still_is_late_and_so_is_what_it_publishes_then_for_an_hour() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "first", at_ms=T)
    batch(bench, at_ms=T + SECOND)
    assert look(bench, at_ms=T + 30 * MINUTE) == Freshness(Seconds(15), False, 1, 0, 1.0, by_broker=False)
    send(bench, "waits", at_ms=T + 31 * MINUTE)
    assert not look(bench, at_ms=T + 31 * MINUTE + 14 * SECOND).alarmed
    assert look(bench, at_ms=T + 31 * MINUTE + 14 * SECOND + 500, told=True).alarmed, "with some room to spare"
    still = look(bench, at_ms=T + 31 * MINUTE + 16 * SECOND)
    assert (still.alarmed, still.late, still.partition) == (True, 0, P0)
    row = batch(bench, at_ms=T + 32 * MINUTE)
    assert row.waits is not None
    assert (row.waits.late, row.waits.p99_s) == (1, 60.0)
    after = look(bench, at_ms=T + 33 * MINUTE)
    assert (after.alarmed, after.unread_s, after.late) == (True, None, 1)
    assert not look(bench, at_ms=T + 93 * MINUTE).alarmed


def test_what_is_read_again_on_purpose_neither_waits_nor_has_waited() -> None:
    bench = Bench(FakeLog("waves", 2))
    send(bench, "passed over", at_ms=T)
    run_batch(bench, make_stream(start="latest"), PlanRequest(), clock_ms=T + SECOND, how=Carrying())
    send_chunk(bench.log, "held", at_ms=T, start_ms=T - 8 * DAY, partition=1)
    batch(bench, at_ms=T + SECOND)
    rewind = plan_rewind(ECG, Target("earliest"), log=bench.log, tables=bench.tables, who="a test", why="to see")
    apply_rewind(ECG, rewind, accept_skip=True, log=bench.log, tables=bench.tables)
    later = T + 30 * MINUTE
    seen = look(bench, at_ms=later)
    assert (seen.alarmed, seen.unread_s) == (False, None)
    send(bench, "new", at_ms=later)
    seen = look(bench, at_ms=later + 20 * SECOND)
    assert (seen.alarmed, seen.partition) == (True, P0), "behind what is read again, something waits"
    assert 19.5 < (seen.unread_s or 0) < 20.5
    early = make_stream(freshness="15s", limits={"max_clock_skew": "30d"})
    run_batch(bench, early, PlanRequest(), clock_ms=later + 21 * SECOND, how=Carrying())
    row = bench.tables.batches()[0]
    assert row.waits is not None
    assert (row.waveforms["published"], row.waits.waveforms, row.waits.longest_s) == (3, 1, 21.0)


@pytest.mark.xfail(
    strict=True,
    reason="how far the log was read before a rewind, the heads before it say, which maintenance lets go: a rewind "
    "that is still being read then is told as late",
)
def test_what_is_read_again_on_purpose_does_not_wait_when_maintenance_has_let_the_heads_before_go() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "read", at_ms=T)
    batch(bench, at_ms=T + SECOND)
    rewind = plan_rewind(ECG, Target("earliest"), log=bench.log, tables=bench.tables, who="a test", why="to see")
    apply_rewind(ECG, rewind, accept_skip=True, log=bench.log, tables=bench.tables)
    assert not look(bench, at_ms=T + MINUTE).alarmed
    bench.tables.drop_snapshots([h.snapshot_id or 0 for h in bench.tables.heads()])
    assert not look(bench, at_ms=T + MINUTE).alarmed


def test_a_waveform_whose_records_have_no_time_has_not_waited_since_1970() -> None:
    bench = Bench(FakeLog("waves", 1))
    send_chunk(bench.log, "since the machine was started", 0, b"\x01\x00", at_ms=0, start_ms=5 * SECOND, count=1)
    row = batch(bench, at_ms=T)
    assert (row.waveforms["published"], row.waits) == (1, None)
    assert not look(bench, at_ms=T + SECOND).alarmed


def test_a_backfill_is_not_measured() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "passed over", at_ms=T - DAY)
    run_batch(bench, make_stream(start="latest"), PlanRequest(), clock_ms=T, how=Carrying())
    send(bench, "w", at_ms=T)
    run_interval(bench, ECG, Scope((T - MINUTE) * 10**6, (T + MINUTE) * 10**6), clock_ms=T + 2 * MINUTE)
    row = bench.tables.batches()[0]
    assert (row.kind, row.waveforms["published"], row.waits) == ("backfill", 2, None)


@pytest.mark.parametrize("ahead", [DAY, 400 * DAY])
def test_one_record_of_a_clock_that_was_ahead_hides_nothing_that_waits_behind_it(ahead: int) -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "ahead", at_ms=T + ahead)
    batch(bench, at_ms=T + SECOND)
    send(bench, "waits", at_ms=T + MINUTE)
    seen = look(bench, at_ms=T + 3 * MINUTE)
    assert (seen.alarmed, seen.unread_s, seen.known) == (True, 120.0, True)


def test_who_may_not_read_is_told_that_what_waits_may_be_older() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "ahead", at_ms=T + DAY)
    batch(bench, at_ms=T + SECOND)
    send(bench, "waits", at_ms=T + MINUTE)
    bench.log.times_at = lambda topic, offsets: dict.fromkeys(offsets)  # type: ignore[method-assign]
    seen = look(bench, at_ms=T + 3 * MINUTE)
    assert (seen.alarmed, seen.known) == (False, False)
    assert (seen.unread_s or 0) < 2


@pytest.mark.xfail(
    strict=True, reason="of each partition one record is looked at: by its time what lies behind it is judged, too"
)
def test_a_first_unread_record_of_a_clock_that_is_ahead_hides_nothing_that_waits_behind_it() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "first", at_ms=T)
    batch(bench, at_ms=T + SECOND)
    send(bench, "ahead", at_ms=T + DAY)
    send(bench, "waits", at_ms=T + MINUTE)
    assert look(bench, at_ms=T + 3 * MINUTE).alarmed


def test_a_waveform_that_a_repeat_makes_whole_waits_from_then_on() -> None:
    bench = Bench(FakeLog("waves", 1))
    for seq in (0, 1):
        send_chunk(bench.log, "w", seq, b"\x01\x00", at_ms=T, start_ms=T, count=None)
    assert batch(bench, at_ms=T + SECOND).waits is None
    send(bench, "w", at_ms=T + MINUTE, seq=1, count=2)
    row = batch(bench, at_ms=T + 3 * MINUTE)
    assert row.waits is not None
    assert (row.waveforms["published"], row.waits.waveforms, row.waits.longest_s) == (1, 1, 120.0)


def test_what_waits_behind_an_open_transaction_waits_too() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "first", at_ms=T)
    batch(bench, at_ms=T + SECOND)
    bench.log.append(P0, T + MINUTE, b"x", (), b"", Visibility.OPEN)
    assert look(bench, at_ms=T + 2 * MINUTE).alarmed


def test_a_closed_gate_is_named_as_the_cause() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "spoiled", at_ms=T)
    with pytest.raises(GateClosed):
        run_batch(bench, ECG, PlanRequest(), clock_ms=T + SECOND, how=Carrying(spoiled={"spoiled"}))
    (plan_id,) = bench.plans
    seen = look(bench, at_ms=T + MINUTE)
    assert (seen.alarmed, seen.at_gate) == (True, plan_id)


def test_who_watches_is_told_once_that_it_is_late_and_once_that_it_is_not(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.define("topic: t\ngroup: g\nfreshness: 15 s\n")
    rig.publish("w0", positions={P0: Position(Offset(0))}, topic_id=rig.log.topic_id)
    now = EpochMs(T)
    with listening_webhook() as webhook:
        config = tmp_path / "wavestitch.toml"
        config.write_text(f'{config.read_text()}[notify]\nwebhook = "{webhook.address}"\n')
        rig.read_settings({"WAVESTITCH_CONFIG": str(config)})
        assert not watch_stream(rig.deployment, STREAM, now=now).told
        rig.log.append(P0, timestamp_ms=now - 20 * SECOND, key=None, headers=(), value=b"unread")
        looks = [watch_stream(rig.deployment, STREAM, now=now) for _ in range(2)]
        assert [seen.told for seen in looks] == [True, False]
        rig.publish(positions={P0: Position(Offset(1))}, topic_id=rig.log.topic_id)
        looks = [watch_stream(rig.deployment, STREAM, now=now) for _ in range(2)]
        assert [seen.told for seen in looks] == [True, False]
    late, well = webhook.told
    assert late["subject"] == f"{STREAM}: is later than the 15.0 s that it declares"
    assert late["facts"]["late"] is True
    assert well["subject"] == f"{STREAM}: is as fresh as it declares again (15.0 s)"


@pytest.mark.parametrize(("start", "late"), [("earliest", True), ("latest", False)])
def test_a_stream_that_was_never_begun_is_late_where_it_starts_at_the_earliest(
    tmp_path: Path, start: str, late: bool
) -> None:
    rig = Rig(tmp_path)
    rig.define(f"topic: t\ngroup: g\nfreshness: 15 s\nstart: {start}\n")
    rig.log.append(P0, timestamp_ms=T, key=None, headers=(), value=b"unread")
    seen = watch_stream(rig.deployment, STREAM, now=EpochMs(T + 3 * DAY))
    assert (seen.worrying, seen.told, room_to_json(seen.room)) == (late, late, None)
    said = "later than declared: the first unread record" if late else "as fresh as declared: nothing waits"
    assert watched_line(seen).startswith(f"{STREAM}: no batch yet; {said}")
    assert rig.tables.head() is None, "a look begins nothing"
