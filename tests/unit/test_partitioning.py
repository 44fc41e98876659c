"""Partitions: Java's own hash, and waveforms that stay in one place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.recordings import bare_record
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.murmur2 import key_partition, murmur2
from wavestitch.producers.chunking import ChunkRecord
from wavestitch.producers.partitioning import Strategy, choose_partitions


def partitions_of(strategy: Strategy, chunks: list[ChunkRecord], partitions: int) -> list[int | None]:
    return [p for _, p in choose_partitions(strategy, chunks, partitions=partitions)]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
        ("1", -1993445489),
        ("12", 126087238),
        ("123", -267702483),
        ("1234", -1614185708),
        ("12345", -1188365604),
    ],
)
def test_murmur2_is_what_java_computes(key: str, expected: int) -> None:
    assert murmur2(key.encode()) == expected


@pytest.mark.parametrize(
    ("key", "partitions", "expected"), [("foobar", 12, 1357151166 % 12), ("abc", 7, 479470107 % 7)]
)
def test_a_negative_hash_loses_its_sign_bit_and_is_not_negated(key: str, partitions: int, expected: int) -> None:
    assert key_partition(key.encode(), partitions) == expected


def test_key_hash_sends_every_chunk_of_an_id_to_java_s_partition() -> None:
    chunks = [bare_record("foobar"), bare_record("abc"), bare_record("foobar")]
    assert partitions_of(Strategy.KEY_HASH, chunks, 12) == [1357151166 % 12, 479470107 % 12, 1357151166 % 12]


def test_round_robin_tears_a_waveform_over_all_partitions() -> None:
    assert partitions_of(Strategy.ROUND_ROBIN, [bare_record("a")] * 5, 3) == [0, 1, 2, 0, 1]


def test_null_key_sticky_leaves_the_choice_to_the_client() -> None:
    assert partitions_of(Strategy.NULL_KEY_STICKY, [bare_record("a", keyed=False)] * 3, 4) == [None, None, None]


@given(
    sizes=st.lists(st.integers(1, 50), min_size=1, max_size=40),
    partitions=st.integers(1, 8),
    pieces=st.integers(1, 5),
)
def test_sticky_keeps_each_waveform_in_one_partition_and_balances_bytes(
    sizes: list[int], partitions: int, pieces: int
) -> None:
    chunks = [bare_record(f"w{i}", size) for i, size in enumerate(sizes) for _ in range(pieces)]
    placed = list(choose_partitions(Strategy.WAVEFORM_STICKY, chunks, partitions=partitions))
    assert [c for c, _ in placed] == chunks
    where: dict[str, set[int | None]] = {}
    load = [0] * partitions
    for c, p in placed:
        assert p is not None
        where.setdefault(c.waveform_id, set()).add(p)
        load[p] += len(c.value)
    assert {len(found) for found in where.values()} == {1}
    assert max(load) - min(load) <= max(sizes) * pieces
    assert placed == list(choose_partitions(Strategy.WAVEFORM_STICKY, chunks, partitions=partitions))


def test_sticky_producers_of_one_waveform_each_do_not_all_choose_the_same_partition() -> None:
    first = {partitions_of(Strategy.WAVEFORM_STICKY, [bare_record(f"sensor-{i}")], 4)[0] for i in range(50)}
    assert first == {0, 1, 2, 3}


def test_a_waveform_that_comes_back_later_goes_where_it_was() -> None:
    found = partitions_of(
        Strategy.WAVEFORM_STICKY, [bare_record("a", 100), bare_record("b", 10), bare_record("a", 100)], 2
    )
    assert found[0] == found[2] != found[1]


@pytest.mark.parametrize("strategy", list(Strategy))
def test_a_topic_without_partitions_is_refused(strategy: Strategy) -> None:
    with pytest.raises(BadInput, match="at least one"):
        choose_partitions(strategy, [], partitions=0)


def test_a_key_that_does_not_fit_the_strategy_is_refused() -> None:
    with pytest.raises(BadInput, match="no key to hash"):
        partitions_of(Strategy.KEY_HASH, [bare_record("a", keyed=False)], 2)
    with pytest.raises(BadInput, match="would hash it"):
        partitions_of(Strategy.NULL_KEY_STICKY, [bare_record("a")], 2)
    assert [s for s in Strategy if not s.keyed] == [Strategy.NULL_KEY_STICKY]
