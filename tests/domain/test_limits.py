"""Limits of `docs/guarantees.md` that a test can meet: what is wanted, and is not so. Who ends one takes its mark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders.sending import send_chunk
from tests.domain.held_world import T, World
from tests.domain.test_verify_range import found, verify
from tests.domain.test_verify_skipped import rewound, sent, undone, without_row
from tests.fakes.batch import Carrying, FakeEdges
from wavestitch.batch.backfill import run_backfill
from wavestitch.batch.carry import Silent
from wavestitch.batch.run import RunOptions
from wavestitch.contracts.errors import DataLost
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.verification import Agreement

P0 = Partition(0)
AROUND = Scope((T - 1000) * 10**6, (T + 1000) * 10**6)


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.xfail(
    strict=True,
    raises=DataLost,
    reason="a head names as skipped whatever a rewind goes forward over, also what was read before it; where retention "
    "took that since, nothing tells that it is the log that was read",
)
def test_what_was_published_before_a_rewind_that_was_undone_is_not_lost_to_a_backfill(world: World) -> None:
    sent(world, "v", "w")
    world.ingest()
    rewound(world, "earliest")
    undone(world)
    send_chunk(world.bench.log, "later", at_ms=T, start_ms=T + 36_000_000)
    world.bench.log.retain_from(P0, Offset(4))
    world.now_ms += 1
    edges = FakeEdges(world.bench, world.stream, world.now_ms, Carrying())
    assert run_backfill(edges, AROUND, RunOptions(), watcher=Silent()).lost == ()


@pytest.mark.xfail(
    strict=True, reason="the proof that the log is the one that was read is in heads, and these were expired since"
)
def test_a_row_that_vanished_is_missed_though_the_heads_before_an_undone_rewind_are_gone(world: World) -> None:
    sent(world, "v", "w")
    world.ingest()
    rewound(world, "earliest")
    undone(world)
    world.bench.tables.expired = len(world.bench.tables.snapshots) - 1
    without_row(world, "w")
    assert found(verify(world))["w"] is Agreement.MISSING_IN_TABLE


@pytest.mark.xfail(strict=True, reason="what is read again is recognised by the pieces that its row names")
def test_a_row_that_was_altered_is_what_was_sent_once_it_was_read_again(world: World) -> None:
    sent(world, "v")
    world.ingest()
    rows = world.bench.tables.rows
    (was,) = [row for _, row in rows]
    rows[:] = [(head, replace(row, samples=b"")) for head, row in rows]
    rewound(world, "earliest")
    world.guarantees = ()
    world.ingest()
    assert [row for _, row in rows] == [was]


@pytest.mark.xfail(
    strict=True, reason="where retention passed a position, too, no record batch is left that a log could be known by"
)
def test_what_was_written_anew_before_a_position_that_retention_passed_is_named(world: World) -> None:
    sent(world, "v", "w")
    world.ingest()
    log = world.bench.log
    log.truncate(P0, Offset(2))
    sent(world, "x", "y", "z")
    log.retain_from(P0, Offset(6))
    with pytest.raises(DataLost, match=r"\[2, 4\)"):
        world.ingest()
