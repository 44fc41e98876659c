"""Record batches of a landing file on their way to disk: whole, or with their payload on its way to an object store."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from wavestitch.contracts.payload_apart import cut_payload, say_apart
from wavestitch.contracts.rows import LANDING, LANDING_APART
from wavestitch.payload_store import BatchPayload, PayloadSender
from wavestitch.write_once import DigestingFile

_ALIGNED = 8
"""To so many bytes Arrow fills up each part of a record batch."""


class LandedRows(Protocol):
    def write(self, batch: pa.RecordBatch) -> None:
        """Its buffers may change afterwards."""

    def finish(self) -> None:
        """Write what ends the file, after all that it names is there."""

    def close(self) -> None:
        """Whatever happened: leave nothing running."""


def landed_rows(file: DigestingFile, payload: BatchPayload | None) -> LandedRows:
    return RowsWhole(file) if payload is None else RowsApart(file, payload)


class RowsWhole:
    def __init__(self, file: DigestingFile) -> None:
        self._ipc = pa.ipc.new_file(file, LANDING)

    def write(self, batch: pa.RecordBatch) -> None:
        self._ipc.write_batch(batch)

    def finish(self) -> None:
        self._ipc.close()

    def close(self) -> None:
        """Nothing runs."""


class RowsApart:
    """Where the payload would be the file has a hole, which takes no room and is read as zeros: so who reads the index,
    or where a payload begins, finds all at the places that it has in any other file."""

    def __init__(self, file: DigestingFile, payload: BatchPayload) -> None:
        self._file = file
        self._batch: list[bytes] | None = None
        self._sender = PayloadSender(payload)
        self._ipc = pa.ipc.new_file(_Sink(self), LANDING_APART)

    def write(self, batch: pa.RecordBatch) -> None:
        data = bytes(_payload_of(batch))
        names = [self._sender.send(piece) for piece in cut_payload(memoryview(data))]
        self._batch = []
        self._ipc.write_batch(batch, custom_metadata=say_apart(names) if names else None)
        parts, self._batch = self._batch, None
        # Payload is the last column, and its bytes the last of its parts, but for what fills it up.
        filled = [parts.pop()] if len(data) % _ALIGNED else []
        if data and parts.pop() != data:
            raise AssertionError("a record batch does not end with its payload")
        for part in parts:
            self._file.write(part)
        self._file.skip(len(data))
        for part in filled:
            self._file.write(part)

    def finish(self) -> None:
        self._sender.finish()
        self._ipc.close()

    def close(self) -> None:
        self._sender.close()

    def take(self, data: memoryview) -> int:
        if self._batch is None:
            return self._file.write(data)
        self._batch.append(bytes(data))
        return len(data)

    def tell(self) -> int:
        return self._file.tell() + sum(map(len, self._batch or ()))


class _Sink:
    """What Arrow's writer takes."""

    closed = False

    def __init__(self, rows: RowsApart) -> None:
        self._rows = rows

    def write(self, data: Any) -> int:
        return self._rows.take(memoryview(data).cast("B"))

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing is buffered here."""

    def tell(self) -> int:
        return self._rows.tell()


def _payload_of(batch: pa.RecordBatch) -> memoryview:
    _, offsets, data = batch.column("payload").buffers()
    begin, end = np.frombuffer(offsets, np.int32)[[0, len(batch)]].tolist()
    return memoryview(data).cast("B")[begin:end] if data is not None else memoryview(b"")
