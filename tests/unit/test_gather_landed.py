"""What readers have landed is put together: a slice without a file holds no chunk, and its offsets count as well."""

from __future__ import annotations

from tests.builders.plans import make_plan, make_receipt, make_slice
from wavestitch.batch.reassemble import gather_landed
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.holes import Hole, Proof
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.receipt import LandedSlice

P0 = Partition(0)


def test_only_slices_with_a_file_are_looked_into_and_the_holes_of_all_are_counted() -> None:
    empty = make_slice(
        5,
        7,
        file=None,
        records=0,
        payload_bytes=0,
        seen_ms=None,
        holes=[Hole(Offset(5), Offset(7), Proof.COMMIT_MARKER)],
    )
    landed = make_slice(7, 9, records=1, holes=[Hole(Offset(8), Offset(9), Proof.COMMIT_MARKER)], seen_ms=EpochMs(3))
    asked: list[tuple[LandedSlice, int]] = []

    def facts(one: LandedSlice, number: int) -> ChunkTable:
        asked.append((one, number))
        return ChunkTable.of([])

    found = gather_landed(make_plan(), [make_receipt(landed), make_receipt(empty)], facts)
    assert asked == [(landed, 0)]
    assert found.files == [landed.file]
    assert found.holes == {P0: 3}
    assert found.seen_ms == {P0: 3}
