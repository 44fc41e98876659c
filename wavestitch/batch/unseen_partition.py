"""What is said of a partition that a stream reads, and that the broker which was asked does not show: its view of the
topic is older than the head's, since partitions are only ever added. Decides nothing else."""

from __future__ import annotations

from wavestitch.contracts.errors import Transient
from wavestitch.contracts.quantities import Partition


def unseen(partition: Partition, *, stream: str, topic: str) -> Transient:
    return Transient(
        f"stream {stream}: the broker shows no partition {partition} of topic {topic}, which the head has: what it "
        "knows of the topic is old; nothing was changed, try again",
        partition=partition,
    )
