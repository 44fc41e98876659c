"""Landed payload that was damaged is told by its file, in the first line of what a library says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from tests.builders.table_rows import facts
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.chunk_header import bound_of, chunk_crc
from wavestitch.contracts.errors import Altered
from wavestitch.contracts.landed_payload import take_proven
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.rows import LANDING, texts_once


class Damaged:
    """A record batch in which a library finds this."""

    def __init__(self, said: str) -> None:
        self.said = said

    def validate(self, *, full: bool) -> None:
        assert full
        raise pa.ArrowInvalid(self.said)


@pytest.mark.parametrize(
    ("said", "shown"),
    [("offsets go back\nat /src/array.cc:12\nin f()", "offsets go back"), ("", ""), ("x" * 300, "x" * 200)],
)
def test_a_damaged_file_is_named_with_the_first_line_of_what_is_wrong_with_it(said: str, shown: str) -> None:
    batch: Any = Damaged(said)
    with pytest.raises(Altered) as error:
        take_proven("slice.arrow", batch, [0])
    assert error.value.message == (f"slice.arrow is damaged ({shown}); delete it and run the batch's read step again")
    assert error.value.facts == {"file": "slice.arrow"}


Landed = Sequence[tuple[ChunkFacts, bytes | None]]


def landed(rows: Landed) -> pa.RecordBatch:
    """As landing writes them: each text of metadata once."""
    texts, at = texts_once([c.meta for c, _ in rows])
    raw = {"raw_key": None, "raw_headers": None}
    return pa.RecordBatch.from_pylist(
        [
            {**c._asdict(), **raw, "payload": payload, "meta": text, "meta_row": row}
            for (c, payload), text, row in zip(rows, texts, at, strict=True)
        ],
        schema=LANDING,
    )


def sealed(chunk: ChunkFacts, payload: bytes) -> tuple[ChunkFacts, bytes]:
    """With the CRC of what it says."""
    assert chunk.waveform_id is not None
    assert chunk.seq is not None
    bound = bound_of(chunk.waveform_id, chunk.seq, chunk.count, meta=chunk.meta or "", digest=chunk.digest)
    return chunk._replace(crc=chunk_crc(bound, payload)), payload


GOOD: Landed = (
    (facts(0, 4, b"four"), b"four"),
    (facts(0, 5, b"five"), b"five"),
    (facts(0, 6, b"junk", reason=Reason.CORRUPT), b"junk"),
    (facts(0, 7, None, reason=Reason.NULL_VALUE), None),
    sealed(facts(0, 8, b"")._replace(count=9, digest="d" * 32), b"eight"),
    sealed(facts(0, 9, b"")._replace(meta=None), b"nine"),
    sealed(facts(0, 10, b"")._replace(meta='{"other": 1}'), b"ten"),
)


@pytest.mark.parametrize("rows", [[0], [1, 0], [6, 2, 4, 3, 5], [], list(range(7))])
def test_rows_are_taken_in_the_order_in_which_they_are_asked_for(rows: list[int]) -> None:
    taken = take_proven("slice.arrow", landed(GOOD), rows)
    assert taken["offset"].to_pylist() == [4 + row for row in rows]
    assert taken["payload"].to_pylist() == [GOOD[row][1] for row in rows]


@pytest.mark.parametrize(
    ("row", "changes", "payload"),
    [
        *((row, {}, b"other") for row in range(7)),
        *((row, {"crc": 1}, GOOD[row][1]) for row in range(7)),
        *((0, changed, b"four") for changed in ({"seq": 5}, {"waveform_id": "w1"}, {"meta": "{}"}, {"meta": None})),
        (4, {"count": 8}, b"eight"),
        (4, {"count": None}, b"eight"),
        (4, {"digest": "e" * 32}, b"eight"),
        (4, {"digest": None}, b"eight"),
        (0, {"reason": "corrupt"}, b"four"),
        (2, {"reason": None}, b"junk"),
        (0, {"seq": None}, b"four"),
        (0, {"waveform_id": None}, b"four"),
        (0, {"waveform_id": None, "seq": None, "crc": None}, b"four"),
    ],
)
def test_a_row_that_is_not_what_was_landed_is_named_by_its_offset(
    row: int, changes: dict[str, Any], payload: bytes | None
) -> None:
    spoilt = [*GOOD[:row], (GOOD[row][0]._replace(**changes), payload), *GOOD[row + 1 :]]
    batch = landed(spoilt)
    with pytest.raises(Altered, match=rf"^slice.arrow: the record of offset {4 + row} was landed with CRC ") as error:
        take_proven("slice.arrow", batch, [*range(7)])
    assert error.value.facts == {"file": "slice.arrow"}
    others = [n for n in range(7) if n != row]
    assert take_proven("slice.arrow", batch, others)["offset"].to_pylist() == [4 + n for n in others]


def test_the_crc_that_was_landed_and_the_one_that_is_there_are_said() -> None:
    chunk, payload = GOOD[0]
    for changes, was, now in (
        ({"seq": None, "crc": 0xAB}, "000000ab", "none"),
        ({"crc": None}, "none", f"{chunk.crc:08x}"),
    ):
        with pytest.raises(Altered, match=f"landed with CRC {was} and now has {now}; delete the file and run the"):
            take_proven("slice.arrow", landed([(chunk._replace(**changes), payload)]), [0])
