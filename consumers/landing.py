"""A slice on its way to disk: rows in, one uncompressed Arrow IPC file out, written once under the digest of its bytes.

Memory holds one record batch, whatever the slice's size. The file appears under its name whole and durable, or not at
all; what a dead attempt leaves is a hidden file that nobody reads. The same records give the same bytes, so a second
attempt finds its file there already (I6).
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from consumers.landed_file import besides_payload
from consumers.landed_rows import LandedRows, landed_rows
from consumers.pending_rows import PendingRows, RawHeaders, RowRun
from wavestitch.contracts.chunk_columns import ChunkColumns
from wavestitch.contracts.chunk_header import Chunk, Rejection
from wavestitch.contracts.errors import Terminal, Transient
from wavestitch.contracts.holes import Hole
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import EpochMs, Offset
from wavestitch.contracts.receipt import LandedSlice
from wavestitch.contracts.written import Written
from wavestitch.payload_store import BatchPayload
from wavestitch.write_once import DigestingFile

_DISK_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
_WRONG_FOLDER = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR)


class LandingWriter:
    """The file of one slice. Use as a context manager: without `finish`, everything it wrote is removed.

    `expected_bytes`: what the whole slice will need, for the message when the disk is full. `payload`: where the
    payload goes, if not into the file.
    """

    def __init__(
        self, folder: Path, slice_: OffsetRange, *, expected_bytes: int = 0, payload: BatchPayload | None = None
    ) -> None:
        self._folder = folder
        self._slice = slice_
        self._name = f"slice-p{slice_.partition}-{slice_.start}-{slice_.end}"
        self._expected_bytes = expected_bytes
        self._pending = PendingRows(slice_.partition)
        self._records = 0
        self._payload_bytes = 0
        self._seen_ms: EpochMs | None = None
        self._index = hashlib.sha256()
        self._file: DigestingFile | None = None
        self._payload = payload
        self._rows: LandedRows | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._discard()

    def add_chunk(self, offset: Offset, timestamp_ms: int, chunk: Chunk, value: bytes) -> None:
        """A valid chunk and its payload. `timestamp_ms`: 0 where the record has none."""
        self._records += 1
        self._payload_bytes += chunk.length
        if timestamp_ms > 0:
            self._seen_ms = EpochMs(timestamp_ms)
        if self._pending.add_chunk(offset, timestamp_ms, chunk, value):
            self._flush()

    def add_run(
        self, offsets: Sequence[int], times_ms: Sequence[int], chunks: ChunkColumns, values: Sequence[Any]
    ) -> None:
        """Valid chunks, of rising offsets. The file is the same as if they came one by one."""
        rows, taken = RowRun.of(offsets, times_ms, chunks, values), 0
        self._records += len(values)
        self._payload_bytes += sum(chunks.lengths)
        self._seen_ms = next((EpochMs(t) for t in reversed(times_ms) if t > 0), self._seen_ms)
        while taken < len(values):
            taken = self._pending.add_run(rows, taken)
            if self._pending.is_full:
                self._flush()

    def add_rejection(
        self,
        offset: Offset,
        timestamp_ms: int,
        rejection: Rejection,
        *,
        key: bytes | None,
        headers: RawHeaders | None,
        value: bytes | None,
    ) -> None:
        """A record that is no valid chunk, kept as it came. `headers` None: it has none, or they cannot be read."""
        self._pending.add_rejection(offset, timestamp_ms, rejection, key=key, headers=headers, value=value)
        self._count(timestamp_ms, len(value or b""))

    def finish(self, holes: Sequence[Hole], written: Sequence[Written] = ()) -> LandedSlice:
        """Write what is pending, make the file durable and give it its name."""
        name, size, digest = self._publish() if self._records else (None, 0, "")
        return LandedSlice(
            partition=self._slice.partition,
            start=self._slice.start,
            end=self._slice.end,
            file=name,
            file_bytes=size,
            digest=digest,
            index_digest=self._index.hexdigest() if name else "",
            records=self._records,
            payload_bytes=self._payload_bytes,
            seen_ms=self._seen_ms,
            holes=list(holes),
            written=list(written),
        )

    def _count(self, timestamp_ms: int, length: int) -> None:
        self._records += 1
        self._payload_bytes += length
        if timestamp_ms > 0:
            self._seen_ms = EpochMs(timestamp_ms)
        if self._pending.is_full:
            self._flush()

    def _flush(self) -> tuple[DigestingFile, LandedRows]:
        try:
            if self._file is None or self._rows is None:
                self._file = DigestingFile(self._folder, large=True)
                self._rows = landed_rows(self._file, self._payload)
            if len(self._pending):
                batch = self._pending.to_batch()
                self._index.update(besides_payload(batch))
                self._rows.write(batch)
        except OSError as error:
            raise self._explain(error) from error
        self._pending.clear()
        return self._file, self._rows

    def _publish(self) -> tuple[str, int, str]:
        file, rows = self._flush()
        try:
            rows.finish()
            name = f"{self._name}-{file.hexdigest()}.arrow"
            file.keep_as(name)
        except OSError as error:
            raise self._explain(error) from error
        self._discard()
        return name, file.size, file.hexdigest()

    def _discard(self) -> None:
        if self._rows is not None:
            self._rows.close()
            self._rows = None
        if self._file is not None:
            self._file.discard()
            self._file = None

    def _explain(self, error: OSError) -> Exception:
        if error.errno in _WRONG_FOLDER:
            return Terminal(f"cannot write in {self._folder}: {error.strerror}; check the folder's rights and its disk")
        if error.errno not in _DISK_FULL:
            return Transient(f"cannot write in {self._folder}: {error.strerror}; look after its disk, then try again")
        written = self._file.size if self._file else 0
        needed = max(self._expected_bytes, written + self._pending.size)
        return Transient(
            f"no room in {self._folder} for {self._slice}: {error.strerror} after {written} of at least {needed} bytes "
            "(removed again); free that much or put the landing elsewhere, then try again",
            folder=str(self._folder),
            needed_bytes=needed,
        )
