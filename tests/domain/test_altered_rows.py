"""What `verify-table` advises where a published row is not what was sent, on the memory edges: whole batches."""

from __future__ import annotations

from dataclasses import replace

from tests.domain.test_held_decisions import ONE, TWO, World
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind


def read_again(world: World) -> None:
    log, tables = world.bench.log, world.bench.tables
    found = plan_rewind(world.stream, Target("earliest"), log=log, tables=tables, who="ops", why="verify-table")
    apply_rewind(world.stream, found, accept_skip=False, log=log, tables=tables)
    world.ingest()


def test_an_altered_row_is_published_anew_once_it_was_deleted_and_its_chunks_are_read_again() -> None:
    world = World()
    world.guarantees = ()  # somebody altered what is published
    for seq, value in enumerate((ONE, TWO)):
        world.send("w", seq, value)
    world.send("v", 0, ONE, count=1)
    world.ingest()
    rows = world.bench.tables.rows
    (at,) = [n for n, (_, row) in enumerate(rows) if row.waveform_id == "w"]
    rows[at] = (rows[at][0], replace(rows[at][1], samples=b"\xff\x7f" + TWO))
    read_again(world)
    assert world.published()["w"] != ONE + TWO, "a row that stands is known, whatever its samples are"
    del world.bench.tables.rows[at]
    read_again(world)
    assert world.published() == {"w": ONE + TWO, "v": ONE}
    assert len(world.bench.tables.rows) == 2, "what was not deleted is recognised"
