"""Payload that was landed, proven again where it is taken, by the CRC beside it; that one the receipt covers.

A file may be damaged after it was compared with its receipt: nothing in it is followed before it was looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from wavestitch.contracts.chunk_header import bound_of, chunk_crc, crc32
from wavestitch.contracts.errors import Altered
from wavestitch.contracts.rows import texts_of


def put_together(batch: pa.RecordBatch, pieces: Sequence[bytes]) -> pa.RecordBatch:
    """A record batch whose payload is apart, with that: its objects, in order. Not looked at: see `take_proven`."""
    column = batch.column("payload")
    validity, offsets, _ = column.buffers()
    payload = pa.Array.from_buffers(column.type, len(column), [validity, offsets, pa.py_buffer(b"".join(pieces))])
    return batch.set_column(batch.schema.get_field_index("payload"), batch.schema.field("payload"), payload)


def take_proven(landing: str, batch: pa.RecordBatch, rows: Sequence[int]) -> pa.RecordBatch:
    """These rows of a mapped record batch of landing file `landing`, copied, and proven; raises `Altered`."""
    try:
        # What lies on disk becomes addresses: unchecked, a damaged length would end the process.
        batch.validate(full=True)
        texts = texts_of(batch)
    except (pa.ArrowException, ValueError) as error:
        said = (str(error).splitlines() or [""])[0][:200]
        raise Altered(
            f"{landing} is damaged ({said}); delete it and run the batch's read step again", file=landing
        ) from error
    taken = batch.take(pa.array(rows, pa.int64()))
    _check_payloads(landing, taken, [texts[row] for row in rows])
    return taken


def _check_payloads(landing: str, rows: pa.RecordBatch, metas: Sequence[str | None]) -> None:
    """Compare payloads of landing file `landing` with the CRCs that they were landed with; raises `Altered`.

    `metas`: the metadata of these rows, see `texts_of`.
    """
    names = ("reason", "waveform_id", "seq", "count", "digest", "crc", "payload", "offset")
    columns = zip(*(rows[n] for n in names), metas, strict=True)
    for reason, waveform_id, seq, count, digest, crc, payload, offset, meta in columns:
        value = payload.as_buffer() or b""
        said, landed = (waveform_id.as_py(), seq.as_py(), count.as_py()), crc.as_py()
        if reason.as_py() is not None:
            seen = crc32(value) & 0xFFFFFFFF
        elif None in said[:2]:
            seen = None
        else:
            seen = chunk_crc(bound_of(*said, meta=meta or "", digest=digest.as_py()), value)
        if seen is None or seen != landed:
            raise Altered(
                f"{landing}: the record of offset {offset.as_py()} was landed with CRC {_hex(landed)} and now has "
                f"{_hex(seen)}; delete the file and run the batch's read step again",
                file=landing,
            )


def _hex(crc: int | None) -> str:
    return "none" if crc is None else f"{crc:08x}"
