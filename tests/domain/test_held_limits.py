"""What is known to be wrong about what is held, as tests that are expected to fail until it is mended."""

from __future__ import annotations

import pytest
import xxhash

from tests.builders.records import metadata
from tests.domain.test_held_decisions import ONE, TWO, T, World, parked
from tests.memory.batch import Carrying, MemoryEdges
from wavestitch.batch.held_decision import carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.rewind import apply_rewind, plan_rewind
from wavestitch.batch.rewind_target import Target
from wavestitch.contracts.chunk_header import encode_headers
from wavestitch.contracts.errors import Refused, Terminal
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.stream import Limits


@pytest.mark.xfail(strict=True, reason="of a discarded waveform a repeat is known by its piece alone, count aside")
def test_a_repeat_that_brings_the_count_is_kept_while_its_waveform_is_discarded():
    world = World()
    world.send("w", 0, ONE, count=None)
    world.send("w", 1, TWO, count=None)
    world.ingest()
    world.decide(HeldAction.DISCARD, "w")
    world.send("w", 1, TWO, count=2)
    world.ingest()
    world.decide(HeldAction.RESTORE, "w")
    world.decide(HeldAction.REDRIVE, "w")
    assert world.published() == {"w": ONE + TWO}


@pytest.mark.xfail(strict=True, reason="a held chunk is known by coordinate and piece, count aside")
def test_a_repeat_that_brings_the_count_at_an_offset_that_is_used_again_is_kept():
    world = World()
    world.send("w", 0, ONE, count=None)
    world.send("w", 1, TWO, count=None)
    world.ingest()
    at = world.bench.log.partitions[0]
    del at.records[1:], at.seen[1:], at.heads[1:]
    world.send("w", 1, TWO, count=2)
    log, tables = world.bench.log, world.bench.tables
    found = plan_rewind(world.stream, Target(word="earliest"), log=log, tables=tables, who="ops", why="election")
    apply_rewind(world.stream, found, accept_skip=False, log=log, tables=tables)
    world.ingest()
    assert world.published() == {"w": ONE + TWO}


@pytest.mark.xfail(strict=True, reason="a piece's identity leaves the digest out, and one copy passes for the other")
def test_the_counts_are_what_is_held_after_a_pick_of_the_same_bytes_with_another_digest():
    world = World()
    for at, digest in ((T, xxhash.xxh3_128_hexdigest(ONE)), (T + 1, "0" * 32)):
        headers = encode_headers(waveform_id="w", seq=0, count=1, meta=metadata(T).decode(), value=ONE, digest=digest)
        world.bench.log.append(0, at, b"w", headers, ONE)
    world.ingest()
    world.decide(HeldAction.PICK, "w", pick="first")
    world.check()


@pytest.mark.xfail(strict=True, reason="a gate that an operator's decision closes bars nobody")
def test_an_ingest_does_not_go_past_a_gate_that_a_redrive_closed():
    world = World()
    parked(world)
    edges = MemoryEdges(world.bench, world.stream, world.now_ms + 1, Carrying(spoiled={"w"}))
    plan = plan_held(edges, HeldAction.REDRIVE, Selection(ids=("w",)), who="ops", why="again").plan
    with pytest.raises(Terminal):
        carry_out(edges, plan)
    world.send("v", 0, ONE)
    world.send("v", 1, TWO)
    with pytest.raises(Refused):
        world.ingest()


@pytest.mark.xfail(strict=True, raises=Refused, reason="the mark knows the bytes of files, not of rows that count")
def test_the_quota_on_bytes_counts_what_is_held_and_not_what_was_released_since():
    world = World()
    world.stream = world.stream.model_copy(update={"limits": Limits(max_held_bytes=3 * len(ONE))})
    world.send("w0", 0, ONE)
    for n in range(1, 6):
        world.ingest()
        world.send(f"w{n - 1}", 1, TWO, at=T + n)
        world.send(f"w{n}", 0, ONE, at=T + n)
