"""The samples of a waveform that is held, as far as its chunks are there: read where they are held, part by part.

Each chunk is proven as it is read: what is shown is what its producer sent. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from wavestitch.contracts.chunk_header import piece_digest
from wavestitch.contracts.errors import Altered
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.contracts.partial_waveform import PartialWaveform
from wavestitch.contracts.sample_types import values_of
from wavestitch.reading.extremes import Placed
from wavestitch.tables.stream_tables import StreamTables


def held_samples(
    tables: StreamTables, mark: HeldMark, about: PartialWaveform, start: int, end: int
) -> Iterator[Placed]:
    """Those of samples `[start, end)` that are there, in the dtype that they were sent in, chunk by chunk in no order.
    Raises `Altered` where a chunk's bytes are not those that were held."""
    wanted = {at.chunk.key: at for at in about.chunks if at.start < end and at.end > start}
    for key, payload in tables.held_values(mark, wanted):
        chunk, first, _ = wanted[key]
        if piece_digest((chunk.meta or "").encode(), memoryview(payload)) != chunk.piece:
            raise Altered(
                f"chunk {chunk.seq} of {about.waveform_id!r}, from {chunk.place}, is held with other bytes than it was "
                "read with; restore the table, or rewind to where the log has the chunk"
            )
        values = values_of(payload, about.metadata.sample_format)
        begin = max(start, first)
        yield begin, values[begin - first : end - first]
