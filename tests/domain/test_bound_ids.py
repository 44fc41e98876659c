"""Who publishes another's id first: with ids that the stream binds to partitions the owner is not locked out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.recordings import bare_record
from tests.builders.records import metadata
from tests.builders.sending import send_chunk
from tests.fakes.batch import Bench, run_batch
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.plan import PlanRequest
from wavestitch.contracts.chunk_header import Chunk, Rejection, encode_headers, parse_chunk
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.contracts.id_partitions import ANYWHERE, IdBinding, IdPartitions
from wavestitch.contracts.murmur2 import key_partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Stream, parse_stream
from wavestitch.producers.partitioning import Strategy, choose_partitions

T = 1_767_614_400_000
META = metadata(T)
OWNED, STOLEN = (b"\1\0" * 4, b"\2\0" * 4), (b"\6\0" * 4, b"\7\0" * 4)
WARDS = {"prefixes": {"ward-a/": [0], "ward-b/": [1], "ward-b/icu/": [0, 1]}}


class World:
    def __init__(self, **declared: Any) -> None:
        self.stream = Stream.model_validate({"name": "ecg", "topic": "waves", "group": "g", **declared})
        self.bench = Bench(FakeLog("waves", 2))
        self.now_ms = T

    def send(self, partition: int, wid: str, values: tuple[bytes, ...], *seqs: int) -> None:
        for seq in seqs or range(len(values)):
            send_chunk(
                self.bench.log, wid, seq, values[seq], at_ms=T, meta=META, count=len(values), partition=partition
            )

    def ingest(self) -> Any:
        self.now_ms += 1
        return run_batch(self.bench, self.stream, PlanRequest(), clock_ms=self.now_ms)

    def published(self) -> dict[str, bytes]:
        return {row.waveform_id: row.samples for _, row in self.bench.tables.rows}

    def held(self) -> set[tuple[int, str]]:
        return {(h.held.chunk.partition, h.held.reason.value) for h in self.bench.tables.held_rows()}


@pytest.mark.parametrize("first", ["stranger", "owner", "together", "a part of each"])
def test_an_id_that_a_stranger_publishes_in_another_partition_is_published_as_its_owner_sent_it(first: str) -> None:
    world = World(id_partitions=WARDS)
    if first == "a part of each":
        world.send(1, "ward-a/7", STOLEN, 0)
        world.send(0, "ward-a/7", OWNED, 1)
        world.ingest()
    if first == "stranger":
        world.send(1, "ward-a/7", STOLEN)
        world.ingest()
        assert world.published() == {}
    world.send(0, "ward-a/7", OWNED)
    world.send(1, "ward-b/3", STOLEN)
    if first == "owner":
        world.ingest()
    world.send(1, "ward-a/7", STOLEN)
    world.ingest()
    assert world.published() == {"ward-a/7": b"".join(OWNED), "ward-b/3": b"".join(STOLEN)}
    assert world.held() - {(0, "open")} == {(1, "wrong_partition")}


def test_without_a_binding_the_first_one_has_the_id_and_its_owner_is_in_conflict() -> None:
    world = World()
    world.send(1, "ward-a/7", STOLEN)
    world.ingest()
    world.send(0, "ward-a/7", OWNED)
    world.ingest()
    assert world.published() == {"ward-a/7": b"".join(STOLEN)}
    assert {reason for _, reason in world.held()} == {"conflict"}


def test_an_id_that_no_prefix_fits_is_bound_to_no_partition_and_the_longest_prefix_counts() -> None:
    ids = IdBinding(IdPartitions.model_validate(WARDS))
    assert [ids.of(i) for i in ("ward-a/", "ward-b/icu/1", "ward-b/icu", "ward-c/1", "")] == [
        frozenset({0}),
        frozenset({0, 1}),
        frozenset({1}),
        frozenset(),
        frozenset(),
    ]
    world = World(id_partitions=WARDS)
    world.send(0, "elsewhere", OWNED)
    world.ingest()
    assert (world.published(), world.held()) == ({}, {(0, "wrong_partition")})


@given(st.text(min_size=1, max_size=30), st.integers(1, 64), st.integers(1, 64))
def test_hashed_ids_are_where_kafka_s_default_partitioner_puts_their_key(wid: str, now: int, before: int) -> None:
    homes = {key_partition(wid.encode(), n) for n in (now, before)}
    ids = IdBinding(IdPartitions(hashed_over=(now, before)))
    assert ids.of(wid) == homes
    headers = encode_headers(waveform_id=wid, seq=0, count=1, meta=META.decode(), value=b"ab", digest=None)
    found = parse_chunk(wid.encode(), headers, b"ab")
    assert isinstance(found, Chunk)
    for partition in range(max(now, before)):
        judged = ids.judge(found, partition)
        assert ANYWHERE.judge(found, partition) is found
        if partition in homes:
            assert judged is found
        else:
            assert isinstance(judged, Rejection)
            assert (judged.reason, judged.waveform_id, judged.seq) == (Reason.WRONG_PARTITION, wid, 0)
            assert f"came in partition {partition}; the stream binds its id to partition" in judged.evidence
    junk = Rejection(Reason.CORRUPT, "before")
    assert ids.judge(junk, 99) is junk


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({"hashed_over": [4]}, r"hashed over 4 partitions and the topic has 2; add 2 to id_partitions\.hashed_over"),
        ({"prefixes": {"a": [0, 2]}}, "bound to partition 2 and the topic has 2, counted from 0"),
    ],
)
def test_a_binding_that_does_not_fit_the_topic_is_refused_before_anything_is_read(
    declared: dict[str, Any], says: str
) -> None:
    world = World(id_partitions=declared)
    world.send(0, "a", OWNED)
    with pytest.raises(Refused, match=says):
        world.ingest()


@pytest.mark.parametrize(
    "declared",
    [
        "{}",
        "{hashed_over: [1], prefixes: {a: [0]}}",
        "{hashed_over: [0]}",
        "{hashed_over: []}",
        "{prefixes: {a: []}}",
        "{prefixes: {a: [-1]}}",
        "{prefixes: {a: 0}}",
        "{by: prefix}",
        "[1]",
    ],
)
def test_a_binding_that_says_nothing_or_two_things_is_refused(declared: str) -> None:
    with pytest.raises(BadInput, match="id_partitions"):
        parse_stream(f"topic: t\ngroup: g\nid_partitions: {declared}\n", name="s")


def test_our_own_producer_sends_an_id_only_where_the_stream_lets_it_go() -> None:
    ids = IdBinding(IdPartitions.model_validate(WARDS))
    sent = ["ward-a/1", "ward-a/2", "ward-b/icu/1", "ward-b/icu/2", "ward-b/1"]
    placed = choose_partitions(Strategy.WAVEFORM_STICKY, map(bare_record, sent), partitions=2, ids=ids)
    assert [p for _, p in placed] == [0, 0, 1, 1, 1]
    with pytest.raises(BadInput, match="let 'elsewhere' go to no partition"):
        list(choose_partitions(Strategy.WAVEFORM_STICKY, [bare_record("elsewhere")], partitions=2, ids=ids))
    for strategy in set(Strategy) - {Strategy.WAVEFORM_STICKY}:
        with pytest.raises(BadInput, match="use waveform-sticky"):
            choose_partitions(strategy, [bare_record("ward-a/1")], partitions=2, ids=ids)
