"""What a repeat says of the whole (its count, its digest, a plausible time) is never lost while its waveform is held.

On the memory edges, by the product's own steps; all guarantees hold after every batch and decision.
"""

from __future__ import annotations

from typing import Any

import pytest
import xxhash

from tests.builders.records import letter, metadata
from tests.domain.held_world import ONE, OTHER, TWO, T, World
from wavestitch.batch.rewind import apply_rewind, plan_rewind
from wavestitch.batch.rewind_target import Target
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.quantities import Partition

WRONG = "0" * 32
YEAR_MS = 400 * 86_400_000


@pytest.fixture
def world() -> World:
    return World()


def send_saying(
    world: World, seq: int, value: bytes, digest: str | None, *, at: int = T, count: int | None = 1
) -> None:
    one = letter("w", seq, value, meta=metadata(T), count=count, digest=digest)
    world.bench.log.append(Partition(0), at, one.key, one.headers, one.value)


GOOD = xxhash.xxh3_128(ONE + TWO).hexdigest()


def send_whole(world: World, *, count: int | None = 2, digest: str | None = None) -> None:
    for seq, value in enumerate((ONE, TWO)):
        send_saying(world, seq, value, digest, count=count)


@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize(("wrong", "right"), [({"count": 3}, {}), ({"digest": WRONG}, {"digest": GOOD})])
def test_of_a_waveform_that_was_sent_wrong_and_then_right_the_right_one_is_there_to_be_picked(
    world: World, wrong: dict[str, Any], right: dict[str, Any], batches: int
) -> None:
    send_whole(world, **wrong)
    if batches == 2:
        world.ingest()
    send_whole(world, **right)
    world.ingest()
    world.decide(HeldAction.PICK, "w", pick="last")
    assert world.published() == {"w": ONE + TWO}


def test_what_was_discarded_under_one_count_and_came_again_under_another_is_all_there_once_restored(
    world: World,
) -> None:
    send_whole(world, count=3)
    world.ingest()
    world.decide(HeldAction.DISCARD, "w")
    send_whole(world)
    world.ingest()
    world.decide(HeldAction.RESTORE, "w")
    world.decide(HeldAction.REDRIVE, "w")
    assert world.held() == {"w": {"conflict"}}
    world.decide(HeldAction.PICK, "w", pick="last")
    assert world.published() == {"w": ONE + TWO}


def test_what_was_discarded_for_its_digest_and_came_again_under_the_right_one_is_there_to_be_picked(
    world: World,
) -> None:
    send_whole(world, digest=WRONG)
    world.ingest()
    with pytest.raises(Refused, match="has other bytes than its ws-digest says, and will have"):
        world.decide(HeldAction.REDRIVE, "w")
    world.decide(HeldAction.DISCARD, "w")
    send_whole(world, digest=GOOD)
    world.ingest()
    world.decide(HeldAction.RESTORE, "w")
    assert world.held() == {"w": {"digest_mismatch"}}
    world.decide(HeldAction.REDRIVE, "w")
    assert world.held() == {"w": {"conflict"}}
    world.decide(HeldAction.PICK, "w", pick="last")
    assert world.published() == {"w": ONE + TWO}


@pytest.mark.parametrize("order", [(None, WRONG, GOOD), (WRONG, GOOD, None)])
def test_what_a_pick_discarded_stays_away_from_a_rewind_though_a_silent_copy_was_kept(
    world: World, order: tuple[str | None, ...]
) -> None:
    for digest in order:
        send_saying(world, 0, ONE, digest, count=2)
    world.ingest()
    world.decide(HeldAction.PICK, "w", pick=f"0:{order.index(GOOD)}")
    assert world.held() == {"w": {"open", "discarded"}}
    log, tables = world.bench.log, world.bench.tables
    back = plan_rewind(world.stream, Target(word="earliest"), log=log, tables=tables, who="ops", why="again")
    apply_rewind(world.stream, back, accept_skip=False, log=log, tables=tables)
    world.ingest()
    assert world.held() == {"w": {"open", "discarded"}}
    send_saying(world, 1, TWO, GOOD, count=2)
    world.ingest()
    assert world.published() == {"w": ONE + TWO}


