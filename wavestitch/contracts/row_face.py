"""What a row of the published table says, as digests: small enough to hold for each waveform of a range, and compared
column by column with a row that was stitched anew.

Samples are digested as they were sent: a column that was promoted or encoded anew says the same. Pure. Keeps I3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.rows import PUBLISHED_DOCS

_OF_THE_BATCH = ("plan_id", "topic_id")
_APART = ("waveform_id", "chunks", *_OF_THE_BATCH)
_ENDS = ("sample_min", "sample_max")
RECORD_TIMES = ("first_record_time", "last_record_time")
COMPARED = tuple(name for name in PUBLISHED_DOCS if name not in _APART)
"""The columns that a face has digests of, in order."""
_BYTES = 16


class RowPiece(NamedTuple):
    """Where a chunk of a row lay, and what it was."""

    topic_id: str
    partition: Partition
    offset: Offset
    length: int
    piece: bytes


@dataclass(frozen=True, slots=True)
class RowFace:
    """`columns`: a digest for each of `COMPARED`. `plan_id`: the batch that published it, or stitched it anew.
    `agrees`: with itself. Where its samples are longer or shorter than the chunks that it names, or these are not as
    many as it says, it was altered, whatever the log gives of it."""

    waveform_id: str
    plan_id: str
    columns: tuple[bytes, ...]
    pieces: tuple[RowPiece, ...]
    agrees: bool = True

    def unlike(self, other: RowFace) -> list[str]:
        """The columns in which two rows differ. Record times are those of the copies that were taken: they are
        compared where both took the same."""
        skipped = () if [p[:3] for p in self.pieces] == [p[:3] for p in other.pieces] else RECORD_TIMES
        pairs = zip(COMPARED, self.columns, other.columns, strict=True)
        found = [name for name, mine, theirs in pairs if mine != theirs and name not in skipped]
        same = [p[3:] for p in self.pieces] == [p[3:] for p in other.pieces]
        return found if same else [*found, "chunks"]


def face_of(row: Mapping[str, Any], sent: memoryview | bytes) -> RowFace:
    """`row`: all columns but `samples`, times as whole microseconds, chunks as dictionaries, in order. `sent`: its
    samples as they were sent."""
    # A row that an older version made may have -0.0 for the least of zeros of either sign.
    ends = {name: row[name] + 0.0 for name in _ENDS if row[name] is not None}
    about = {**row, **ends}
    said = (bytes(hashlib.sha256(sent).digest()) if name == "samples" else _spelled(about[name]) for name in COMPARED)
    chunks: Sequence[Mapping[str, Any]] = row["chunks"] or ()
    as_long = len(sent) == sum(chunk["length"] or 0 for chunk in chunks)
    return RowFace(
        waveform_id=row["waveform_id"],
        plan_id=str(row["plan_id"]),
        columns=tuple(hashlib.sha256(text).digest()[:_BYTES] for text in said),
        pieces=tuple(RowPiece(*(chunk[name] for name in RowPiece._fields)) for chunk in chunks),
        agrees=as_long and len(chunks) == row["chunk_count"],
    )


def _spelled(value: object) -> bytes:
    """Of floats every bit that matters: -0.0 is not 0.0."""
    return repr(value).encode("utf-8", "surrogatepass")
