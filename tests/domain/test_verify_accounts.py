"""Every record of a verified range is in exactly one class, and what is held is compared with the log, too."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.ranges import span
from tests.builders.records import Lie, letter, lied, metadata
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.domain.effort import effort
from tests.domain.held_world import ONE, OTHER, TWO, T, World
from tests.domain.test_every_reason_has_a_way_out import WAYS
from tests.domain.test_verify_range import found, two_published, verify
from tests.fakes.batch import Carrying
from tests.fakes.fake_comparing import FakeComparing
from tests.fakes.kept_partition import Visibility
from wavestitch.batch.range_accounts import held_now
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.batch.verify import Verified, verified_to_json
from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.errors import DataLost, Refused
from wavestitch.contracts.held import HeldLook
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.id_partitions import IdPartitions
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.record_accounts import RecordIs
from wavestitch.contracts.stream import Limits
from wavestitch.contracts.verification import Agreement

P = Partition(0)


@pytest.fixture
def world() -> World:
    return World()


def accounted(world: World, done: Verified) -> dict[str, int]:
    """The records of the range by class, those that are any. Each is in one, and each offset is one thing."""
    seen = enumerate(world.bench.log.partitions[P].seen)
    there = [o for o, what in seen if what is Visibility.COMMITTED and any(r.start <= o < r.end for r in done.read)]
    assert sum(done.records.values()) == len(there)
    assert sum(done.held.values()) == done.records[RecordIs.HELD]
    assert sum(done.offsets.values()) == sum(r.size for r in done.asked)
    assert done.offsets["records"] == len(there)
    return {what: n for what, n in done.records.items() if n}


def why(done: Verified, waveform_id: str) -> str:
    return next(one.why for one in done.waveforms if one.waveform_id == waveform_id)


# --- what is held is said to be held


@pytest.mark.parametrize("reason", WAYS)
def test_what_is_held_for_any_reason_of_a_waveform_is_held_for_that_reason(world: World, reason: Reason) -> None:
    WAYS[reason][0](world)
    done = verify(world)
    assert set(accounted(world, done)) == {"held"}
    assert done.held[reason.value] >= 1
    assert found(done)["w"] is (Agreement.DISCARDED if reason is Reason.DISCARDED else Agreement.HELD)
    assert reason.value in why(done, "w")


def test_what_was_held_as_of_another_partition_is_held_for_that_though_it_is_whole_today(world: World) -> None:
    whole = world.stream
    world.stream = whole.model_copy(update={"id_partitions": IdPartitions(prefixes={"other": (0,)})})
    two_sent(world)
    world.ingest()
    world.stream = whole
    done = verify(world)
    assert accounted(world, done) == {"held": 4}
    assert done.held == {"wrong_partition": 4}
    assert set(found(done).values()) == {Agreement.HELD}
    assert why(done, "w").startswith("wrong_partition: ")


def test_what_nobody_had_proven_is_held_for_that_where_nothing_is_asked_today(world: World) -> None:
    world.bench.proof = ChunkProof("mac", b"k" * 32)
    world.stream = make_stream(proof="mac", proof_key="env:WAVESTITCH_PROOF_K")
    two_sent(world)
    world.ingest()
    world.stream = make_stream()
    done = verify(world)
    assert accounted(world, done) == {"held": 4}
    assert done.held == {"unproven": 4}
    assert set(found(done).values()) == {Agreement.HELD}


def two_sent(world: World) -> None:
    for wid in ("v", "w"):
        world.send(wid, 0, ONE)
        world.send(wid, 1, TWO)


@pytest.mark.parametrize("lie", Lie)
def test_a_record_that_is_no_chunk_is_held_as_what_it_is(world: World, lie: Lie) -> None:
    two_sent(world)
    good = letter("x", 0, ONE + TWO, meta=metadata(T), count=1)
    world.bench.log.append(P, T, *lied(good, lie))
    world.ingest()
    done = verify(world)
    assert accounted(world, done) == {"published": 4, "held": 1}
    assert found(done).keys() >= {"v", "w"}
    assert {one.found for one in done.waveforms} <= {Agreement.SAME, Agreement.HELD}


def test_copies_replays_and_what_contradicts_are_counted_for_what_they_are(world: World) -> None:
    two_published(world)
    for _ in range(3):
        world.send("w", 0, ONE)
    world.send("w", 1, OTHER)
    world.send("half", 0, ONE)
    world.send("half", 0, ONE)
    world.ingest()
    world.send("next", 0, ONE)
    done = verify(world, span(0, 0, 99))
    assert accounted(world, done) == {"published": 7, "held": 3, "to be read": 1}
    assert done.held == {"conflict": 1, "open": 2}
    assert done.offsets["not in the log"] == 99 - 11


def test_markers_and_aborted_records_are_no_records_and_add_up(world: World) -> None:
    two_sent(world)
    send_chunk(world.bench.log, "gone", at_ms=T, start_ms=T, seen=Visibility.ABORTED)
    world.bench.log.mark(P, Visibility.ABORTED, T, 3)
    world.ingest()
    done = verify(world)
    assert accounted(world, done) == {"published": 4}
    assert done.offsets["no record, as the broker proves"] == sum(r.size for r in done.read) - 4 > 0


def test_what_an_operator_skipped_is_not_told_as_missing(world: World) -> None:
    two_published(world)
    world.send("passed over", 0, ONE, count=1)
    log, tables = world.bench.log, world.bench.tables
    target = plan_rewind(world.stream, Target("latest"), log=log, tables=tables, who="ops", why="a flood")
    apply_rewind(world.stream, target, accept_skip=True, log=log, tables=tables)
    done = verify(world)
    assert accounted(world, done) == {"published": 4, "skipped": 1}
    assert found(done)["passed over"] is Agreement.SKIPPED
    assert exit_code_of(done) == 0


def test_a_deleted_row_of_what_was_read_before_it_was_gone_over_by_name_is_missing(world: World) -> None:
    two_published(world)
    log, tables = world.bench.log, world.bench.tables
    for to in ("earliest", "latest"):
        target = plan_rewind(world.stream, Target(to), log=log, tables=tables, who="ops", why="back and forth")
        apply_rewind(world.stream, target, accept_skip=True, log=log, tables=tables)
    assert set(found(verify(world, span(0, 0, 4))).values()) == {Agreement.SAME}
    assert tables.delete_published({"w"})
    assert found(verify(world, span(0, 0, 4)))["w"] is Agreement.MISSING_IN_TABLE


def test_what_lies_before_the_beginning_of_a_stream_is_not_told_as_read(world: World) -> None:
    world.send("before", 0, ONE, count=1)
    world.stream = world.stream.model_copy(update={"start": "latest"})
    world.ingest()
    two_published(world)
    done = verify(world, span(0, 0, 5))
    assert accounted(world, done) == {"published": 4, "read by no known batch": 1}
    assert why(done, "before").startswith("no batch that the history knows has read partition 0 [0, 1), ")
    assert exit_code_of(done) == 7


def test_a_row_that_was_deleted_leaves_records_that_are_nowhere(world: World) -> None:
    two_published(world)
    del world.bench.tables.rows[0]
    done = verify(world)
    assert accounted(world, done) == {"published": 2, "neither published nor held": 2}
    assert exit_code_of(done) == 6


def exit_code_of(done: Verified) -> int:
    code = verified_to_json(done)["exit_code"]
    assert isinstance(code, int)
    return code


# --- what is held is looked for in the log


def half_held(world: World) -> None:
    world.send("half", 0, ONE, count=3)
    world.send("half", 1, TWO, count=3)
    two_published(world)


def test_of_what_is_held_as_incomplete_the_chunks_that_the_log_has_no_more_are_named(world: World) -> None:
    half_held(world)
    world.bench.log.retain_from(P, Offset(1))
    done = verify(world, span(0, 0, 6))
    accounted(world, done)
    assert found(done)["half"] is Agreement.HELD_ALONE
    assert why(done, "half").startswith("partition 0 [0, 1): gone from the log, the table has the bytes; open: 2 of 3")
    assert next(one.lost for one in done.waveforms if one.waveform_id == "half") == (span(0, 0, 1),)
    assert exit_code_of(done) == 7
    world.bench.log.retain_from(P, Offset(2))
    assert "partition 0 [0, 2)" in why(verify(world, span(0, 0, 6)), "half"), "also where no chunk of it was read"


def test_what_is_held_and_neither_in_the_log_nor_in_the_table_is_lost(world: World) -> None:
    half_held(world)
    tables, head = world.bench.tables, world.bench.tables.snapshots[-1]
    number = world.mark().snapshot_id
    rows = tables.held_snapshots[number]
    tables.held_snapshots[number] = tuple(replace(row, held=replace(row.held, stored=False)) for row in rows)
    tables.snapshots[-1] = replace(head, held=tables.held_at(number))  # as a rebuilt head has taken it over
    world.bench.log.retain_from(P, Offset(1))
    done = verify(world, span(0, 0, 6))
    assert found(done)["half"] is Agreement.LOST
    assert why(done, "half").startswith("partition 0 [0, 1): gone from the log, and the table has not the bytes")
    assert exit_code_of(done) == 6


@pytest.mark.parametrize("anew", [True, False])
def test_what_is_held_from_a_place_where_something_else_lies_is_named(world: World, anew: bool) -> None:
    half_held(world)
    world.bench.log.truncate(P, Offset(1))
    if anew:
        world.send("new", 0, ONE, count=1)
    done = verify(world, span(0, 0, 6))
    accounted(world, done)
    assert found(done)["half"] is Agreement.NOT_FOUND
    there = "another record" if anew else "no record"
    assert f"from partition 0 offset 1 it is held, where the log has {there}" in why(done, "half")
    assert exit_code_of(done) == 6


def test_what_is_held_from_an_offset_that_the_log_does_not_deliver_is_named(world: World) -> None:
    half_held(world)
    world.bench.log.lose(P, Offset(1))
    done = verify(world)
    accounted(world, done)
    assert found(done)["half"] is Agreement.NOT_FOUND
    assert "from partition 0 offset 1 it is held, where the log has no record" in why(done, "half")


def test_what_was_written_anew_in_that_very_millisecond_is_not_taken_for_what_is_held_from_there(world: World) -> None:
    world.bench.log.append(P, T, *lied(letter("x", 0, ONE, meta=metadata(T), count=1), Lie.FLIPPED_BYTE))
    world.ingest()
    world.bench.log.truncate(P, Offset(0))
    world.send("w", 0, ONE)
    done = verify(world, batch=next(row.plan_id for row in world.bench.tables.history if row.ranges))
    assert found(done)["w"] is Agreement.MISSING_IN_TABLE


def test_a_record_that_is_no_chunk_and_is_held_from_another_place_is_named(world: World) -> None:
    world.bench.log.append(P, T, None, (), b"junk")
    two_published(world)
    world.bench.log.truncate(P, Offset(0))
    world.bench.log.append(P, T, None, (), b"other junk")
    done = verify(world)
    assert done.misplaced == (
        "from partition 0 offset 0 it is held, where the log has another record; the table has its bytes",
    )
    assert exit_code_of(done) == 6


# --- generated worlds

SEND = st.tuples(
    st.just("send"), st.sampled_from("vwx"), st.integers(0, 1), st.sampled_from([ONE, TWO]), st.integers(1, 2)
)
ACTS = st.one_of(
    SEND,
    SEND,
    SEND,
    st.tuples(st.just("junk"), st.sampled_from(Lie)),
    st.tuples(st.just("aborted")),
    st.tuples(st.just("ingest"), st.sampled_from([{}, {"park": True}, {"failing": {"v"}}])),
    st.tuples(st.just("ingest"), st.just({})),
    st.tuples(st.just("discard"), st.sampled_from("vwx")),
    st.tuples(st.just("retain"), st.integers(0, 3)),
    st.tuples(st.just("rewind"), st.sampled_from(["earliest", "latest"])),
    st.tuples(st.just("cut"), st.integers(0, 3)),
    st.tuples(st.just("lose"), st.integers(0, 5)),
    st.tuples(st.just("limits"), st.integers(1, 2)),
)


@effort(25)
@given(acts=st.lists(ACTS, min_size=3, max_size=18), most=st.sampled_from([2, 5, 1000]))
def test_accounted_is_what_was_read_in_whatever_world(acts: list[tuple[Any, ...]], most: int) -> None:
    world = World()
    two_published(world)
    harmed = False
    for act, *how in acts:
        harmed |= act in ("cut", "lose")
        world.guarantees = () if harmed else world.guarantees
        with suppress(Refused, DataLost):
            play(world, act, how)
    world.stream = world.stream.model_copy(update={"limits": Limits(max_batch_records=most)})
    done = verify(world, span(0, 0, 40))
    seen = accounted(world, done)
    if not harmed:
        assert not {RecordIs.NOWHERE, RecordIs.NOT_READ, RecordIs.HELD_NO_MORE} & seen.keys()
        assert not {one.found for one in done.waveforms} & {Agreement.LOST, Agreement.MISSING_IN_TABLE}
        assert done.misplaced == ()


def play(world: World, act: str, how: list[Any]) -> None:
    log, tables = world.bench.log, world.bench.tables
    at = log.partitions[P]
    match act:
        case "send":
            world.send(how[0], how[1], how[2], count=how[3])
        case "junk":
            log.append(P, T, *lied(letter("j", 0, ONE + TWO, meta=metadata(T), count=1), how[0]))
        case "aborted":
            send_chunk(log, "aborted", at_ms=T, start_ms=T, seen=Visibility.ABORTED)
        case "ingest":
            world.ingest(**how[0])
        case "discard":
            world.decide(HeldAction.DISCARD, how[0])
        case "retain":
            log.retain_from(P, Offset(at.log_start + how[0]))
        case "rewind":
            found = plan_rewind(world.stream, Target(how[0]), log=log, tables=tables, who="ops", why="so it is")
            apply_rewind(world.stream, found, accept_skip=True, log=log, tables=tables)
        case "cut":
            log.truncate(P, Offset(max(at.log_start, at.end - how[0])))
        case "lose":
            log.lose(P, Offset(min(at.log_start + how[0], at.end - 1)))
        case "limits":
            world.stream = world.stream.model_copy(update={"limits": Limits(max_chunks=how[0])})


def test_a_chunk_that_is_found_by_its_place_waits_for_as_long_as_its_waveform_does(world: World) -> None:
    minute = 60_000
    world.send("w", 0, ONE, count=3)
    world.send("w", 1, ONE, count=3, at=T + 50 * minute)
    world.send("x", 0, ONE, count=1, at=T + 90 * minute)
    world.ingest()
    edges = FakeComparing(world.bench, world.stream, world.now_ms, Carrying())
    look = HeldLook(coordinates=frozenset({(world.bench.log.topic_id, Partition(0), Offset(0))}))
    assert [(h.chunk.offset, h.reason) for h in held_now(edges, look)] == [(0, Reason.OPEN), (1, Reason.OPEN)]
