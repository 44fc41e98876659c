"""The bytes of a fetch, taken apart into record batches: heads only, and where a cleaner was at work, their offsets.

Format 2 alone (Kafka 0.11 and later). What ends in the middle of a batch is left for the next fetch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from wavestitch.contracts.errors import Refused, Terminal
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.record_batches import AllBut, Control, RecordBatch
from wavestitch.contracts.written import epoch_of
from wavestitch.kafka.inflate import Uninflatable, inflated
from wavestitch.kafka.kafka_python import DefaultRecordBase, calc_crc32c

_HEAD = DefaultRecordBase.HEADER_STRUCT
_OVERHEAD = DefaultRecordBase.AFTER_LEN_OFFSET
_MAGIC_AT = 16
_FORMAT = 2
_CODEC: int = DefaultRecordBase.CODEC_MASK
_CRC_FROM = DefaultRecordBase.ATTRIBUTES_OFFSET
_MARKERS = {0: Control.ABORT, 1: Control.COMMIT}


class RawBatch(NamedTuple):
    """One batch as it came: `data` holds its head, too."""

    base_offset: Offset
    leader_epoch: int
    attributes: int
    last_offset_delta: int
    first_timestamp: int
    max_timestamp: int
    producer_id: int
    records: int
    data: memoryview

    @property
    def codec(self) -> int:
        return self.attributes & _CODEC

    @property
    def is_append_time(self) -> bool:
        """Whether the broker stamped the records, all with the same time."""
        return bool(self.attributes & DefaultRecordBase.TIMESTAMP_TYPE_MASK)

    @property
    def end(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta + 1)

    @property
    def body(self) -> memoryview:
        """The records, compressed or not."""
        return self.data[_HEAD.size :]


def split_batches(data: memoryview, *, where: str) -> Iterator[RawBatch]:
    """All whole batches in order. `where`: topic and partition, for the sentence."""
    at = 0
    while len(data) - at >= _HEAD.size:
        length, magic = struct.unpack_from(">q i i b", data, at)[1], data[at + _MAGIC_AT]
        end = at + _OVERHEAD + length
        if magic != _FORMAT:
            raise Refused(
                f"{where}: the log holds record batches of format {magic}, which say nothing of transactions; only "
                "format 2 (Kafka 0.11 and later) can be read",
            )
        if end < at + _HEAD.size:
            raise Terminal(
                f"{where}: the broker sent a record batch that says it has {length} bytes, less than its head"
            )
        if end > len(data):
            return
        base, _, epoch, _, _, attributes, delta, first, newest, producer, _, _, records = _HEAD.unpack_from(data, at)
        if base < 0 or delta < 0 or records < 0:
            raise Terminal(
                f"{where}: the broker sent a record batch of {records} records from offset {base} on, {delta} behind it"
            )
        yield RawBatch(base, epoch, attributes, delta, first, newest, producer, records, data[at:end])
        at = end


def first_batch(data: memoryview, *, where: str) -> RawBatch | None:
    """The first one, if it is whole. Raises `OtherFormat` for one that is older than format 2."""
    if len(data) > _MAGIC_AT and data[_MAGIC_AT] < _FORMAT:
        raise OtherFormat(data[_MAGIC_AT])
    return next(split_batches(data, where=where), None)


class OtherFormat(Exception):
    """A record batch of before Kafka 0.11."""


def head_of(batch: RawBatch, *, where: str) -> RecordBatch:
    """What the batch says of itself, without a look at its records: `missing` is left empty. Raises `Terminal` where
    the head is not what was written."""
    control = _control(batch, where) if batch.attributes & DefaultRecordBase.CONTROL_MASK else None
    return RecordBatch(
        batch.base_offset,
        batch.end,
        batch.producer_id,
        bool(batch.attributes & DefaultRecordBase.TRANSACTIONAL_MASK),
        control,
        leader_epoch=epoch_of(batch.leader_epoch),
    )


def offsets_of(batch: RawBatch, *, where: str) -> RecordBatch:
    """The same, and which offsets have no record any more: of what a cleaner has been at all records are inflated.
    Raises `Terminal`, too, where they are not in order."""
    head = head_of(batch, where=where)
    if head.control is not None or batch.records == batch.last_offset_delta + 1:
        return head
    try:
        return replace(head, missing=AllBut(batch.base_offset, batch.end, _offsets(batch)))
    except Uninflatable as error:
        raise Terminal(f"{where}: the record batch at offset {batch.base_offset}: {error.message}") from None


def _control(batch: RawBatch, where: str) -> Control:
    """Small, and all that a proof rests on: so it is checked."""
    written = _HEAD.unpack_from(batch.data)[4]
    if calc_crc32c(batch.data[_CRC_FROM:]) != written:
        raise Terminal(f"{where}: the control batch at offset {batch.base_offset} does not have its CRC")
    if not batch.records:
        return Control.OTHER
    reader = inflated(batch.codec, batch.body)
    reader.varint()
    reader.skip(1)
    reader.varint()
    reader.varint()
    length = reader.varint()
    return Control.OTHER if length < 4 else _MARKERS.get(struct.unpack(">h", reader.take(4)[2:])[0], Control.OTHER)


def _offsets(batch: RawBatch) -> Iterator[int]:
    """Of the records that are still in it, rising."""
    reader = inflated(batch.codec, batch.body)
    before = -1
    for _ in range(batch.records):
        length = reader.varint()
        begin = reader.passed
        reader.skip(1)
        reader.varint()
        delta = reader.varint()
        if not before < delta <= batch.last_offset_delta or length < reader.passed - begin:
            raise Uninflatable("the records of a batch are not in order")
        reader.skip(length - (reader.passed - begin))
        before = delta
        yield batch.base_offset + delta
