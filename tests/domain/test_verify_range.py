"""A range is verified: what the log gives today beside what the table says, and nothing is changed by it."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace

import pytest

from tests.builders.ranges import span
from tests.builders.records import metadata
from tests.builders.sending import send_chunk
from tests.domain.held_world import ONE, OTHER, TWO, T, World
from tests.fakes.batch import Carrying, run_batch
from tests.fakes.fake_comparing import FakeComparing
from wavestitch.batch.carry import Silent
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.batch.verify import Verified, VerifyRequest, shortened, verified_to_json, verify_range
from wavestitch.contracts.chunk_table import ChunkTable, Rows
from wavestitch.contracts.errors import BadInput, Refused, Transient
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Limits
from wavestitch.contracts.verification import Agreement, Compared, exit_code


@pytest.fixture
def world() -> World:
    return World()


def verify(world: World, *ranges: OffsetRange, how: Carrying | None = None, **more: object) -> Verified:
    """And that nothing of the stream was changed by it."""
    edges = FakeComparing(world.bench, world.stream, world.now_ms, how or Carrying())
    before = state(world)
    done = verify_range(edges, VerifyRequest(ranges=ranges, **more), watcher=Silent())  # type: ignore[arg-type]
    assert state(world) == before, "verifying changed something"
    return done


def state(world: World) -> object:
    bench, tables = world.bench, world.bench.tables
    return (
        *(list(tables.snapshots), list(tables.rows), list(tables.history), dict(tables.branches), tables.held_main),
        *(dict(tables.held_snapshots), dict(tables.held_of), dict(bench.log.group), dict(bench.gates)),
        *(set(bench.plans), set(bench.landed_records), set(bench.files.landings), dict(bench.parts), list(bench.stops)),
        *(set(bench.receipts), set(bench.reports), set(bench.verdicts)),
    )


def found(done: Verified) -> dict[str, Agreement]:
    return {one.waveform_id: one.found for one in done.waveforms}


def two_published(world: World) -> None:
    for wid in ("v", "w"):
        world.send(wid, 0, ONE)
        world.send(wid, 1, TWO)
    world.ingest()


def test_a_partition_that_a_broker_does_not_show_yet_is_waited_for(world: World) -> None:
    two_published(world)
    world.bench.log.add_partition()
    send_chunk(world.bench.log, "x", 0, ONE, at_ms=T, start_ms=T, count=1, partition=1)
    world.ingest()
    world.bench.log.lag(9, shows=1)
    batch, everything = world.bench.tables.head().plan_id, Scope(0, (T + 1) * 10**6)
    named: list[dict[str, object]] = [{"batch": batch}, {"scope": everything}, {"only": frozenset({0})}]
    of_ranges: list[tuple[OffsetRange, ...]] = [(), (span(1, 0, 1),), (span(0, 0, 4),)]
    for ranges, more in [*((r, {}) for r in of_ranges), *(((), n) for n in named)]:
        with pytest.raises(Transient, match="shows no partition 1 of topic waves, which the head has"):
            verify(world, *ranges, **more)  # type: ignore[arg-type]
    world.bench.log.lag(0, shows=0)
    assert {one.found for one in verify(world).waveforms} == {Agreement.SAME}


def alter(world: World, wid: str, **changes: object) -> None:
    world.guarantees = ()  # somebody altered what is published
    rows = world.bench.tables.rows
    (at,) = [n for n, (_, row) in enumerate(rows) if row.waveform_id == wid]
    rows[at] = (rows[at][0], replace(rows[at][1], **changes))  # type: ignore[arg-type]


def test_what_the_table_says_as_kafka_did_is_the_same_and_the_snapshot_is_named(world: World) -> None:
    two_published(world)
    done = verify(world)
    assert found(done) == {"v": Agreement.SAME, "w": Agreement.SAME}
    assert done.snapshot_id == world.bench.tables.snapshots[-1].snapshot_id
    assert done.read == (span(0, 0, 4),)
    assert exit_code(done.counts) == 0


def test_a_row_with_another_sample_differs_in_that_column_and_its_batch_is_named(world: World) -> None:
    two_published(world)
    alter(world, "w", samples=ONE + OTHER)
    done = verify(world)
    assert found(done) == {"v": Agreement.SAME, "w": Agreement.DIFFERS}
    (one,) = [o for o in done.waveforms if o.found is Agreement.DIFFERS]
    assert one.columns == ("samples",)
    assert one.plan_id == world.bench.tables.snapshots[-1].plan_id
    assert exit_code(done.counts) == 6


def test_a_row_that_is_said_to_come_from_elsewhere_differs_in_its_chunks(world: World) -> None:
    two_published(world)
    row = next(row for _, row in world.bench.tables.rows if row.waveform_id == "w")
    alter(world, "w", chunks=(row.chunks[0], row.chunks[1]._replace(offset=Offset(0))))
    (one,) = [o for o in verify(world).waveforms if o.found is not Agreement.SAME]
    assert (one.found, one.columns) == (Agreement.DIFFERS, ("chunks",))
    assert "chunk 1 is said to lie in partition 0 offset 0" in one.why


def test_a_row_that_is_there_twice_differs(world: World) -> None:
    two_published(world)
    world.bench.tables.rows.append(world.bench.tables.rows[-1])
    assert found(verify(world))[world.bench.tables.rows[-1][1].waveform_id] is Agreement.DIFFERS


def test_a_row_that_was_deleted_is_missing_in_the_table(world: World) -> None:
    two_published(world)
    del world.bench.tables.rows[0]
    done = verify(world)
    assert sorted(found(done).values()) == [Agreement.MISSING_IN_TABLE, Agreement.SAME]
    assert exit_code(done.counts) == 6


def test_what_retention_took_is_missing_in_kafka_by_its_offsets_and_no_error_of_the_table(world: World) -> None:
    two_published(world)
    world.bench.log.retain_from(Partition(0), Offset(1))
    done = verify(world, span(0, 0, 4))
    assert found(done) == {"v": Agreement.MISSING_IN_KAFKA, "w": Agreement.SAME}
    assert [one.lost for one in done.waveforms if one.lost] == [(span(0, 0, 1),)]
    assert done.lost == (span(0, 0, 1),)
    assert exit_code(done.counts) == 7


def test_what_is_not_at_an_offset_that_is_there_is_not_found_which_is_an_error(world: World) -> None:
    two_published(world)
    world.bench.log.lose(Partition(0), Offset(1))
    done = verify(world)
    assert found(done) == {"v": Agreement.NOT_FOUND, "w": Agreement.SAME}
    assert exit_code(done.counts) == 6


def test_what_a_changed_expectation_refuses_is_newly_failing(world: World) -> None:
    two_published(world)
    done = verify(world, how=Carrying(failing={"w"}))
    assert found(done) == {"v": Agreement.SAME, "w": Agreement.NEWLY_FAILING}
    assert exit_code(done.counts) == 6


def test_what_a_changed_limit_refuses_is_newly_failing(world: World) -> None:
    two_published(world)
    world.stream = world.stream.model_copy(update={"limits": Limits(max_chunks=1)})
    assert set(found(verify(world)).values()) == {Agreement.NEWLY_FAILING}


def test_a_gate_that_would_close_is_said_and_stops_no_ingest(world: World) -> None:
    two_published(world)
    done = verify(world, how=Carrying(spoiled={"v", "w"}))
    assert set(found(done).values()) == {Agreement.SAME}
    assert any("half of it is spoiled" in said for said in done.remarks)
    world.send("x", 0, ONE, count=1)
    world.ingest()
    assert "x" in world.published()


def test_what_an_operator_accepted_is_told_apart(world: World) -> None:
    meta = metadata(T + 400 * 86_400_000)
    for seq, value in enumerate((ONE, TWO)):
        world.send("w", seq, value, meta=meta)
    world.ingest()
    world.decide(HeldAction.ACCEPT, "w")
    done = verify(world)
    assert found(done) == {"w": Agreement.ACCEPTED}
    assert done.waveforms[0].why.startswith("accept by ops: looked at it")
    assert exit_code(done.counts) == 0


def test_what_is_held_or_was_discarded_is_not_missing_and_says_why_and_by_whom(world: World) -> None:
    for wid in ("v", "w"):
        world.send(wid, 0, ONE)
        world.send(wid, 1, TWO)
    world.ingest(park=True)
    world.decide(HeldAction.DISCARD, "w")
    done = verify(world)
    assert found(done) == {"v": Agreement.HELD, "w": Agreement.DISCARDED}
    said = {one.waveform_id: one.why for one in done.waveforms}
    assert said["v"].startswith("parked")
    assert "discard by ops: looked at it" in said["w"]


def test_waveforms_across_the_edges_of_the_range_are_outside(world: World) -> None:
    two_published(world)
    done = verify(world, span(0, 1, 3))
    assert found(done) == {"v": Agreement.OUTSIDE, "w": Agreement.OUTSIDE}
    assert exit_code(done.counts) == 7, "nothing was compared"


def test_what_no_ingest_has_read_yet_is_outside(world: World) -> None:
    two_published(world)
    world.send("later", 0, ONE, count=1)
    assert found(verify(world, span(0, 0, 5)))["later"] is Agreement.OUTSIDE
    assert "later" not in found(verify(world)), "without a range only what ingests have read is meant"


def test_of_copies_that_contradict_each_other_the_published_one_is_compared(world: World) -> None:
    two_published(world)
    world.send("w", 1, OTHER)
    world.ingest()
    done = verify(world)
    assert found(done) == {"v": Agreement.SAME, "w": Agreement.SAME}


def test_a_copy_sent_again_is_the_same_wherever_the_row_says_it_lay(world: World) -> None:
    two_published(world)
    world.send("w", 0, ONE)
    world.send("w", 1, TWO, at=T + 5)
    world.ingest()
    assert set(found(verify(world)).values()) == {Agreement.SAME}


def test_above_the_limits_of_a_batch_it_is_several_and_none_is_lost_at_a_cut(world: World) -> None:
    for wid in "abcd":
        for seq in range(3):
            world.send(wid, seq, ONE, count=3)
    world.ingest()
    world.stream = world.stream.model_copy(update={"limits": Limits(max_batch_records=4)})
    done = verify(world)
    assert found(done) == dict.fromkeys("abcd", Agreement.SAME)


def test_a_batch_is_verified_by_its_plan_id(world: World) -> None:
    two_published(world)
    plan_id = world.bench.tables.snapshots[-1].plan_id
    world.send("x", 0, ONE, count=1)
    world.ingest()
    assert set(found(verify(world, batch=plan_id[:12]))) == {"v", "w"}
    with pytest.raises(BadInput, match="0 batches begin with 'beef'"):
        verify(world, batch="beef")


def test_of_the_partitions_that_are_named_only(world: World) -> None:
    two_published(world)
    assert found(verify(world, only=frozenset({0}))) == {"v": Agreement.SAME, "w": Agreement.SAME}
    with pytest.raises(Refused, match="partition 3 was named"):
        verify(world, span(3, 0, 4))


def test_after_a_rewind_nothing_is_different(world: World) -> None:
    two_published(world)
    log, tables = world.bench.log, world.bench.tables
    target = plan_rewind(world.stream, Target("earliest"), log=log, tables=tables, who="ops", why="again")
    apply_rewind(world.stream, target, accept_skip=False, log=log, tables=tables)
    done = verify(world, span(0, 0, 4))
    assert set(found(done).values()) == {Agreement.SAME}


def test_a_stream_without_a_head_is_refused(world: World) -> None:
    world.send("w", 0, ONE)
    with pytest.raises((Refused, AssertionError)):
        verify(world)


def test_what_is_kept_of_it_is_bounded_whatever_was_lost_and_names_differences_first() -> None:
    gone = tuple(span(0, 2 * n, 2 * n + 1) for n in range(5_000))
    waveforms = [Compared(f"w{n}", Agreement.MISSING_IN_KAFKA, "gone", lost=gone) for n in range(300)]
    wrong = Compared("wrong", Agreement.DIFFERS, "samples")
    done = Verified("ecg", 1, 1, gone, gone, gone, gone, {}, (*waveforms, Compared("same", Agreement.SAME), wrong))
    few = shortened(done, waveforms=50, ranges=50)
    assert few.waveforms[0] == wrong
    assert {one.found for one in few.waveforms[1:]} == {Agreement.MISSING_IN_KAFKA}
    assert len(few.waveforms) == 50
    assert len(json.dumps(verified_to_json(few))) < 500_000


def test_the_index_is_looked_through_once_however_many_waveforms_were_sent_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    for _ in range(2):
        for n in range(20):
            world.send(f"w{n}", 0, ONE)
            world.send(f"w{n}", 1, TWO)
    world.ingest()
    looks: list[int] = []
    real = ChunkTable.rows_of

    def counted(self: ChunkTable, ids: Collection[str]) -> Rows:
        looks.append(len(ids))
        return real(self, ids)

    monkeypatch.setattr(ChunkTable, "rows_of", counted)
    done = verify(world, span(0, 0, 80))
    assert done.counts["same"] == len(done.waveforms) == 20
    assert looks.count(20) <= 2, "once at each look at the landing"
    assert len(looks) < 10


class Listening(Silent):
    """`said`: what somebody at work said on the way."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def heard(world: World) -> tuple[Verified, list[str]]:
    edges, watcher = FakeComparing(world.bench, world.stream, world.now_ms, Carrying()), Listening()
    return verify_range(edges, VerifyRequest(), watcher=watcher), watcher.said


