"""Where a message becomes a row of the landing: a chunk, or what is none, with its reason and as it came.

Records that come in columns are looked at all at once. What is odd among them goes through the same steps as a record
that comes alone, which are the specification: the same rows either way, and the same budget spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import methodcaller
from typing import Any

import numpy as np

from consumers.landing import LandingWriter
from consumers.raw_message import MOST_ASIDE_BYTES, MOST_HEADERS, MOST_RECORD_BYTES, RawMessage, message_at
from wavestitch.contracts.batch_size import METADATA_WEIGHT
from wavestitch.contracts.chunk_columns import FoundChunks, Mask, parse_chunks
from wavestitch.contracts.chunk_header import Chunk, Rejection, parse_chunk
from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.id_partitions import ANYWHERE, IdBinding
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.raw_headers import header_bytes
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.record_columns import RecordColumns
from wavestitch.contracts.written import Written, epoch_of

# Not `message.headers()`: for a name that is not UTF-8, the client (2.16) returns a list with a null pointer in it and
# sets an exception, too. A plain call skips Python's check for that once the interpreter has specialised it, and the
# process dies of the pointer; this one always checks, and raises SystemError. Asked once more, the client returns that
# list without an exception: each message is asked once.
_headers_of = methodcaller("headers")
_UNREADABLE_HEADERS = Rejection(Reason.BAD_HEADER, "the name of a header is not UTF-8; allowed is ASCII")

_OF_BYTES = (ValueError, ArithmeticError, RecursionError)
"""What bytes can bring about that nobody thought of: one by one they tell which record it is of, and that one is held.
Anything else is a fault of the columns, which the records would hide if they were only looked at again."""

StoredRun = Callable[[int, int], bool]
"""Hears of how many records are stored, and their bytes. Whether there was room; where not, nothing was counted."""
Headers = Sequence[tuple[str, bytes | None]] | None


class NeedsCare(Exception):
    """The client cannot read the slice, or only in too much memory: it is to be read from raw batches."""


class RecordSink:
    """Of one slice. `careful`: its records come from raw batches, where nothing is hidden."""

    __slots__ = (
        "_careful",
        "_ids",
        "_meta",
        "_metas",
        "_on_stored",
        "_on_stored_run",
        "_partition",
        "_proof",
        "_writer",
        "_written",
    )

    def __init__(
        self,
        writer: LandingWriter,
        proof: ChunkProof,
        on_stored: Callable[[int], None],
        *,
        careful: bool,
        partition: Partition,
        ids: IdBinding = ANYWHERE,
        on_stored_run: StoredRun = lambda *_: False,
    ) -> None:
        self._writer = writer
        self._careful = careful
        self._on_stored = on_stored
        self._on_stored_run = on_stored_run
        self._proof = proof
        self._ids = ids
        self._partition = partition
        self._written: list[Written] = []
        # By hash: a text that is taken for another one is counted less, and nothing else comes of it.
        self._metas: set[int] = set()
        self._meta = ""

    @property
    def written(self) -> list[Written]:
        """In which leader epochs the records were."""
        return self._written

    def land_columns(self, records: RecordColumns, epoch: int) -> int:
        """Land these records, which have this leader epoch; returns the bytes of their values."""
        if len(records):
            self._note(Offset(int(records.offsets[0])), epoch)
        found = self._parse(records)
        together = np.zeros(len(records), np.bool_) if found is None else self._in_place(found)
        plain = together if found is None else found.plain
        before = np.concatenate(([0], np.cumsum(plain))).tolist()
        for begin, end, alike in _runs(together):
            if found is None or not alike or not self._landed_together(records, begin, end, found, before[begin]):
                for row in range(begin, end):
                    self.land(message_at(records, row, epoch), Offset(int(records.offsets[row])))
        return int(np.maximum(records.values.size, 0).sum())

    def _parse(self, records: RecordColumns) -> FoundChunks | None:
        if self._proof.header is not None:
            return None  # what else it demands is asked of each by itself
        try:
            return parse_chunks(records)
        except _OF_BYTES:
            return None

    def _in_place(self, found: FoundChunks) -> Mask:
        """Which of all records are chunks that may come from here."""
        if not self._ids.binds:
            return found.plain
        allowed = {i: self._partition in (self._ids.of(i) or ()) for i in set(found.chunks.waveform_ids)}
        together = found.plain.copy()
        together[found.plain] = [allowed[i] for i in found.chunks.waveform_ids]
        return together

    def _landed_together(self, records: RecordColumns, begin: int, end: int, found: FoundChunks, first: int) -> bool:
        """Whether there was room for the records `[begin, end)`, which are the chunks from `first` on; where not,
        nothing was done."""
        some = slice(first, first + end - begin)
        chunks = found.chunks.part(some)
        new = {hash(meta): meta for meta in set(chunks.metas)}
        new = {key: meta for key, meta in new.items() if key not in self._metas}
        stored = sum(chunks.lengths) + int(found.aside[some].sum())
        stored += (METADATA_WEIGHT - 1) * sum(map(len, new.values()))
        if not self._on_stored_run(end - begin, stored):
            return False
        self._metas |= new.keys()
        offsets, times = records.offsets[begin:end].tolist(), records.times_ms[begin:end].tolist()
        self._writer.add_run(offsets, times, chunks, found.values[some])
        return True

    def land(self, message: Any, offset: Offset) -> int:
        """Land one record; returns the bytes of its value."""
        self._note(offset, message.leader_epoch())
        if type(message) is RawMessage and message.unreadable is not None:
            return self._land_unreadable(message)
        if len(message) > MOST_RECORD_BYTES:
            raise NeedsCare(f"a record of {len(message)} bytes at offset {offset}")
        value: bytes | None = message.value()
        key: bytes | None = message.key()
        kind, stamp = message.timestamp()
        timestamp_ms = stamp if kind and stamp > 0 else 0  # as `_time_of`
        headers: Headers
        try:
            headers = _headers_of(message)
            if not self._careful and (headers is None or len(headers) > MOST_HEADERS):
                # None: there are none, or more than the client shows. Only the raw batch tells.
                raise NeedsCare(f"a record without headers at offset {offset}, or with too many")
            aside = len(key or b"") + header_bytes(headers)
            if aside > MOST_ASIDE_BYTES and not self._careful:
                raise NeedsCare(f"a record with {aside} bytes of key and headers at offset {offset}")
            found = self._ids.judge(parse_chunk(key, headers, value, self._proof), self._partition)
        except (NeedsCare, WavestitchError, MemoryError):
            raise
        except Exception as error:
            headers, aside = None, len(key or b"")
            if isinstance(error, SystemError) and isinstance(error.__cause__, UnicodeDecodeError):
                if not self._careful:  # how large they are, only the raw batch tells
                    raise NeedsCare(f"a header's name that is not UTF-8 at offset {offset}") from error
                found = _UNREADABLE_HEADERS
            else:  # a fault of ours: whatever one record holds, it must not stop its stream for ever
                found = Rejection(Reason.UNREADABLE, f"reading it failed with {type(error).__name__}")
        length = len(value) if value is not None else 0
        stored = length + aside
        if isinstance(found, Chunk) and value is not None:
            if found.meta is not self._meta:
                self._meta = found.meta
                stored += self._kept_in_memory(found)
            self._on_stored(stored)
            self._writer.add_chunk(offset, timestamp_ms, found, value)
        elif isinstance(found, Rejection):
            self._on_stored(stored)
            self._writer.add_rejection(offset, timestamp_ms, found, key=key, headers=headers, value=value)
        return length

    def _note(self, offset: Offset, given: int | None) -> None:
        epoch = epoch_of(given)
        if not self._written or self._written[-1].epoch != epoch:
            self._written.append(Written(offset, epoch))

    def _kept_in_memory(self, found: Chunk) -> int:
        """What metadata count beside their bytes in the record: of each text once."""
        before = len(self._metas)
        self._metas.add(hash(found.meta))
        return (METADATA_WEIGHT - 1) * len(found.meta) if len(self._metas) > before else 0

    def _land_unreadable(self, message: RawMessage) -> int:
        rejection = Rejection(Reason.UNREADABLE, str(message.unreadable))
        raw = message.value()
        self._on_stored(len(raw or b""))
        self._writer.add_rejection(message.offset_, _time_of(message), rejection, key=None, headers=None, value=raw)
        return len(raw or b"")


def _runs(mask: Mask) -> Iterator[tuple[int, int, bool]]:
    """Where neighbours are alike: begin, end, and what they are."""
    edges = [0, *(np.flatnonzero(np.diff(mask)) + 1).tolist(), len(mask)]
    for begin, end in pairwise(edges):
        if begin < end:
            yield begin, end, bool(mask[begin])


def _time_of(message: Any) -> int:
    """ms since the epoch; 0 where the record has no time, or one before the epoch, which a wrapped sum may be."""
    kind, stamp = message.timestamp()
    return max(stamp, 0) if kind else 0
