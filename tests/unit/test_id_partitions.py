"""Which partitions an id is bound to: asked once of each id, however many chunks of however many waveforms ask."""

from __future__ import annotations

import pytest

from wavestitch.contracts import id_partitions
from wavestitch.contracts.id_partitions import ANYWHERE, IdBinding, IdPartitions
from wavestitch.contracts.murmur2 import key_partition


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
