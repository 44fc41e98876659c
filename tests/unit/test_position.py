"""The head, its tag in the group, and the watermark."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.heads import at
from tests.builders.ranges import span
from tests.domain.effort import effort
from tests.hostile.refusing import value_or_refusal
from wavestitch.contracts.disagreement import next_generation
from wavestitch.contracts.errors import BadInput, NewerFormat
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.contracts.position import (
    AtGate,
    GroupOffset,
    Head,
    HeadKind,
    LastBatch,
    Position,
    Tag,
    advance_watermark,
    head_from_properties,
    is_believable,
    is_ours,
    parse_tag,
)
from wavestitch.contracts.protocol import left_alone
from wavestitch.contracts.quantities import EpochMs, Generation, LeaderEpoch, Milliseconds, Offset, Partition

HEAD = Head(
    sequence=7,
    generation=Generation(2),
    kind=HeadKind.INGEST,
    topic_id="AAAA",
    positions={
        Partition(0): Position(Offset(12), EpochMs(99), LeaderEpoch(3), LastBatch(LeaderEpoch(2), "ab" * 16)),
        Partition(11): Position(Offset(0)),
    },
    plan_id="ab" * 16,
    decision="cd" * 16,
    watermark_ms=EpochMs(1234),
    skipped=(span(0, 3, 5),),
    mean_record_bytes=65536.5,
    note="a note, with ünicode",
    held=HeldMark(9, 3, 100, "ef" * 32, {"open": 3}),
)

NEAR = st.sampled_from(
    [n + d for n in (0, 10**9, 10**9 + 1000, 2**53, 10**18, 2**63, 10**30) for d in (-1, 0, 1, 7, 8, 9) if n + d >= 0]
)


def test_a_head_survives_the_snapshot_summary() -> None:
    assert head_from_properties(HEAD.to_properties(), 42) == HEAD
    assert all(isinstance(v, str) for v in HEAD.to_properties().values())
    committed = replace(HEAD, snapshot_id=42, committed_ms=EpochMs(9))
    assert committed.to_properties() == HEAD.to_properties(), "Iceberg says those itself"


def test_heads_of_earlier_formats_are_read_and_know_of_no_batch() -> None:
    bare = {p: at._replace(last_batch=None) for p, at in HEAD.positions.items()}
    said = HEAD.to_properties()
    said |= {"wavestitch.format": "2", "wavestitch.positions": json.dumps({p: at[:3] for p, at in bare.items()})}
    assert head_from_properties(said, 42) == replace(HEAD, positions=bare)
    older = {k: v for k, v in said.items() if k != "wavestitch.at-gate"} | {"wavestitch.format": "1"}
    assert head_from_properties(older, 42) == replace(HEAD, positions=bare)


def test_a_snapshot_without_our_keys_is_no_head() -> None:
    assert head_from_properties({"added-records": "3"}, 42) is None


def test_held_rows_of_a_newer_wavestitch_are_refused_with_a_sentence() -> None:
    newer = replace(HEAD, held=replace(HEAD.held, format=2))
    with pytest.raises(NewerFormat, match=r"what the head in snapshot 42 holds was written by a newer Wavestitch"):
        head_from_properties(newer.to_properties(), 42)


def test_a_newer_head_is_refused_with_a_sentence() -> None:
    with pytest.raises(
        NewerFormat,
        match=r"the head in snapshot 42 was written by a newer Wavestitch \(format 9; this version reads up to 3\)",
    ):
        head_from_properties({**HEAD.to_properties(), "wavestitch.format": "9", "wavestitch.new": "x"}, 42)


@pytest.mark.parametrize("key", sorted(HEAD.to_properties()))
def test_a_head_without_one_of_its_keys_is_refused_and_never_passed_over(key: str) -> None:
    lacks = {k: v for k, v in HEAD.to_properties().items() if k != key}
    with pytest.raises(BadInput, match=r"the head in snapshot 42 (lacks a field|has format None).*; have the table"):
        head_from_properties(lacks, 42)


@pytest.mark.parametrize("key", sorted(HEAD.to_properties()))
@given(text=st.text(max_size=20) | st.sampled_from(["1", "[]", "{}", "null", "NaN", "1e999", '"1"', "[" * 9999]))
@effort(30)
def test_whatever_one_key_says_a_head_is_read_or_refused(key: str, text: str) -> None:
    found = value_or_refusal(lambda: head_from_properties({**HEAD.to_properties(), key: text}, 42), allowed=BadInput)
    assert not isinstance(found, Head) or head_from_properties(found.to_properties(), 42) == found


def test_a_key_of_ours_that_no_head_has_is_refused() -> None:
    with pytest.raises(BadInput, match="has an unknown field: surprise"):
        head_from_properties({**HEAD.to_properties(), "wavestitch.surprise": "1"}, 42)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("sequence", "7_0"),
        ("sequence", "٧"),
        ("positions", "[1]"),
        ("positions", '{"0": [true]}'),
        ("positions", '{"0": ["12"]}'),
        ("positions", '{"0": [-1, null, null]}'),
        ("positions", '{"0": [1e3, null, null]}'),
        ("positions", '{"0": [1, 2, 3, 4]}'),
        ("skipped", "[[0, 3]]"),
        ("mean-record-bytes", "nan"),
        ("kind", "coup"),
        ("held", "[1]"),
        ("held", '[1,2,3,"d",[]]'),
    ],
)
def test_a_head_that_was_changed_by_hand_is_refused_with_a_sentence(key: str, said: str) -> None:
    with pytest.raises(BadInput, match=r"the head in snapshot 42"):
        head_from_properties({**HEAD.to_properties(), f"wavestitch.{key}": said}, 42)


def test_the_next_head_keeps_positions_and_forgets_plan_and_decision() -> None:
    after = HEAD.next(kind=HeadKind.REWIND, generation=3)
    assert (after.sequence, after.generation, after.plan_id, after.decision) == (8, 3, "", "")
    assert after.positions == HEAD.positions
    assert after.skipped == HEAD.skipped


STANDS, DECIDES = AtGate("a" * 32, True), AtGate("b" * 32, False)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({}, (STANDS, DECIDES)),
        ({"plan_id": STANDS.plan_id}, (DECIDES,)),
        ({"plan_id": DECIDES.plan_id}, (STANDS,)),
        ({"generation": 3}, ()),
        ({"generation": 2}, (STANDS, DECIDES)),
        ({"positions": {0: at(13), 11: at(0)}}, (DECIDES,)),
        ({"positions": {0: at(12, seen_ms=5), 11: at(0)}}, (STANDS, DECIDES)),
        ({"positions": {0: at(13), 11: at(0)}, "plan_id": DECIDES.plan_id}, ()),
        ({"at_gate": (DECIDES,)}, (DECIDES,)),
    ],
)
def test_a_batch_stands_at_its_gate_until_it_commits_or_is_fenced(
    change: dict[str, Any], left: tuple[AtGate, ...]
) -> None:
    assert replace(HEAD, at_gate=(STANDS, DECIDES)).next(**change).at_gate == left


@pytest.mark.parametrize(
    ("generation", "sequence", "believed"), [(12, 17, True), (13, 17, False), (12, 18, False), (1, 1, True)]
)
def test_a_tag_is_believed_as_far_as_somebody_may_have_counted(generation: int, sequence: int, believed: bool) -> None:
    assert is_believable(Tag("ab", Generation(generation), sequence), HEAD, within=10) is believed
    nobody = Tag("ab", Generation(generation - 2), sequence - 7)
    assert is_believable(nobody, None, within=10) is believed


def test_a_head_that_stands_before_the_beginning_or_at_no_plans_gate_is_not_written() -> None:
    wrong: list[dict[str, Any]] = [{"positions": {0: at(-1)}}, {"at_gate": (STANDS, AtGate("x", True))}]
    for change in (*wrong, {"sequence": -1}, {"generation": -1}):
        with pytest.raises(BadInput, match="a head that cannot be is not written"):
            replace(HEAD, **change).to_properties()


@given(st.uuids(), st.integers(-(2**70), 2**70) | NEAR, st.integers(-(2**70), 2**70) | NEAR)
def test_every_head_that_can_be_written_has_a_tag_that_is_read(table: UUID, generation: int, sequence: int) -> None:
    head = replace(HEAD, generation=Generation(generation), sequence=sequence)
    if not (0 <= generation < 10**18 and 0 <= sequence < 10**18):
        with pytest.raises(BadInput, match="a head that cannot be is not written"):
            head.to_properties()
        return
    assert head_from_properties(head.to_properties(), 42) == head
    assert parse_tag(head.tag(str(table)).encode()) == head.tag(str(table))


@given(NEAR, NEAR)
def test_no_forged_tag_leads_beyond_what_can_be_written(generation: int, sequence: int) -> None:
    head, table = HEAD, "ab"
    for _ in range(3):
        tag = Tag(table, Generation(generation), sequence)
        group = {Partition(0): GroupOffset(HEAD.positions[Partition(0)].next_offset, tag.encode())}
        after = next_generation(head, group, table=table)
        assert head.generation < after <= head.generation + 10**9 + 1001
        head = replace(head, generation=after)
        assert parse_tag(head.tag(table).encode()) == head.tag(table)
        assert left_alone(head, group, table=table, answered=group) == set()


@given(st.uuids(), st.integers(0, 10**18 - 1), st.integers(0, 10**18 - 1))
def test_our_tag_is_recognised_and_short(table: UUID, generation: int, sequence: int) -> None:
    text = Tag(str(table), Generation(generation), sequence).encode()
    assert parse_tag(text) == (str(table), generation, sequence)
    assert is_ours(text)
    assert len(text.encode()) <= 95


@given(st.text(max_size=60))
def test_foreign_metadata_never_breaks_the_parser(text: str) -> None:
    found = parse_tag(text)
    assert found is None or (is_ours(text) and found.encode() == text)


@pytest.mark.parametrize(
    "text",
    [
        "wavestitch/1 g1 s1 ab",
        "wavestitch/3 ab g1 s1",
        "wavestitch/2 ab gx s1",
        "wavestitch/2 ab g1",
        "wavestitch/2 ab g² s1",
    ],
)
def test_a_tag_of_another_version_is_ours_and_not_understood(text: str) -> None:
    assert parse_tag(text) is None
    assert is_ours(text)


@pytest.mark.parametrize("text", ["", None, "dba was here", "Wavestitch/2 ab g1 s1"])
def test_what_is_not_our_tag_is_foreign(text: str | None) -> None:
    assert parse_tag(text) is None
    assert not is_ours(text)


def watermark(seen: list[int | None], *, previous: int = 0, clock: int = 1_000_000, idle: int = 1000) -> int:
    positions = {Partition(p): Position(Offset(1), EpochMs(ms)) for p, ms in enumerate(seen)}
    return advance_watermark(positions, previous_ms=EpochMs(previous), clock_ms=EpochMs(clock), idle=Milliseconds(idle))


def test_the_watermark_is_the_least_of_the_active_partitions() -> None:
    assert watermark([999_900, 999_500]) == 999_500


def test_an_idle_partition_does_not_hold_the_watermark_back() -> None:
    assert watermark([999_900, 5]) == 999_900


def test_a_partition_is_idle_only_after_that_time() -> None:
    assert watermark([999_900, 999_000]) == 999_000
    assert watermark([999_900, 998_999]) == 999_900


def test_a_record_from_the_future_cannot_pass_the_clock() -> None:
    assert watermark([9_999_999_999]) == 1_000_000


def test_the_watermark_never_goes_back() -> None:
    assert watermark([999_500], previous=999_800) == 999_800


def test_when_all_are_idle_it_follows_the_clock_at_that_distance() -> None:
    assert watermark([5, 7]) == 999_000


def test_without_any_record_it_stays() -> None:
    assert watermark([None, None], previous=17) == 17


@pytest.mark.parametrize(
    ("clock", "newest", "then"),
    [(2_000_000, 5, 1_000_000), (900_000, 5, 900_000), (900_000, 950_000, 950_000), (5, 2_000_000, 1_000_000)],
    ids=["not ahead", "ahead of the clock", "ahead of a clock that is behind the records", "a clock at its beginning"],
)
def test_a_watermark_that_is_ahead_of_clock_and_records_is_lowered_to_them(clock: int, newest: int, then: int) -> None:
    positions = {Partition(0): Position(Offset(9), EpochMs(newest)), Partition(1): Position(Offset(0), None)}
    head = replace(HEAD, watermark_ms=EpochMs(1_000_000), positions=positions)
    assert head.as_of(EpochMs(clock)) == replace(head, watermark_ms=EpochMs(then))
{"file": "tests/unit/test_protocol_examples.py", "digest": "a5599a41594b5e27", "seconds": 0.59, "functions": {"wavestitch/contracts/disagreement.py": ["_doubt", "find_disagreement"], "wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/offset_range.py": ["OffsetRange.size"], "wavestitch/contracts/plan.py": ["Plan.moves_positions", "Plan.sealed", "_as_first_said"], "wavestitch/contracts/position.py": ["Head._still_at_gate", "Head.next", "Head.version", "Tag.version", "_offsets", "is_believable", "is_ours", "parse_tag"], "wavestitch/contracts/protocol.py": ["_is_of", "_others", "_refuse_forward", "_refuse_reset", "check_fence", "is_in_history", "left_alone", "may_project", "moved_position", "named", "reconcile", "still_skipped"], "wavestitch/contracts/quantities.py": ["following"], "wavestitch/contracts/versioned.py": ["Versioned._dump", "Versioned.content"]}}
{"file": "tests/unit/test_quantities.py", "digest": "0bece53f2a736e79", "seconds": 0.03, "functions": {"wavestitch/contracts/offset_range.py": ["OffsetRange.size"], "wavestitch/contracts/stop_rule.py": ["StopRule.__init__", "StopRule.admit", "StopRule.fail"]}}
{"file": "tests/unit/test_raw_batches.py", "digest": "9136dadab0712c4c", "seconds": 2.68, "functions": {"consumers/batch_scan.py": ["_record", "_stamp", "_unreadable", "records_of"], "consumers/raw_message.py": ["RawMessage.offset"], "wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/record_batches.py": ["AllBut.__contains__", "AllBut.__init__", "AllBut.__iter__", "AllBut.__len__"]}}
{"file": "tests/unit/test_raw_headers.py", "digest": "6c24098885da0f3b", "seconds": 4.02, "functions": {"wavestitch/contracts/raw_headers.py": ["_part", "decode_raw_headers", "encode_raw_headers", "header_bytes"]}}
{"file": "tests/unit/test_read_job.py", "digest": "5576b6c7b94abc98", "seconds": 0.34, "functions": {"consumers/byte_budget.py": ["budget_of"], "consumers/read_job.py": ["word_from_line", "word_to_line"], "consumers/unit_processes.py": ["UnitProcesses.__enter__", "UnitProcesses.__exit__", "UnitProcesses._bury", "UnitProcesses._end", "UnitProcesses._give", "UnitProcesses._listen", "UnitProcesses.read", "_Child.end", "_word_of"], "wavestitch/contracts/batch_size.py": ["unit_budget"], "wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/offset_range.py": ["OffsetRange.__str__", "OffsetRange.size"], "wavestitch/contracts/plan.py": ["Plan.budget", "Plan.records", "Plan.sealed", "Plan.to_json", "_as_first_said"], "wavestitch/contracts/versioned.py": ["Versioned.<lambda>", "Versioned._adapter", "Versioned._current", "Versioned._dump", "Versioned.content", "Versioned.line", "Versioned.of", "Versioned.read", "Versioned.text", "_first", "_unsaid", "check_format"], "wavestitch/contracts/way_past.py": ["past_unknown_place"]}}
{"file": "tests/unit/test_read_places.py", "digest": "8ce1315fa70f9cf1", "seconds": 0.28, "functions": {"wavestitch/contracts/chunk_table.py": ["ChunkTable.is_in_order", "ChunkTable.of", "_numbered"], "wavestitch/contracts/read_places.py": ["ReadPlaces.__contains__", "ReadPlaces.__init__", "ReadPlaces.__iter__", "ReadPlaces.__len__", "ReadPlaces.spans"]}}
{"file": "tests/unit/test_readers.py", "digest": "5fe918a71adacb75", "seconds": 4.02, "functions": {"wavestitch/contracts/chunk_metadata.py": ["Metadata.sample_bytes", "_each_once", "_interpret", "_number", "_parse", "_read", "_remember", "_text", "parse_metadata", "show"], "wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"]}}
{"file": "tests/unit/test_readers_that_die.py", "digest": "4f327c7c515770e4", "seconds": 1.8, "functions": {"consumers/byte_budget.py": ["budget_of"], "consumers/read_job.py": ["word_from_line", "word_to_line"], "consumers/unit_processes.py": ["UnitProcesses.__enter__", "UnitProcesses.__exit__", "UnitProcesses._bury", "UnitProcesses._end", "UnitProcesses._give", "UnitProcesses._listen", "UnitProcesses.read", "_Child.end", "_word_of"], "consumers/unit_reader.py": ["ProgressMeter.__init__", "ProgressMeter.close", "_worth_starting", "read_units"], "wavestitch/contracts/batch_size.py": ["unit_budget", "worth_starting"], "wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/offset_range.py": ["OffsetRange.__str__", "OffsetRange.size"], "wavestitch/contracts/plan.py": ["Plan.budget", "Plan.records", "Plan.to_json"], "wavestitch/contracts/receipt.py": ["Receipt.to_json", "_impossible", "receipt_from_json"], "wavestitch/contracts/versioned.py": ["Versioned.<lambda>", "Versioned._adapter", "Versioned._current", "Versioned._dump", "Versioned.content", "Versioned.line", "Versioned.of", "Versioned.read", "Versioned.text", "_unsaid", "check_format"], "wavestitch/contracts/way_past.py": ["past_unknown_place"]}}
{"file": "tests/unit/test_record_accounts.py", "digest": "dbae14e270db55a2", "seconds": 0.48, "functions": {"wavestitch/contracts/assembly.py": ["ChunkFacts.coordinate", "ChunkFacts.identity", "ChunkFacts.key", "no_chunk"], "wavestitch/contracts/held.py": ["HeldChunk.key", "PublishedWaveform.has"], "wavestitch/contracts/offset_range.py": ["OffsetRange.size", "joined", "without"], "wavestitch/contracts/record_accounts.py": ["Accounts.<lambda>", "_held_here", "_is_published", "_misplaced", "_pieces", "_size", "account", "is_record_of", "settled"]}}
{"file": "tests/unit/test_record_batches.py", "digest": "4593c872b39eb88e", "seconds": 0.49, "functions": {"wavestitch/contracts/record_batches.py": ["AllBut.__contains__", "AllBut.__init__", "AllBut.__iter__", "AllBut.__len__", "told_apart"]}}
{"file": "tests/unit/test_record_columns.py", "digest": "6a46810a392588a5", "seconds": 40.04, "functions": {"consumers/arrow_columns.py": ["_whole_column", "ends_to_offsets", "to_column", "validity_of"], "consumers/batch_scan.py": ["Delivery.__post_init__", "Delivery._together", "Delivery.add", "Delivery.flush", "Delivery.one_by_one", "_bytes", "_one_of_many", "_parts", "_record", "_side_by_side", "_stamp", "_wrapped", "in_columns", "records_of"], "consumers/byte_budget.py": ["ByteBudget._spent", "ByteBudget._taken", "ByteBudget.add", "ByteBudget.add_run", "ByteBudget.keep", "_way_on"], "consumers/landed_file.py": ["besides_payload"], "consumers/landed_rows.py": ["RowsWhole.__init__", "RowsWhole.close", "RowsWhole.finish", "RowsWhole.write", "landed_rows"], "consumers/landing.py": ["LandingWriter.__enter__", "LandingWriter.__exit__", "LandingWriter.__init__", "LandingWriter._count", "LandingWriter._discard", "LandingWriter._flush", "LandingWriter._publish", "LandingWriter.add_chunk", "LandingWriter.add_rejection", "LandingWriter.add_run", "LandingWriter.finish"], "consumers/pending_rows.py": ["PendingRows.__init__", "PendingRows.__len__", "PendingRows._add_row", "PendingRows._append", "PendingRows._build", "PendingRows.add_chunk", "PendingRows.add_rejection", "PendingRows.add_run", "PendingRows.clear", "PendingRows.is_full", "PendingRows.size", "PendingRows.to_batch", "RowRun.of"], "consumers/raw_message.py": ["RawMessage.__len__", "RawMessage.headers", "RawMessage.key", "RawMessage.leader_epoch", "RawMessage.timestamp", "RawMessage.value", "message_at"], "consumers/record_sink.py": ["RecordSink.__init__", "RecordSink._in_place", "RecordSink._kept_in_memory", "RecordSink._landed_together", "RecordSink._parse", "RecordSink.epoch", "RecordSink.land", "RecordSink.land_columns", "_runs"], "wavestitch/contracts/batch_size.py": ["ReaderStop.mean"], "wavestitch/contracts/chunk_columns.py": ["ChunkColumns.part", "_aside", "_claims_of", "_crcs", "_digits", "_is_text", "_known_of", "_limit", "_metadata_of", "_pieces", "_sequence_number", "_shared", "_shared_of", "_values", "parse_chunks"], "wavestitch/contracts/chunk_header.py": ["_Refused.__init__", "_begun_digest", "_check_proof", "_checked_metadata", "_claims", "_decimal", "_is_decimal", "_parse_any", "_parse_claims", "_parse_usual", "_required", "_waveform_id", "before_digest", "chunk_crc", "claims_with", "crc_of_id", "is_digest", "parse_chunk", "piece_digest", "record_digest", "sequence_number", "shared_claims"], "wavestitch/contracts/chunk_metadata.py": ["Metadata.sample_bytes", "_each_once", "_interpret", "_number", "_parse", "_read", "_remember", "_text", "parse_metadata", "show"], "wavestitch/contracts/chunk_proof.py": ["ChunkProof.header"], "wavestitch/contracts/errors.py": ["WavestitchError.__init__"], "wavestitch/contracts/harmless.py": ["harmless", "is_plain"], "wavestitch/contracts/holes.py": ["HoleFinder.__init__", "HoleFinder.add", "HoleFinder.add_run", "HoleFinder.close"], "wavestitch/contracts/id_partitions.py": ["IdBinding._find", "IdBinding.binds", "IdBinding.judge", "IdBinding.of", "_listed"], "wavestitch/contracts/metadata_columns.py": ["MetadataColumns.of_each", "_Found._alike", "_Found.take", "read_texts"], "wavestitch/contracts/offset_range.py": ["OffsetRange.size"], "wavestitch/contracts/plan.py": ["Plan.moves_positions", "Plan.records", "Plan.sealed", "_as_first_said"], "wavestitch/contracts/raw_headers.py": ["encode_raw_headers", "header_bytes"], "wavestitch/contracts/record_columns.py": ["Header.between", "Places.at", "RecordColumns.__len__", "RecordColumns.between", "RecordColumns.headers_of", "RecordColumns.text", "_bounds", "_bytes", "_fields", "_follow", "_none", "_numbers", "_said_by_all", "_spread", "bytes_at", "find_records", "number_texts"], "wavestitch/contracts/rows.py": ["texts_once"], "wavestitch/contracts/versioned.py": ["Versioned._adapter", "Versioned._dump", "Versioned.content", "Versioned.text"]}}
