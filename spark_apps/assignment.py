"""Assignments: which rows of which landing files make which waveforms. One Arrow file per Spark task, write-once.

Holds all of the index that a task needs, so that a task reads nothing of the landing but payload. Never payload.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wavestitch.contracts.errors import Altered, BadInput
from wavestitch.write_once import DigestingFile, read_proven, write_digested

if TYPE_CHECKING:
    # Only for annotations: see `stitch_job`.
    from wavestitch.contracts.whole_waveforms import StitchTable

ASSIGNMENT_FORMAT = b"4"
_PIECE = (
    ("file", pa.int32()),  # number of the landing file in the job
    ("row", pa.int64()),  # row in that file, over all its record batches
    ("topic_id", pa.string()),  # null: the job's
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp_ms", pa.int64()),
    ("count", pa.int32()),  # ws-count; -1 where the chunk does not say it
    ("crc", pa.uint32()),
    ("digest", pa.string()),  # ws-digest of this chunk, which its CRC covers
    ("length", pa.int32()),
    ("piece", pa.binary(32)),
)
ASSIGNMENT = pa.schema(
    [
        ("waveform_id", pa.string()),
        ("meta", pa.string()),
        ("digest", pa.string()),  # ws-digest; null where no chunk carried one, or an operator vouches for the bytes
        ("pieces", pa.list_(pa.struct(list(_PIECE)))),  # in order of sequence, 0 to count - 1
    ],
    metadata={b"wavestitch.assignment-format": ASSIGNMENT_FORMAT},
)

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Assignment:
    """The waveforms of one task. Pieces of waveform `w` are `[first[w], first[w + 1])` of the arrays in `pieces`;
    `sizes` are payload bytes per waveform. Texts are arrays of Arrow; of the digests of pieces, `pieces` has numbers
    among `piece_digests`, negative where there is none."""

    waveform_ids: pa.Array
    metas: pa.Array
    digests: pa.Array
    first: Ints
    pieces: dict[str, Any]
    piece_digests: pa.Array
    sizes: Ints

    def record_times(self) -> tuple[Ints, Ints]:
        """Least and greatest record time per waveform, ms."""
        times, first = self.pieces["timestamp_ms"], self.first[:-1]
        return np.minimum.reduceat(times, first), np.maximum.reduceat(times, first)


def write_assignment(folder: Path, waves: StitchTable) -> str:
    """Write the assignment of these waveforms, in this order; returns its name."""
    columns = [_column(waves.pieces[name], kind) for name, kind in _PIECE]
    batch = pa.record_batch(
        [
            waves.ids.cast(pa.string()),
            waves.metas.cast(pa.string()),
            waves.digests.cast(pa.string()),
            pa.ListArray.from_arrays(
                pa.array(waves.first, pa.int32()),
                pa.StructArray.from_arrays(columns, fields=[pa.field(*f) for f in _PIECE]),
            ),
        ],
        schema=ASSIGNMENT,
    )

    def fill(file: DigestingFile) -> None:
        with pa.ipc.new_file(file, ASSIGNMENT) as writer:
            writer.write_batch(batch)

    return str(write_digested(folder, lambda digest: f"assignment-{digest}.arrow", fill)[0])


def read_assignment(path: Path) -> Assignment:
    """Raises `Altered` where the file is gone or damaged, `BadInput` where its format is not this version's."""
    try:
        table = pa.ipc.open_file(read_proven(path)).read_all().combine_chunks()
    except pa.ArrowException as error:
        raise Altered(f"assignment {path} cannot be read ({error}); run the step again", file=str(path)) from error
    seen = (table.schema.metadata or {}).get(b"wavestitch.assignment-format")
    if seen != ASSIGNMENT_FORMAT or not table.schema.equals(ASSIGNMENT):
        raise BadInput(f"assignment {path} has format {seen!r}; this version reads {ASSIGNMENT_FORMAT!r}")
    lists = table.column("pieces").combine_chunks()
    flat = lists.flatten()
    first: Ints = np.concatenate(([0], np.cumsum(lists.value_lengths().to_numpy(), dtype=np.int64)))
    # Digests of 32 bytes as numbers, too: of an array of bytes objects each would be an object.
    columns = {name: flat.field(i) for i, (name, _) in enumerate(_PIECE)}
    digests = columns["digest"].dictionary_encode()
    pieces = {n: _values(n, c) for n, c in columns.items()}
    pieces["digest"] = digests.indices.fill_null(-1).to_numpy()
    return Assignment(
        waveform_ids=table.column("waveform_id").combine_chunks(),
        metas=table.column("meta").combine_chunks(),
        digests=table.column("digest").combine_chunks(),
        first=first,
        pieces=pieces,
        piece_digests=digests.dictionary,
        sizes=np.add.reduceat(pieces["length"], first[:-1], dtype=np.int64),
    )


def _column(values: Any, kind: Any) -> Any:
    if not isinstance(values, np.ndarray):
        return values.cast(kind)
    if values.ndim == 1:
        return pa.array(values, kind)
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def _values(name: str, column: Any) -> Any:
    if name in ("digest", "topic_id"):
        return column
    return _digests(column) if name == "piece" else column.to_numpy()


def _digests(column: pa.FixedSizeBinaryArray) -> npt.NDArray[np.uint8]:
    """Shape (pieces, 32)."""
    if column.null_count:
        raise Altered("an assignment has a piece without digest; run the step again")
    raw = np.frombuffer(column.buffers()[1], np.uint8)
    return raw[column.offset * 32 : (column.offset + len(column)) * 32].reshape(-1, 32)