def test_what_was_parked_under_one_count_and_came_again_under_another_is_all_there_once_redriven(world: World) -> None:
    send_whole(world)
    world.ingest(park=True)
    send_whole(world, count=3)
    world.ingest()
    world.decide(HeldAction.REDRIVE, "w")
    assert world.held() == {"w": {"conflict"}}
    world.decide(HeldAction.PICK, "w", pick="last")
    assert world.held() == {"w": {"open", "discarded"}}
    world.send("w", 2, OTHER, count=3)
    world.ingest()
    assert world.published() == {"w": ONE + TWO + OTHER}


def test_a_copy_that_is_silent_about_the_whole_is_there_to_be_picked_with_what_is_not(world: World) -> None:
    world.send("w", 0, ONE, count=3)
    world.send("w", 1, TWO, count=3)
    world.ingest()
    world.send("w", 0, ONE, count=None)
    world.ingest()
    world.send("w", 1, TWO, count=2)
    world.ingest()
    assert world.held() == {"w": {"conflict"}}
    world.decide(HeldAction.PICK, "w", pick="last")
    assert world.published() == {"w": ONE + TWO}


def test_of_two_copies_one_of_which_is_picked_no_chunk_of_the_other_is_missed_by_a_verification(world: World) -> None:
    world.send("w", 0, ONE, count=1)
    send_whole(world)
    world.ingest()
    world.decide(HeldAction.PICK, "w", pick="first")
    assert world.published() == {"w": ONE}
    kept = {(r.held.chunk.seq, r.held.chunk.count, r.held.reason.value) for r in world.bench.tables.held_rows()}
    assert {(0, 2, "discarded"), (1, 2, "discarded")} <= kept


def without_count(world: World) -> None:
    world.send("w", 0, ONE, count=None)
    world.send("w", 1, TWO, count=None)
    world.ingest()


def test_a_repeat_that_brings_the_count_is_kept_while_its_waveform_is_discarded(world: World) -> None:
    without_count(world)
    world.decide(HeldAction.DISCARD, "w")
    for _ in range(3):
        world.send("w", 1, TWO, count=2)
        world.ingest()
    assert len(world.bench.tables.held_rows()) == 5, "once is enough: two chunks, two tombstones, one repeat"
    world.decide(HeldAction.RESTORE, "w")
    assert world.held() == {"w": {"open"}}
    world.decide(HeldAction.REDRIVE, "w")
    assert world.published() == {"w": ONE + TWO}


def test_a_repeat_that_brings_the_count_at_an_offset_that_is_used_again_is_kept(world: World) -> None:
    without_count(world)
    at = world.bench.log.partitions[Partition(0)]
    del at.records[1:], at.seen[1:], at.heads[1:], at.epochs[1:]
    world.send("w", 1, TWO, count=2)
    log, tables = world.bench.log, world.bench.tables
    found = plan_rewind(world.stream, Target(word="earliest"), log=log, tables=tables, who="ops", why="election")
    apply_rewind(world.stream, found, accept_skip=False, log=log, tables=tables)
    world.ingest()
    assert world.published() == {"w": ONE + TWO}


def test_of_what_is_parked_a_repeat_that_says_another_count_is_kept_and_is_a_conflict_when_it_is_redriven(
    world: World,
) -> None:
    world.send("w", 0, ONE)
    world.send("w", 1, TWO)
    world.ingest(park=True)
    world.send("w", 1, TWO, count=3)
    world.ingest()
    assert world.held() == {"w": {"parked"}}
    world.decide(HeldAction.REDRIVE, "w")
    assert world.held() == {"w": {"conflict"}}
    assert world.published() == {}


def test_of_what_is_parked_a_repeat_that_brings_a_digest_is_heeded_when_it_is_redriven(world: World) -> None:
    send_saying(world, 0, ONE, None)
    world.ingest(park=True)
    send_saying(world, 0, ONE, WRONG)
    world.ingest()
    world.decide(HeldAction.REDRIVE, "w")
    assert world.held() == {"w": {"digest_mismatch"}}


def test_a_repeat_whose_record_time_makes_the_start_time_plausible_is_kept(world: World) -> None:
    world.send("w", 0, ONE, at=T - YEAR_MS)
    world.send("w", 0, ONE, at=T)
    world.ingest()
    assert world.held() == {"w": {"open"}}
    world.send("w", 1, TWO, at=T - YEAR_MS)
    world.ingest()
    assert world.published() == {"w": ONE + TWO}


