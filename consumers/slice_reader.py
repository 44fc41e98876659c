"""One slice of one partition, read to its end and landed, every offset of it accounted for (I1, I5, I8).

What a record is, `record_sink` decides; what becomes of it is decided later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaError

from consumers.failed_reading import check_topic, explain_failure
from consumers.landing import LandingWriter
from consumers.range_scan import OnBatch, ScanFailed, Source, scan_range
from consumers.record_sink import NeedsCare, RecordSink, StoredRun
from wavestitch.contracts.chunk_proof import NO_PROOF, ChunkProof
from wavestitch.contracts.errors import DataLost
from wavestitch.contracts.holes import Interval, Proven, prove_holes
from wavestitch.contracts.id_partitions import ANYWHERE, IdBinding
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.ports import Log
from wavestitch.contracts.quantities import LeaderEpoch
from wavestitch.contracts.receipt import LandedSlice
from wavestitch.contracts.stop_rule import Why
from wavestitch.contracts.written import NO_EPOCH, Written, beside_holes
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.payload_store import BatchPayload

_UNREADABLE = frozenset({KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG})
"""What the client says of a batch that brokers took: of LZ4 with anything behind its frame the latter."""


def read_slice(
    slice_: OffsetRange,
    *,
    settings: KafkaSettings,
    source: Source,
    log: Log,
    folder: Path,
    payload: BatchPayload | None = None,
    expected_bytes: int = 0,
    start_epoch: LeaderEpoch | None = None,
    newest_epoch: LeaderEpoch | None = None,
    proof: ChunkProof = NO_PROOF,
    ids: IdBinding = ANYWHERE,
    on_batch: OnBatch | None = None,
    on_stored: Callable[[int], None] = lambda _: None,
    on_stored_run: StoredRun = lambda *_: False,
    on_work: Callable[[int], None] = lambda _: None,
    on_fetched: Callable[[int], None] = lambda _: None,
    careful: bool = False,
) -> LandedSlice:
    """Read and land one slice.

    `payload`: where its payload goes, if not into the landing file.
    `start_epoch`: leader epoch before its start, as it was when that was read; a log that was cut off there and written
    anew is found out by it. `newest_epoch`: the same when the end was planned; a record of a later one was written in
    place of what was planned. `proof`: what every chunk must carry. `ids`: where it may come from. `careful`: from raw
    batches, in little memory.
    `on_stored` hears the bytes that each record brings, and may raise; `on_stored_run` those of several, where it has
    room for them. `on_work` hears what reading a raw batch took, and may raise; `on_fetched` what the client fetched
    in all.
    Raises `DataLost`, `Refused`, `Transient` or `Terminal`, and `NeedsCare` where it has to be read carefully; then
    nothing is kept.
    """
    with LandingWriter(folder, slice_, expected_bytes=expected_bytes, payload=payload) as writer:
        sink = RecordSink(
            writer, proof, on_stored, careful=careful, ids=ids, partition=slice_.partition, on_stored_run=on_stored_run
        )
        try:
            holes = _scan_of(careful, on_work, on_fetched, sink)(
                slice_,
                settings=settings,
                source=source,
                take=sink.land,
                start_epoch=start_epoch,
                on_batch=on_batch,
            )
            proven = _prove(holes, settings=settings, source=source, slice_=slice_)
        except ScanFailed as failed:
            if not careful and (why := _why_care(failed, log, source, slice_)) is not None:
                raise NeedsCare(why) from failed
            raise explain_failure(log, source, slice_, failed) from failed
        check_topic(log, source)
        written = beside_holes(sink.written, proven.written, slice_.end)
        check_epoch(source, slice_, written, newest=newest_epoch)
        return writer.finish(proven.holes, written)


def _why_care(failed: ScanFailed, log: Log, source: Source, slice_: OffsetRange) -> str | None:
    """What the client cannot read, or stands still before: of that the raw batches say more. None: nothing of this."""
    if failed.error is not None and failed.error.code() in _UNREADABLE:
        return str(failed.error.str())
    if failed.why is Why.NOT_RISING:
        return f"the client delivered offsets that do not rise at {failed.position}"
    if failed.why is Why.IDLE and not failed.throttled:
        # A record whose key says a length below -1 it neither hands out nor complains of.
        end = log.ends(source.topic, [slice_.partition])[slice_.partition].stable_end
        return f"nothing came of offset {failed.position}, which is there" if end > failed.position else None
    return None


def _scan_of(
    careful: bool, on_work: Callable[[int], None], on_fetched: Callable[[int], None], sink: RecordSink
) -> Callable[..., list[Interval]]:
    if not careful:
        return partial(scan_range, on_fetched=on_fetched)
    from consumers.batch_scan import scan_batches  # noqa: PLC0415 - most slices of large records do without it

    return partial(scan_batches, take_columns=sink.land_columns, on_work=on_work)


def _prove(holes: Sequence[Interval], *, settings: KafkaSettings, source: Source, slice_: OffsetRange) -> Proven:
    """The holes and why each is one, from the broker's own record batches."""
    if not holes:
        return Proven([], [])
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
                begins=source.begins.get(slice_.partition),
            )
        except OutOfRange as gone:
            raise ScanFailed(Why.LOG_ERROR, gone.offset, KafkaError(KafkaError.OFFSET_OUT_OF_RANGE)) from gone


def check_epoch(source: Source, slice_: OffsetRange, written: Sequence[Written], *, newest: LeaderEpoch | None) -> None:
    """Raises `DataLost` where something of it was written in a later leader epoch than the plan's."""
    seen = max((run.epoch for run in written), default=NO_EPOCH)
    if newest is not None and seen > newest:
        raise DataLost(
            f"topic {source.topic} {slice_}: the newest of what lies there has leader epoch {seen}, the plan was made "
            f"in epoch {newest}: the log was cut off after the plan and written anew (an unclean leader election?). "
            "Look at the brokers, then plan again",
            topic=source.topic,
            partition=slice_.partition,
            offsets=[[slice_.start, slice_.end]],
        )
