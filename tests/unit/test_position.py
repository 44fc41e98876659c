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
