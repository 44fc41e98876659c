"""The corpus sent through one batch on a log in memory: what every level above the parser asks of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hostile.corpus import STREAM_YAML, record_kinds
from tests.hostile.kind import Record
from tests.hostile.landed_site import MemorySite, make_landed_site, run_landed_batch
from tests.hostile.outcome import HeldRecord, Sent, held_records, interleave, samples_of
from tests.whole import Whole

PARTITIONS = 3
PATIENCE_S = 3600


@dataclass(frozen=True)
class Carried:
    """A corpus that one batch has carried. `sent` and `held` are by partition and offset."""

    whole: Whole
    sent: dict[tuple[int, int], Sent]
    samples: dict[str, bytes]
    done: dict[str, Any]
    held: dict[tuple[int, int], HeldRecord]

    @property
    def site(self) -> MemorySite:
        assert isinstance(self.whole.site, MemorySite)
        return self.whole.site


def carry_corpus(folder: Path) -> Carried:
    """Send every kind between probes, run one batch, look."""
    whole = make_landed_site(folder, stream_yaml=STREAM_YAML, partitions=PARTITIONS)
    assert isinstance(whole.site, MemorySite)
    now_ms = time.time_ns() // 1_000_000
    sent = {}
    for one in interleave(record_kinds(), partitions=PARTITIONS):
        landed = whole.site.memory.append(one.partition, record_time(one.record, now_ms), *said(one.record))
        sent[landed.partition, landed.offset] = one
    done = run_landed_batch(whole.site)
    return Carried(
        whole, sent, samples_of(record_kinds(), partitions=PARTITIONS), done, held_records(whole, patience_s=PATIENCE_S)
    )


def record_time(record: Record, now_ms: int) -> int:
    """ms since 1970, never before: Kafka has no other."""
    return max(1, now_ms - record.age_s * 1000)


def said(record: Record) -> tuple[bytes | None, tuple[tuple[str, bytes | None], ...], bytes | None]:
    return record.key, record.headers, record.value
