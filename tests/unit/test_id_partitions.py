"""Which partitions an id is bound to: asked once of each id, however many chunks of however many waveforms ask."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.builders.chunks import NOON
from tests.builders.records import letter, metadata
from wavestitch.contracts import id_partitions
from wavestitch.contracts.chunk_header import MAX_ID_BYTES, Chunk, Rejection, parse_chunk
from wavestitch.contracts.id_partitions import ANYWHERE, IdBinding, IdPartitions
from wavestitch.contracts.murmur2 import key_partition
from wavestitch.contracts.reasons import Reason


def test_the_partitions_of_waveforms_that_arrive_among_each_other_are_worked_out_once_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bytes] = []

    def told(key: bytes, partitions: int) -> int:
        asked.append(key)
        return key_partition(key, partitions)

    monkeypatch.setattr(id_partitions, "key_partition", told)
    binding = IdBinding(IdPartitions(hashed_over=(7,)))
    ids = [f"w-{n}" for n in range(1000)]
    for _ in range(3):
        assert [binding.of(i) for i in ids] == [{key_partition(i.encode(), 7)} for i in ids]
    assert len(asked) == len(ids)


@pytest.mark.parametrize(
    ("waveform_id", "bound"), [("a/1", {0, 2}), ("a/b/1", {1}), ("a", set()), ("A/1", set()), ("", set())]
)
def test_an_id_belongs_to_the_partitions_of_its_longest_prefix_and_without_one_to_none(
    waveform_id: str, bound: set[int]
) -> None:
    binding = IdBinding(IdPartitions(prefixes={"a/": (0, 2), "a/b/": (1,)}))
    assert binding.binds
    assert binding.of(waveform_id) == bound
    assert (ANYWHERE.binds, ANYWHERE.of(waveform_id)) == (False, None)


@pytest.mark.parametrize(
    "declared",
    [
        {"hashed_over": [1]},
        {"hashed_over": [1 << 20] * 16},
        {"prefixes": {"": [0]}},
        {"prefixes": {"w/": [0, (1 << 20) - 1]}},
        {"prefixes": {f"{n}/": [n] for n in range(1000)}},
    ],
)
def test_ids_may_be_bound_to_any_partition_that_a_topic_can_have(declared: dict[str, Any]) -> None:
    assert IdPartitions.model_validate(declared).model_dump(mode="json", exclude_defaults=True) == declared


@pytest.mark.parametrize(
    "declared",
    [
        {},
        {"hashed_over": [1], "prefixes": {"w/": [0]}},
        {"hashed_over": [0]},
        {"hashed_over": [(1 << 20) + 1]},
        {"hashed_over": [1] * 17},
        {"prefixes": {"w/": [-1]}},
        {"prefixes": {"w/": [1 << 20]}},
        {"prefixes": {"w/": []}},
        {"prefixes": {f"{n}/": [n] for n in range(1001)}},
        {"hashed_over": [1], "else": 1},
        {"prefixes": {"x" * (MAX_ID_BYTES + 1): [0]}},
    ],
)
def test_what_binds_ids_to_nothing_that_a_topic_can_have_is_refused(declared: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        IdPartitions.model_validate(declared)


@pytest.mark.parametrize(
    ("declared", "partitions", "says"),
    [
        ({"hashed_over": [2, 3]}, 3, ""),
        ({"hashed_over": [2, 3]}, 4, "its ids are hashed over 2 or 3 partitions and the topic has 4; add 4 to"),
        ({"hashed_over": list(range(1, 11))}, 11, "hashed over 1 or 2 or 3 or 4 or 5 or 6 or 7 or 8 … partitions"),
        ({"prefixes": {"a/": [0], "b/": [1, 2]}}, 3, ""),
        ({"prefixes": {"a/": [0], "b/": [5, 3]}}, 3, "its ids are bound to partition 3 and the topic has 3, counted"),
    ],
)
def test_a_topic_of_other_partitions_does_not_fit(declared: dict[str, Any], partitions: int, says: str) -> None:
    problem = IdPartitions.model_validate(declared).problem(range(partitions))
    assert (problem is None) is (not says)
    assert says in (problem or "")


@pytest.mark.parametrize(
    ("waveform_id", "partition", "bound"),
    [
        ("b/1", 1, ""),
        ("b/1", 0, "partition 1 or 2"),
        ("b/a/1", 0, ""),
        ("b/a/1", 1, "partition 0"),
        ("c", 0, "no partition"),
    ],
)
def test_a_chunk_from_elsewhere_is_held_by_itself_and_says_where_its_id_belongs(
    waveform_id: str, partition: int, bound: str
) -> None:
    binding = IdBinding(IdPartitions(prefixes={"b/": (2, 1), "b/a/": (0,)}))
    record = letter(waveform_id, 3, b"\1\0", meta=metadata(NOON), count=9)
    chunk = parse_chunk(record.key, record.headers, record.value)
    assert isinstance(chunk, Chunk)
    evidence = f"it came in partition {partition}; the stream binds its id to {bound}"
    held = Rejection(Reason.WRONG_PARTITION, evidence, waveform_id, 3)
    assert binding.judge(chunk, partition) == (held if bound else chunk)
    assert ANYWHERE.judge(chunk, partition) is chunk
    assert binding.judge(held, partition) is held
