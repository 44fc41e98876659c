"""How large a topic's records are: a few of each partition are looked at before a stream's first batch is planned.

Decides nothing and proves nothing: what it does not learn, the reader's budget keeps. Reads raw batches, so that a
batch which blows up costs no more than the records that are looked at.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice

from consumers.batch_scan import records_of
from consumers.raw_message import RawMessage
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.ports import Probe
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.raw_headers import header_bytes
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.raw_log import OutOfRange, RawLog

_RECORDS = 5
_PARTITIONS = 16
_SECONDS = 3.0
_FETCH_BYTES = 64 << 10
"""A batch of the broker's that is larger comes all the same, alone."""
_FAR = Offset(1 << 62)
_CONTROL = 0x20


def probe_records(settings: KafkaSettings, topic: str, starts: Mapping[Partition, Offset]) -> Probe:
    """Up to five records of each of up to sixteen partitions; fewer where they take too long or may not be read."""
    sizes: list[int] = []
    times: dict[Partition, EpochMs] = {}
    until = time.monotonic() + _SECONDS
    with RawLog(settings, topic, deadline=_SECONDS) as raw, suppress(WavestitchError, OutOfRange):
        for p in sorted(starts)[:: max(1, -(-len(starts) // _PARTITIONS))]:
            if time.monotonic() > until:
                break
            found = _look(raw, OffsetRange(p, starts[p], _FAR))
            sizes += [_stored(record) for record in found]
            if found:
                times[p] = EpochMs(found[0].timestamp_[1])
    return Probe(len(sizes), sum(sizes), times)


def _look(raw: RawLog, slice_: OffsetRange) -> list[RawMessage]:
    found = raw.fetch(slice_.partition, slice_.start, most_bytes=_FETCH_BYTES)
    records = (
        record
        for batch in found.batches
        if not batch.attributes & _CONTROL
        for record in records_of(batch, slice_, slice_.start)
    )
    return list(islice(records, _RECORDS))


def _stored(record: RawMessage) -> int:
    """Key, headers and value, as a reader counts them."""
    return len(record.key_ or b"") + len(record.value_ or b"") + header_bytes(record.headers_)
