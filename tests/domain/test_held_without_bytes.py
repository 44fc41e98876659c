"""Held chunks whose bytes somebody took out of the table: what the log still has is held with its bytes again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.domain.held_world import ONE, TWO, World
from tests.fakes.fake_rows import Staged
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.quantities import Offset, Partition


def take_out(world: World, reason: str) -> None:
    """Another tool deletes the held rows of this reason, and the head; an operator has it rebuilt."""
    tables = world.bench.tables
    named = tables.snapshots[-1].held.snapshot_id
    number = next(tables._held_ids)
    tables.held_snapshots[number] = tuple(r for r in tables.held_snapshots[named] if r.held.reason.value != reason)
    tables.held_of[number] = Staged("", 0, 0, named)
    tables.held_main = number
    tables.expire_head()
    rewind(world, "rebuilt", accept_missing=True)


def rewind(world: World, word: str, **accepted: bool) -> None:
    log, tables = world.bench.log, world.bench.tables
    found = plan_rewind(world.stream, Target(word), log=log, tables=tables, who="ops", why="they are in the log")
    apply_rewind(world.stream, found, **{"accept_skip": False, **accepted}, log=log, tables=tables)


def with_bytes(world: World) -> dict[int, bool]:
    rows = world.bench.tables.held_rows()
    return {seq: any(r.stored for r in rows if r.held.chunk.seq == seq) for seq in (0, 1)}


@pytest.fixture
def world() -> World:
    """The first chunk came alone, and was held as open: the row with its bytes is that one."""
    made = World()
    made.send("w", 0, ONE)
    made.ingest()
    made.send("w", 1, TWO)
    return made


def test_what_is_parked_is_held_with_its_bytes_again_once_it_is_read_again(world: World) -> None:
    world.ingest(park=True)
    take_out(world, "open")
    assert with_bytes(world) == {0: False, 1: True}
    rewind(world, "earliest")
    world.ingest()
    assert with_bytes(world) == {0: True, 1: True}
    assert world.held() == {"w": {"parked"}}
    world.bench.log.retain_from(Partition(0), Offset(2))
    world.decide(HeldAction.REDRIVE, "w")
    assert world.published() == {"w": ONE + TWO}


def test_what_is_decided_afresh_takes_the_bytes_that_were_read(world: World) -> None:
    world.ingest(failing={"w"})
    take_out(world, "open")
    rewind(world, "earliest")
    world.ingest()
    assert world.published() == {"w": ONE + TWO}
    assert world.held() == {}


def test_so_does_what_fails_again(world: World) -> None:
    world.ingest(failing={"w"})
    take_out(world, "open")
    rewind(world, "earliest")
    world.ingest(failing={"w"})
    assert world.held() == {"w": {"failed_expectation"}}
    assert with_bytes(world) == {0: True, 1: True}


def test_where_the_log_has_it_no_more_it_can_be_discarded(world: World) -> None:
    world.ingest(park=True)
    take_out(world, "open")
    world.bench.log.retain_from(Partition(0), Offset(2))
    with pytest.raises(AssertionError, match="held without its bytes"):
        world.check()
    world.guarantees = ()  # these bytes are lost, and nothing gets them back
    world.decide(HeldAction.DISCARD, "w")
    assert world.held() == {"w": {"discarded"}}
    world.send("v", 0, ONE, count=1)
    world.ingest()
    assert world.published() == {"v": ONE}


def gone_from_table_and_log(world: World, **how: Any) -> None:
    """The row that has the bytes of the first chunk is taken out, and the log has neither chunk any more."""
    world.ingest(**how)
    take_out(world, "open")
    world.bench.log.retain_from(Partition(0), Offset(2))
    world.guarantees = ()  # the bytes are lost, unless somebody sends them again


@pytest.mark.parametrize("how", [{"failing": {"w"}}, {"park": True}])
def test_a_piece_that_is_sent_again_is_kept_where_no_copy_of_it_has_bytes(world: World, how: dict[str, Any]) -> None:
    gone_from_table_and_log(world, **how)
    for _ in range(2):
        world.send("w", 0, ONE)  # another offset, the very piece
    world.send("v", 0, ONE, count=1)
    world.ingest()
    assert with_bytes(world) == {0: True, 1: True} or world.published()["w"] == ONE + TWO
    if "park" in how:
        copies = [r.held.chunk.offset for r in world.bench.tables.held_rows() if r.held.chunk.seq == 0 and r.stored]
        assert copies == [2], "the first that comes is kept, the next is a repeat"
        world.decide(HeldAction.REDRIVE, "w")
    assert world.published() == {"w": ONE + TWO, "v": ONE}
    assert world.held() == {}


def test_while_nobody_sends_it_again_its_waveform_waits_and_the_others_go_on(world: World) -> None:
    gone_from_table_and_log(world, failing={"w"})
    world.send("w", 1, TWO)
    world.send("v", 0, ONE, count=1)
    world.ingest()
    assert (world.published(), world.held()) == ({"v": ONE}, {"w": {"open"}})
    world.decide(HeldAction.REDRIVE, "w")
    assert world.held() == {"w": {"open"}}
    world.send("w", 0, ONE)
    world.ingest()
    assert world.published() == {"v": ONE, "w": ONE + TWO}


def test_so_is_one_of_a_discarded_waveform_which_a_restore_needs(world: World) -> None:
    gone_from_table_and_log(world, park=True)
    world.decide(HeldAction.DISCARD, "w")
    world.send("w", 0, ONE)
    world.ingest()
    assert with_bytes(world) == {0: True, 1: True}
    world.decide(HeldAction.RESTORE, "w")
    world.decide(HeldAction.REDRIVE, "w")
    assert world.published() == {"w": ONE + TWO}


def test_of_an_open_waveform_too_and_what_completes_it_is_published() -> None:
    world = World()
    world.send("w", 0, ONE)
    world.ingest()
    without_payload(world, 0)
    world.guarantees = ()
    world.send("w", 0, ONE)
    world.ingest()
    assert with_bytes(world)[0], "what is sent again is held with its bytes"
    world.send("w", 1, TWO)
    world.ingest()
    assert world.published() == {"w": ONE + TWO}


def without_payload(world: World, *offsets: int) -> None:
    """Another engine rewrote these rows without what was in them, and an operator had the head rebuilt."""
    tables = world.bench.tables
    named = tables.snapshots[-1].held.snapshot_id
    number = next(tables._held_ids)
    tables.held_snapshots[number] = tuple(
        replace(r, payload=None, stored=False, held=replace(r.held, stored=False))
        if r.held.chunk.offset in offsets
        else r
        for r in tables.held_snapshots[named]
    )
    tables.held_of[number] = Staged("", 0, 0, named)
    tables.held_main = number
    tables.expire_head()
    rewind(world, "rebuilt", accept_missing=True)


def test_a_copy_that_has_bytes_is_taken_before_one_that_is_held_without(world: World) -> None:
    world.ingest(park=True)
    world.bench.log.retain_from(Partition(0), Offset(2))
    without_payload(world, 0)
    world.guarantees = ()
    world.send("w", 0, ONE)
    world.ingest()
    world.decide(HeldAction.REDRIVE, "w")
    assert world.published() == {"w": ONE + TWO}
    (chunks,) = [row.chunks for _, row in world.bench.tables.rows]
    assert [c.offset for c in chunks] == [2, 1]
