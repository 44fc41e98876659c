"""Where a message becomes a row of the landing: a chunk, or what is none, with its reason and as it came.

Small records that come side by side are looked at all at once, in columns. What is odd among them is found by halves,
and goes through the same steps as a record that comes alone, which are the specification: the same rows either way,
and the same budget spent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from operator import methodcaller
from typing import Any, NamedTuple, Self

from consumers.landing import LandingWriter
from consumers.raw_message import MOST_ASIDE_BYTES, MOST_HEADERS, MOST_RECORD_BYTES, RawMessage
from wavestitch.contracts.batch_size import METADATA_WEIGHT
from wavestitch.contracts.chunk_columns import parse_chunks
from wavestitch.contracts.chunk_header import Chunk, Rejection, parse_chunk
from wavestitch.contracts.chunk_proof import ChunkProof
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.id_partitions import ANYWHERE, IdBinding
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.raw_headers import header_bytes
from wavestitch.contracts.reasons import Reason

# Not `message.headers()`: for a name that is not UTF-8, the client (2.16) returns a list with a null pointer in it and
# sets an exception, too. A plain call skips Python's check for that once the interpreter has specialised it, and the
# process dies of the pointer; this one always checks, and raises SystemError. Asked once more, the client returns that
# list without an exception: what was raised is kept beside its message.
_headers_of = methodcaller("headers")
_key_of, _value_of, _stamp_of = methodcaller("key"), methodcaller("value"), methodcaller("timestamp")
_UNREADABLE_HEADERS = Rejection(Reason.BAD_HEADER, "the name of a header is not UTF-8; allowed is ASCII")
_SMALL_BYTES = 8 << 10
"""Of a run's mean record: what is larger costs bytes, not steps, and is copied while the processor has it at hand."""
_FEW = 16
"""So few records are looked at one by one."""
_PAUSE = 8
"""Where most of a run were, so many runs are: looking for what is not odd in vain costs as much as looking at each."""

_OF_BYTES = (ValueError, ArithmeticError, RecursionError)
"""What bytes can bring about that nobody thought of: one by one they tell which record it is of, and that one is held.
Anything else is a fault of the columns, which the records would hide if they were only looked at again."""

StoredRun = Callable[[int, int], bool]
"""Hears of how many records are stored, and their bytes. Whether there was room; where not, nothing was counted."""
Headers = Sequence[tuple[str, bytes | None]] | None
_NOT_ASKED: Headers = ()
"""What no message answers: it has a list of headers, or none."""


class NeedsCare(Exception):
    """The client cannot read the slice, or only in too much memory: it is to be read from raw batches."""


class _Run(NamedTuple):
    """Messages side by side, and what they say, each asked once. `headers`: or what was raised instead."""

    start: int
    messages: Sequence[Any]
    keys: Sequence[bytes | None]
    headers: Sequence[Headers | Exception]
    values: Sequence[bytes | None]
    times_ms: Sequence[int]

    def part(self, begin: int, end: int) -> Self:
        start, *columns = self
        return type(self)(start + begin, *(column[begin:end] for column in columns))


class RecordSink:
    """Of one slice. `on_stored_run`: without it all records come one by one."""

    __slots__ = (
        "_careful",
        "_ids",
        "_last",
        "_meta",
        "_metas",
        "_on_stored",
        "_on_stored_run",
        "_partition",
        "_pause",
        "_proof",
        "_writer",
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
        on_stored_run: StoredRun | None = None,
    ) -> None:
        self._writer = writer
        self._careful = careful
        self._on_stored = on_stored
        self._on_stored_run = on_stored_run
        self._proof = proof
        self._ids = ids
        self._partition = partition
        self._last: Any = None
        self._pause = 0
        # By hash: a text that is taken for another one is counted less, and nothing else comes of it.
        self._metas: set[int] = set()
        self._meta = ""

    @property
    def epoch(self) -> int | None:
        """Leader epoch of the last record."""
        return None if self._last is None else self._last.leader_epoch()

    def land_run(self, messages: Sequence[Any], start: int) -> int:
        """Land records that lie side by side from `start` on; returns the bytes of their values."""
        size = sum(map(len, messages))
        columns = self._on_stored_run is not None and self._proof.header is None and not self._careful
        self._pause = max(0, self._pause - 1)
        if not columns or self._pause or size > _SMALL_BYTES * len(messages):
            return sum(self.land(message, Offset(start + n)) for n, message in enumerate(messages))
        times = [stamp if kind and stamp > 0 else 0 for kind, stamp in map(_stamp_of, messages)]  # as `_time_of`
        keys, values = list(map(_key_of, messages)), list(map(_value_of, messages))
        alone = self._land_by_halves(_Run(start, messages, keys, _all_headers(messages), values, times))
        if 2 * alone > len(messages) > _FEW:
            self._pause = _PAUSE
        return size

    def _land_by_halves(self, run: _Run) -> int:
        """How many of them were landed one by one."""
        rows = len(run.messages)
        if rows > _FEW and self._landed_together(run):
            self._last = run.messages[-1]
            return 0
        if rows > _FEW:
            return self._land_by_halves(run.part(0, rows // 2)) + self._land_by_halves(run.part(rows // 2, rows))
        for n, message in enumerate(run.messages):
            self.land(message, Offset(run.start + n), run.headers[n])
        return rows

    def _landed_together(self, run: _Run) -> bool:
        """Whether all of them are chunks as nearly all are, and there was room; where not, nothing was done."""
        headers: Sequence[Any] = run.headers
        if {*map(type, headers)} != {list} or not 0 < min(sizes := [*map(len, headers)]) <= max(sizes) <= MOST_HEADERS:
            return False
        try:
            found = parse_chunks(run.keys, headers, run.values)
        except _OF_BYTES:
            return False
        if found is None or found.aside > MOST_ASIDE_BYTES or max(found.lengths) > MOST_RECORD_BYTES:
            return False
        if self._ids.binds and not all(self._partition in (self._ids.of(i) or ()) for i in set(found.waveform_ids)):
            return False
        new = {hash(meta): meta for meta in set(found.metas)}
        new = {key: meta for key, meta in new.items() if key not in self._metas}
        stored = sum(found.lengths) + found.aside + (METADATA_WEIGHT - 1) * sum(map(len, new.values()))
        if self._on_stored_run is None or not self._on_stored_run(len(headers), stored):
            return False
        self._metas |= new.keys()
        self._writer.add_run(run.start, run.times_ms, found, run.values)
        return True

    def land(self, message: Any, offset: Offset, asked: Headers | Exception = _NOT_ASKED) -> int:
        """Land one record; returns the bytes of its value. `asked`: its headers, where the message was asked before."""
        self._last = message
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
            headers = _headers_of(message) if asked is _NOT_ASKED else _answer(asked)
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


def _all_headers(messages: Sequence[Any]) -> list[Headers | Exception]:
    """The headers of each, or what was raised in their place."""
    found: list[Headers | Exception] = []
    while len(found) < len(messages):
        try:
            found.extend(map(_headers_of, islice(messages, len(found), None)))  # one call, up to what raises
        except MemoryError:
            raise
        except Exception as error:
            found.append(error)
    return found


def _answer(asked: Headers | Exception) -> Headers:
    if isinstance(asked, Exception):
        raise asked
    return asked


def _time_of(message: Any) -> int:
    """ms since the epoch; 0 where the record has no time, or one before the epoch, which a wrapped sum may be."""
    kind, stamp = message.timestamp()
    return max(stamp, 0) if kind else 0