class TestPickAmongEqualBytes:
    """Two copies of the same bytes that say different digests of the whole."""

    def test_the_head_counts_what_is_held_once_one_is_published(self, world: World) -> None:
        send_saying(world, 0, ONE, xxhash.xxh3_128_hexdigest(ONE))
        send_saying(world, 0, ONE, WRONG, at=T + 1)
        world.ingest()
        assert world.held() == {"w": {"conflict"}}
        world.decide(HeldAction.PICK, "w", pick="first")
        assert world.published() == {"w": ONE}
        assert world.held() == {}

    def test_the_wrong_one_can_be_undone(self, world: World) -> None:
        send_saying(world, 0, ONE, xxhash.xxh3_128_hexdigest(ONE))
        send_saying(world, 0, ONE, WRONG, at=T + 1)
        world.ingest()
        world.decide(HeldAction.PICK, "w", pick="last")
        assert world.held() == {"w": {"digest_mismatch", "discarded"}}
        world.decide(HeldAction.RESTORE, "w")
        assert world.held() == {"w": {"digest_mismatch", "conflict"}}
        world.decide(HeldAction.PICK, "w", pick="first")
        assert world.published() == {"w": ONE}
        assert world.held() == {}

    def test_the_one_that_was_kept_learns_while_the_other_stays_away(self, world: World) -> None:
        whole = xxhash.xxh3_128_hexdigest(ONE + TWO)
        send_saying(world, 0, ONE, whole, count=None)
        send_saying(world, 0, ONE, WRONG, count=None)
        send_saying(world, 1, TWO, None, count=None)
        world.ingest()
        world.decide(HeldAction.PICK, "w", pick="first")
        assert world.held() == {"w": {"open", "discarded"}}
        send_saying(world, 0, ONE, WRONG, count=None, at=T + 2)
        world.ingest()
        assert world.held() == {"w": {"open", "discarded"}}
        send_saying(world, 0, ONE, whole, count=2, at=T + 3)
        world.ingest()
        assert world.published() == {"w": ONE + TWO}
        assert world.held() == {}


def test_what_contradicts_a_published_waveform_and_was_discarded_stays_away_whatever_it_says(world: World) -> None:
    world.send("w", 0, ONE)
    world.send("w", 1, TWO)
    world.ingest()
    world.send("w", 1, OTHER)
    world.ingest()
    world.decide(HeldAction.DISCARD, "w")
    world.send("w", 1, OTHER, count=3)
    world.ingest()
    assert world.held() == {"w": {"discarded"}}
    assert world.published() == {"w": ONE + TWO}


# --- how long it waits


def waiting(world: World) -> dict[str, int]:
    """What the audit of the newest batch says of those that wait."""
    row = max(world.bench.tables.history, key=lambda row: row.sequence)
    assert world.held() == {"z": {"open"}}
    return {fate: row.counts[fate] for fate in ("carried_out", "quarantined")}


def test_what_is_kept_for_what_it_says_has_its_waveform_wait_from_its_own_time_in_the_audit_too() -> None:
    world = World()
    world.send("z", 0, ONE, count=None)
    world.ingest()
    world.now_ms += 73 * 3_600_000
    world.send("z", 0, ONE, count=2, at=world.now_ms)
    world.ingest()  # of each batch it is asked whether as many wait as it says
    assert waiting(world) == {"carried_out": 2, "quarantined": 0}
    world.send("other", 0, ONE, count=1, at=world.now_ms)
    world.ingest()
    assert waiting(world) == {"carried_out": 2, "quarantined": 0}


def test_what_is_restored_waits_as_a_whole() -> None:
    world = World()
    world.send("z", 0, ONE, count=3)
    world.ingest()
    world.now_ms += 2 * 3_600_000
    world.send("z", 1, TWO, count=3, at=world.now_ms)
    world.ingest()
    world.decide(HeldAction.DISCARD, "z")
    world.decide(HeldAction.RESTORE, "z")
    assert waiting(world) == {"carried_out": 2, "quarantined": 0}
