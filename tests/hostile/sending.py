"""The corpus sent through one batch on a log in memory: what every level above the parser asks of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.deployment_rig import DeploymentRig
from tests.hostile.corpus import STREAM_YAML, record_kinds
from tests.hostile.kind import Record
from tests.hostile.landed_deployment import FakeDeployment, make_landed_deployment, run_landed_batch
from tests.hostile.outcome import HeldRecord, Sent, held_records, interleave, samples_of
from wavestitch.contracts.quantities import Partition

PARTITIONS = 3
ALLOWED_LATENESS_S = 3600


@dataclass(frozen=True)
class Carried:
    """A corpus that one batch has carried. `sent` and `held` are by partition and offset."""

    whole: DeploymentRig
    sent: dict[tuple[int, int], Sent]
    samples: dict[str, bytes]
    done: dict[str, Any]
    held: dict[tuple[int, int], HeldRecord]

    @property
    def deployment(self) -> FakeDeployment:
        assert isinstance(self.whole.deployment, FakeDeployment)
        return self.whole.deployment


def carry_corpus(folder: Path) -> Carried:
    """Send every kind between probes, run one batch, look."""
    whole = make_landed_deployment(folder, stream_yaml=STREAM_YAML, partitions=PARTITIONS)
    assert isinstance(whole.deployment, FakeDeployment)
    now_ms = time.time_ns() // 1_000_000
    sent: dict[tuple[int, int], Sent] = {}
    for one in interleave(record_kinds(), partitions=PARTITIONS):
        landed = whole.deployment.memory.append(
            Partition(one.partition), record_time(one.record, now_ms), *said(one.record)
        )
        sent[landed.partition, landed.offset] = one
    done = run_landed_batch(whole.deployment)
    return Carried(
        whole,
        sent,
        samples_of(record_kinds(), partitions=PARTITIONS),
        done,
        held_records(whole, allowed_lateness_s=ALLOWED_LATENESS_S),
    )


def record_time(record: Record, now_ms: int) -> int:
    """ms since 1970, never before: Kafka has no other."""
    return max(1, now_ms - record.age_s * 1000)


def said(record: Record) -> tuple[bytes | None, tuple[tuple[str, bytes | None], ...], bytes | None]:
    return record.key, record.headers, record.value
