"""What is told of offsets by record batches: which of them are missing, and whose records were aborted."""

from __future__ import annotations

import tracemalloc

import pytest

from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.record_batches import AbortedTransaction, AllBut, Control, RecordBatch, told_apart


def batch(start: int, end: int, whose: int = 7, *, control: Control | None = None, plain: bool = False) -> RecordBatch:
    return RecordBatch(Offset(start), Offset(end), whose, not plain, control)


_ODD: tuple[object, ...] = (None, "4")


def aborted(first: int, whose: int = 7) -> AbortedTransaction:
    return AbortedTransaction(whose, Offset(first))


ABORT, COMMIT, OTHER = Control.ABORT, Control.COMMIT, Control.OTHER


@pytest.mark.parametrize(
    ("batches", "transactions", "found"),
    [
        ([], [aborted(0)], []),
        ([batch(0, 3), batch(3, 4, control=COMMIT)], [], [False, False]),
        ([batch(0, 3), batch(3, 4, control=ABORT)], [aborted(0)], [True, False]),
        # Behind its end the same producer's next transaction is another one.
        ([batch(0, 3), batch(3, 4, control=ABORT), batch(4, 6)], [aborted(0)], [True, False, False]),
        # It begins with its first offset, be that the last one of a batch, and not with the one before.
        ([batch(0, 3), batch(3, 5)], [aborted(3)], [False, True]),
        ([batch(0, 3)], [aborted(2)], [True]),
        # Somebody else's records, and those that are in no transaction.
        ([batch(0, 3, 7), batch(3, 6, 8), batch(6, 7, 7, plain=True)], [aborted(0)], [True, False, False]),
        ([batch(0, 3), batch(3, 4, 8, control=ABORT), batch(4, 6)], [aborted(0)], [True, False, True]),
        # What a broker writes for itself is no record of anybody's, and ends nothing.
        ([batch(0, 3), batch(3, 4, control=OTHER), batch(4, 6)], [aborted(0)], [True, False, True]),
        # In the order of offsets, in whatever order the broker names them.
        ([batch(0, 3, 8), batch(3, 6, 7)], [aborted(3, 7), aborted(0, 8)], [True, True]),
        ([batch(0, 3, 8), batch(3, 6, 7)], [aborted(0, 8), aborted(3, 7)], [True, True]),
        ([batch(0, 3, 7), batch(3, 6, 8)], [aborted(0, 7), aborted(9, 8)], [True, False]),
    ],
)
def test_aborted_is_what_lies_between_the_begin_of_a_transaction_and_its_end(
    batches: list[RecordBatch], transactions: list[AbortedTransaction], found: list[bool]
) -> None:
    assert list(told_apart(batches, transactions)) == list(zip(batches, found, strict=True))


@pytest.mark.parametrize(
    ("present", "gaps"),
    [
        ([], [3, 4, 5, 6, 7]),
        ([3, 4, 5, 6, 7], []),
        ([4], [3, 5, 6, 7]),
        ([3, 7], [4, 5, 6]),
        ([5, 6], [3, 4, 7]),
    ],
)
def test_missing_are_the_offsets_that_nothing_is_said_of(present: list[int], gaps: list[int]) -> None:
    found = AllBut(3, 8, present)
    assert list(found) == gaps
    assert len(found) == len(gaps)
    assert [offset for offset in range(-1, 12) if offset in found] == gaps
    assert not any(odd in found for odd in _ODD)


def test_a_batch_without_gaps_takes_no_memory_for_its_offsets() -> None:
    tracemalloc.start()
    try:
        whole = AllBut(0, 50_000, range(50_000))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not whole
    assert taken < 10_000
