"""What the head says of the held table is the same however its files are listed and its chunks were counted."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from tests.builders.table_rows import META, facts
from wavestitch.contracts.errors import Altered
from wavestitch.contracts.held_mark import (
    AFTER_DISCARD,
    HELD_FORMAT,
    HeldFile,
    HeldMark,
    check_mark,
    held_bytes,
    mark_of,
)

FILES = (HeldFile("b", 2, 20, "open"), HeldFile("a", 3, 30, "null_value"), HeldFile("c", 4, 40, "conflict"))
COUNTS = {"open": 2, "conflict": 1, "discarded": 0, "null_value": 4}


def mark() -> HeldMark:
    return mark_of(7, FILES, COUNTS, 11)


def test_a_mark_says_the_sums_of_its_files_and_counts_what_there_is() -> None:
    found = mark()
    assert (found.snapshot_id, found.rows, found.bytes, found.junk_bytes, found.chunk_bytes) == (7, 9, 90, 30, 11)
    assert list(found.counts.items()) == [("conflict", 1), ("null_value", 4), ("open", 2)]
    assert (found.chunks, found.waveform_rows) == (7, 3)


def test_a_mark_is_the_same_in_whatever_order_files_are_listed() -> None:
    for files in permutations(FILES):
        assert mark_of(7, files, COUNTS, 11) == mark()
        check_mark(mark(), files, table="ecg.held")


@pytest.mark.parametrize(
    "files",
    [
        FILES[:2],
        (*FILES, FILES[0]),
        (*FILES[:2], FILES[2]._replace(name="d")),
        (*FILES[:2], FILES[2]._replace(reason="parked")),
        (FILES[0]._replace(rows=3), FILES[1]._replace(rows=2), FILES[2]),
        (FILES[0]._replace(bytes=30), FILES[1]._replace(bytes=20), FILES[2]),
    ],
)
def test_other_files_are_not_those_that_the_head_vouches_for(files: tuple[HeldFile, ...]) -> None:
    with pytest.raises(Altered, match=r"snapshot 7 of table ecg\.held has .*the head vouches for 9 rows in 90 bytes"):
        check_mark(mark(), files, table="ecg.held")


def test_a_mark_of_another_format_vouches_for_the_same_files() -> None:
    check_mark(replace(mark(), format=HELD_FORMAT + 1), FILES, table="ecg.held")


def test_a_mark_that_names_no_chunk_counts_none() -> None:
    found = HeldMark(7, 0, 0, "")
    assert (found.counts, found.chunk_bytes, found.junk_bytes, found.format) == ({}, 0, 0, HELD_FORMAT)
    assert (found.chunks, found.waveform_rows, HELD_FORMAT) == (0, 0, 1)


@pytest.mark.parametrize(
    ("counted_as", "size"),
    [("open", 4 + len(META)), ("conflict", 4 + len(META)), (AFTER_DISCARD, 4 + len(META)), ("discarded", 0)],
)
def test_a_chunk_counts_for_its_bytes_and_metadata_until_somebody_discards_it(counted_as: str, size: int) -> None:
    chunk = facts(0, 1, b"1234")
    assert held_bytes(chunk, counted_as) == size
    assert held_bytes(chunk._replace(meta=None), counted_as) == (4 if size else 0)
    assert held_bytes(chunk._replace(reason="corrupt"), counted_as) == 0
    assert held_bytes(chunk._replace(reason="corrupt"), "corrupt") == 0
