"""Payload that was landed, proven again where it is taken, by the CRC beside it; that one the receipt covers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from wavestitch.contracts.chunk_header import bound_of, chunk_crc, crc32
from wavestitch.contracts.errors import Altered


def check_payloads(landing: str, rows: pa.RecordBatch, metas: Sequence[str | None]) -> None:
    """Compare payloads of landing file `landing` with the CRCs that they were landed with; raises `Altered`.

    `metas`: the metadata of these rows, see `texts_of`.
    """
    names = ("reason", "waveform_id", "seq", "count", "digest", "crc", "payload", "offset")
    columns = zip(*(rows[n] for n in names), metas, strict=True)
    for reason, waveform_id, seq, count, digest, crc, payload, offset, meta in columns:
        value = payload.as_buffer() or b""
        if reason.as_py() is None:
            said = (waveform_id.as_py(), seq.as_py(), count.as_py())
            seen = chunk_crc(bound_of(*said, meta=meta or "", digest=digest.as_py()), value)
        else:
            seen = crc32(value) & 0xFFFFFFFF
        if seen != crc.as_py():
            raise Altered(
                f"{landing}: the record of offset {offset.as_py()} was landed with CRC {crc.as_py():08x} and now has "
                f"{seen:08x}; delete the file and run the batch's read step again",
                file=landing,
            )
