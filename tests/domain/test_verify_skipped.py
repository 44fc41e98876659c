"""What somebody skipped by name and a batch has read all the same is missed where it is gone from the table."""

from __future__ import annotations

import pytest

from tests.builders.ranges import span
from tests.builders.streams import make_stream
from tests.domain.held_world import ONE, OTHER, TWO, T, World
from tests.domain.test_verify_range import alter, found, verify
from tests.fakes.batch import Carrying, FakeEdges, run_batch
from tests.fakes.fake_comparing import FakeComparing
from wavestitch.batch.carry import Silent
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Rewind, Target, apply_rewind, plan_rewind
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.batch.verify import VerifyRequest, verify_range
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.record_accounts import RecordIs
from wavestitch.contracts.verification import Agreement

EVERYTHING = PlanRequest(PlanKind.BACKFILL, scope=Scope((T - 1000) * 10**6, (T + 1000) * 10**6))
SKIPPED = PlanRequest(PlanKind.MANUAL, ranges=(span(0, 4, 6),))


@pytest.fixture
def world() -> World:
    return World()


def sent(world: World, *ids: str) -> None:
    for wid in ids:
        world.send(wid, 0, ONE)
        world.send(wid, 1, TWO)


def rewound(world: World, to: str) -> None:
    log, tables = world.bench.log, world.bench.tables
    rewind = plan_rewind(world.stream, Target(to), log=log, tables=tables, who="ops", why="so it is")
    apply_rewind(world.stream, rewind, accept_skip=True, log=log, tables=tables)


def undone(world: World) -> None:
    edges = FakeEdges(world.bench, world.stream, world.now_ms, Carrying())
    undo = plan_undo(edges, committed_stages(edges), who="ops", why="it was not")
    assert isinstance(undo, Rewind)
    apply_rewind(world.stream, undo, accept_skip=True, log=world.bench.log, tables=world.bench.tables)


def without_row(world: World, wid: str) -> None:
    tables = world.bench.tables
    assert wid in world.published()
    tables.rows[:] = [row for row in tables.rows if row[1].waveform_id != wid]


@pytest.mark.parametrize("request_", [SKIPPED, EVERYTHING], ids=["named offsets", "a backfill"])
def test_what_was_published_though_it_was_skipped_is_missing_when_its_row_is_gone(
    world: World, request_: PlanRequest
) -> None:
    sent(world, "v", "w")
    world.ingest()
    sent(world, "x")
    rewound(world, "latest")
    world.now_ms += 1
    assert found(verify(world, span(0, 0, 6)))["x"] is Agreement.SKIPPED
    run_batch(world.bench, world.stream, request_, clock_ms=world.now_ms)
    without_row(world, "x")
    done = verify(world, span(0, 0, 6))
    assert found(done) == {"v": Agreement.SAME, "w": Agreement.SAME, "x": Agreement.MISSING_IN_TABLE}
    assert done.exit_code == 6


def test_what_was_read_before_a_rewind_that_was_undone_is_missing_when_its_row_is_gone(world: World) -> None:
    sent(world, "v", "w")
    world.ingest()
    rewound(world, "earliest")
    undone(world)
    assert world.bench.tables.snapshots[-1].skipped == (span(0, 0, 4),)
    without_row(world, "w")
    done = verify(world)
    assert found(done) == {"v": Agreement.SAME, "w": Agreement.MISSING_IN_TABLE}
    assert done.records[RecordIs.NOWHERE] == 2
    # Nor is it told as something else where a broker that is asked meanwhile does not show the partition.
    edges = FakeComparing(world.bench, world.stream, world.now_ms, Carrying())
    with pytest.raises(Transient, match="shows no partition 0"):
        verify_range(edges, VerifyRequest(), watcher=Silent(), take=lambda _: world.bench.log.lag(9, shows=0))


def sent_of_two(world: World, *ids: str) -> None:
    """The last chunk alone says how many there are."""
    for wid in ids:
        world.send(wid, 0, ONE, count=None)
        world.send(wid, 1, TWO)


def cut(world: World, wid: str) -> None:
    (row,) = [row for _, row in world.bench.tables.rows if row.waveform_id == wid]
    alter(world, wid, chunks=row.chunks[:-1], topic_ids=row.topic_ids[:-1])


@pytest.mark.parametrize("to", ["earliest", "0:1"])
def test_a_row_that_lacks_what_a_rewind_has_to_be_read_again_differs(world: World, to: str) -> None:
    sent_of_two(world, "v", "w")
    world.ingest()
    target = Target(to) if to == "earliest" else Target(offsets={Partition(0): Offset(1)})
    rewind = plan_rewind(world.stream, target, log=world.bench.log, tables=world.bench.tables, who="ops", why="so")
    apply_rewind(world.stream, rewind, accept_skip=True, log=world.bench.log, tables=world.bench.tables)
    cut(world, "v")
    done = verify(world, span(0, 0, 4))
    assert (found(done), done.exit_code) == ({"v": Agreement.DIFFERS, "w": Agreement.SAME}, 6)


def test_a_row_that_lacks_what_was_skipped_after_no_head_is_left_that_proves_the_log_differs(world: World) -> None:
    """By name its last chunk was given up, as if it had never been read: only the row tells what it lacks."""
    sent_of_two(world, "v", "w")
    world.ingest()
    rewound(world, "earliest")
    undone(world)
    tables = world.bench.tables
    tables.expired = len(tables.snapshots) - 1
    cut(world, "w")
    done = verify(world, span(0, 0, 4))
    assert (found(done), done.exit_code) == ({"v": Agreement.SAME, "w": Agreement.DIFFERS}, 6)


def test_what_was_written_anew_and_skipped_is_not_missed_though_something_was_read_from_there(world: World) -> None:
    sent(world, "v", "w")
    world.ingest()
    world.guarantees = ()
    world.bench.log.truncate(Partition(0), Offset(2))
    sent(world, "x", "y")
    rewound(world, "latest")
    done = verify(world, span(0, 0, 6))
    assert found(done)["x"] is Agreement.SKIPPED
    assert done.records[RecordIs.SKIPPED] == 4
    assert done.records[RecordIs.NOWHERE] == 0


def test_what_a_backfill_published_before_the_beginning_of_a_stream_is_missing_when_its_row_is_gone(
    world: World,
) -> None:
    world.stream = make_stream(start="latest")
    sent(world, "v")
    world.ingest()
    sent(world, "w")
    world.ingest()
    world.now_ms += 1
    run_batch(world.bench, world.stream, EVERYTHING, clock_ms=world.now_ms)
    without_row(world, "v")
    assert found(verify(world, span(0, 0, 4))) == {"v": Agreement.MISSING_IN_TABLE, "w": Agreement.SAME}


@pytest.mark.parametrize("held_before", [True, False])
def test_what_a_backfill_left_of_what_is_skipped_is_skipped_whatever_else_it_published(held_before: bool) -> None:
    world = World()
    sent(world, "w")
    world.send("x", 0, ONE, count=2 if held_before else 1)
    world.ingest()
    world.send("w", 1, OTHER)  # contradicts the row
    world.send("x" if held_before else "y", 1, TWO)
    rewound(world, "latest")
    world.now_ms += 1
    done = run_batch(world.bench, world.stream, EVERYTHING, clock_ms=world.now_ms)
    assert done is not None
    row = next(row for row in world.bench.tables.history if row.kind == "backfill")
    assert row.counts["reported"] >= 1
    assert not row.left_nothing
    assert "x" in world.published()
    told = verify(world, span(0, 0, 5))
    assert (found(told)["w"], told.exit_code) == (Agreement.SAME, 0)
