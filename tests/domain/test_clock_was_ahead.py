"""A host's clock was ahead for one batch, and is right again: what waits is judged by the right one at once."""

from __future__ import annotations

import pytest

from tests.domain.held_world import ONE, TWO, T, World

DAY, YEAR = 86_400_000, 365 * 86_400_000


@pytest.fixture
def world() -> World:
    """One waveform waits; a clock that was a year ahead found all partitions idle, and it incomplete."""
    world = World()
    world.send("old", 0, ONE)
    world.ingest()
    world.now_ms = T + YEAR
    world.ingest()
    assert world.held() == {"old": {"incomplete"}}
    world.now_ms = T + 1000
    return world


def watermark(world: World) -> int:
    head = world.bench.tables.head()
    assert head is not None
    return int(head.watermark_ms)


def test_a_waveform_that_is_being_sent_is_open_and_not_incomplete(world: World) -> None:
    world.send("new", 0, ONE, at=world.now_ms)
    world.ingest()
    assert world.held()["new"] == {"open"}
    assert watermark(world) <= world.now_ms


def test_what_was_given_up_by_that_clock_waits_again_and_is_carried(world: World) -> None:
    world.send("new", 0, ONE, at=world.now_ms)
    world.ingest()
    assert world.held()["old"] == {"open"}
    world.ingest()
    world.send("old", 1, TWO, at=world.now_ms)
    world.ingest()
    assert sorted(world.published()) == ["old"]


def test_a_clock_that_is_behind_gives_nothing_back_that_records_have_passed(world: World) -> None:
    world.send("new", 0, ONE, at=T + 9 * DAY)
    world.now_ms = T + 9 * DAY
    world.ingest()
    world.send("later", 0, ONE, at=T + 10 * DAY)
    world.now_ms = T + 10 * DAY
    world.ingest()
    reached = watermark(world)
    world.now_ms = 1000
    world.send("last", 0, ONE, at=T + 10 * DAY)
    world.ingest()
    assert watermark(world) == reached
