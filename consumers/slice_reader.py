"""One slice of one partition, read to its end and landed, every offset of it accounted for (I1, I5, I8).

A record that is no valid chunk is landed too, with its reason and as it came: what it is, is decided here; what becomes
of it, later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError

from consumers.failed_reading import check_topic, explain_failure
from consumers.landing import LandingWriter
from consumers.range_scan import OnBatch, ScanFailed, Source, scan_range
from consumers.raw_message import MOST_ASIDE_BYTES, MOST_HEADERS, MOST_RECORD_BYTES, RawMessage
from wavestitch.contracts.batch_size import METADATA_WEIGHT
from wavestitch.contracts.chunk_header import Chunk, Rejection, parse_chunk
from wavestitch.contracts.chunk_proof import NO_PROOF, ChunkProof
from wavestitch.contracts.errors import DataLost, WavestitchError
from wavestitch.contracts.holes import Hole, Interval, prove_holes
from wavestitch.contracts.id_partitions import ANYWHERE, IdBinding
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.ports import Log
from wavestitch.contracts.quantities import LeaderEpoch
from wavestitch.contracts.raw_headers import header_bytes
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.receipt import LandedSlice
from wavestitch.contracts.stop_rule import Why
from wavestitch.kafka.client_settings import KafkaSettings

# Not `message.headers()`: for a name that is not UTF-8, the client (2.16) returns a list with a null pointer in it and
# sets an exception, too. A plain call skips Python's check for that once the interpreter has specialised it, and the
# process dies of the pointer; this one always checks, and raises SystemError.
_headers_of = methodcaller("headers")
_UNREADABLE_HEADERS = Rejection(Reason.BAD_HEADER, "the name of a header is not UTF-8; allowed is ASCII")


def read_slice(
    slice_: OffsetRange,
    *,
    settings: KafkaSettings,
    source: Source,
    log: Log,
    folder: Path,
    expected_bytes: int = 0,
    start_epoch: LeaderEpoch | None = None,
    newest_epoch: LeaderEpoch | None = None,
    proof: ChunkProof = NO_PROOF,
    ids: IdBinding = ANYWHERE,
    on_batch: OnBatch | None = None,
    on_stored: Callable[[int], None] = lambda _: None,
    on_work: Callable[[int], None] = lambda _: None,
    careful: bool = False,
) -> LandedSlice:
    """Read and land one slice.

    `start_epoch`: leader epoch before its start, as it was when that was read; a log that was cut off there and written
    anew is found out by it. `newest_epoch`: the same when the end was planned; a record of a later one was written in
    place of what was planned. `proof`: what every chunk must carry. `ids`: where it may come from. `careful`: from raw
    batches, in little memory.
    `on_stored` hears the bytes that each record brings, `on_work` what reading a raw batch took; both may raise.
    Raises `DataLost`, `Refused`, `Transient` or `Terminal`, and `NeedsCare` where it has to be read carefully; then
    nothing is kept.
    """
    with LandingWriter(folder, slice_, expected_bytes=expected_bytes) as writer:
        sink = _RecordSink(writer, proof, on_stored, careful=careful, ids=ids, partition=slice_.partition)
        try:
            holes = _scan_of(careful, on_work)(
                slice_,
                settings=settings,
                source=source,
                take=sink.land,
                start_epoch=start_epoch,
                on_batch=on_batch,
            )
            proven = _prove(holes, settings=settings, source=source, slice_=slice_)
        except ScanFailed as failed:
            if not careful and failed.error is not None and failed.error.code() == KafkaError._BAD_COMPRESSION:
                raise NeedsCare(failed.error.str()) from failed
            raise explain_failure(log, source, slice_, failed) from failed
        check_topic(log, source)
        _check_epoch(source, slice_, seen=sink.epoch, newest=newest_epoch)
        return writer.finish(proven)


class NeedsCare(Exception):
    """The client cannot read the slice, or only in too much memory: it is to be read from raw batches."""


class _RecordSink:
    """Where a message becomes a row."""

    __slots__ = ("_careful", "_ids", "_last", "_meta", "_metas", "_on_stored", "_partition", "_proof", "_writer")

    def __init__(
        self,
        writer: LandingWriter,
        proof: ChunkProof,
        on_stored: Callable[[int], None],
        *,
        careful: bool,
        ids: IdBinding = ANYWHERE,
        partition: int = 0,
    ) -> None:
        self._writer = writer
        self._careful = careful
        self._on_stored = on_stored
        self._proof = proof
        self._ids = ids
        self._partition = partition
        self._last: Any = None
        # By hash: a text that is taken for another one is counted less, and nothing else comes of it.
        self._metas: set[int] = set()
        self._meta = ""

    @property
    def epoch(self) -> int | None:
        """Leader epoch of the last record."""
        return None if self._last is None else self._last.leader_epoch()

    def land(self, message: Any, offset: int) -> int:
        self._last = message
        if type(message) is RawMessage and message.unreadable is not None:
            return self._land_unreadable(message)
        if len(message) > MOST_RECORD_BYTES:
            raise NeedsCare(f"a record of {len(message)} bytes at offset {offset}")
        value: bytes | None = message.value()
        key: bytes | None = message.key()
        kind, stamp = message.timestamp()
        timestamp_ms = stamp if kind and stamp > 0 else 0  # as `_time_of`
        headers: Sequence[tuple[str, bytes | None]] | None
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


def _time_of(message: Any) -> int:
    """ms since the epoch; 0 where the record has no time, or one before the epoch, which a wrapped sum may be."""
    kind, stamp = message.timestamp()
    return max(stamp, 0) if kind else 0


def _scan_of(careful: bool, on_work: Callable[[int], None]) -> Callable[..., list[Interval]]:
    if not careful:
        return scan_range
    from consumers.careful_scan import scan_carefully  # noqa: PLC0415 - kafka-python takes half a second to import

    return partial(scan_carefully, on_work=on_work)


def _prove(holes: Sequence[Interval], *, settings: KafkaSettings, source: Source, slice_: OffsetRange) -> list[Hole]:
    """The holes and why each is one, from the broker's own record batches."""
    if not holes:
        return []
    from wavestitch.kafka.raw_log import OutOfRange, RawLog  # noqa: PLC0415 - most slices have no holes

    with RawLog(settings, source.topic, deadline=source.idle_seconds) as raw:
        try:
            return prove_holes(
                holes,
                stream=source.stream,
                topic=source.topic,
                slice_=slice_,
                fetch=raw.fetcher(slice_.partition),
                kind=source.kind,
            )
        except OutOfRange as gone:
            raise ScanFailed(Why.LOG_ERROR, gone.offset, KafkaError(KafkaError.OFFSET_OUT_OF_RANGE)) from gone


def _check_epoch(source: Source, slice_: OffsetRange, *, seen: int | None, newest: LeaderEpoch | None) -> None:
    if seen is not None and newest is not None and seen > newest:
        raise DataLost(
            f"topic {source.topic} {slice_}: a record has leader epoch {seen}, the plan was made in epoch {newest}: "
            "the log was cut off after the plan and written anew (an unclean leader election?). Look at the brokers, "
            "then plan again",
            topic=source.topic,
            partition=slice_.partition,
            offsets=[[slice_.start, slice_.end]],
        )