def test_what_one_batch_has_read_all_of_is_read_once_though_it_waits_for_more(world: World) -> None:
    two_published(world)
    world.send("x", 0, ONE)
    world.send("y", 0, ONE)
    world.ingest()
    assert not any("across the cuts" in text for text in heard(world)[1])
    world.stream = world.stream.model_copy(update={"limits": Limits(max_batch_records=3)})
    done, said = heard(world)
    assert [text for text in said if "across the cuts" in text] == [
        "1 waveforms lie across the cuts between batches, and are read together"
    ]
    assert found(done) == {**dict.fromkeys("vw", Agreement.SAME), **dict.fromkeys("xy", Agreement.HELD)}


def test_what_a_reader_has_no_room_for_is_read_in_smaller_batches_and_all_of_it(world: World) -> None:
    for n in range(8):
        world.send(f"large{n}", 0, b"%02d" % n * 1000, count=1)
    world.ingest()
    for n in range(8):  # what came last says how large a record is
        world.send(f"small{n}", 0, ONE, count=1)
    world.ingest()
    limits = Limits.model_construct(**{**Limits().model_dump(), "max_batch_bytes": 8000, "max_waveform_bytes": 8000})
    world.stream = world.stream.model_copy(update={"limits": limits})
    done, said = heard(world)
    assert any("its records are larger than was expected" in text for text in said)
    assert found(done) == {f"{size}{n}": Agreement.SAME for size in ("large", "small") for n in range(8)}


def test_of_two_copies_that_batches_of_their_own_have_read_the_one_that_was_published_is_compared(
    world: World,
) -> None:
    two_published(world)
    for last in (OTHER, TWO):
        world.send("twice", 0, ONE)
        world.send("twice", 1, last)
    named = PlanRequest(PlanKind.MANUAL, ranges=(span(0, 6, 8),))
    run_batch(world.bench, world.stream, named, clock_ms=world.now_ms)
    world.ingest()
    assert world.published()["twice"] == ONE + TWO
    world.stream = world.stream.model_copy(update={"limits": Limits(max_batch_records=2)})
    assert found(heard(world)[0])["twice"] is Agreement.SAME
