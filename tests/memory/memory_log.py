"""Kafka in memory, as far as batches can tell: partitions of records, ends, transactions, retention and a group.

Offsets never come again within one topic id; a transaction's marker takes an offset and holds no record, and what was
aborted is there for nobody who reads committed. Other people's tools (resets, expiry, recreation) are methods, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tests.memory.faults import Edge
from wavestitch.contracts.errors import DataLost, Refused, Transient
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.ports import PartitionEnds, TopicView
from wavestitch.contracts.position import GroupOffset, Position

Headers = tuple[tuple[str, bytes | None], ...]


class Visibility(StrEnum):
    COMMITTED = "committed"
    OPEN = "open"
    ABORTED = "aborted"
    MARKER = "marker"


@dataclass(frozen=True, slots=True)
class Record:
    """One record as a consumer gets it; a marker has neither key nor value."""

    topic_id: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    headers: Headers
    value: bytes | None

    @property
    def coordinate(self) -> tuple[str, int, int]:
        return self.topic_id, self.partition, self.offset


@dataclass
class _Partition:
    records: list[Record] = field(default_factory=list)
    seen: list[Visibility] = field(default_factory=list)
    log_start: int = 0

    @property
    def end(self) -> int:
        return len(self.records)

    @property
    def stable_end(self) -> int:
        return next((o for o in range(self.log_start, self.end) if self.seen[o] is Visibility.OPEN), self.end)


class MemoryLog(Edge):
    """One topic and one consumer group. Implements `wavestitch.contracts.ports.Log`."""

    def __init__(self, name: str = "waves", partitions: int = 1) -> None:
        self.name = name
        self.live_members: list[str] = []
        self.compacted = False
        self.group: dict[int, GroupOffset] = {}
        self.incarnation = 0
        self.partitions: dict[int, _Partition] = {}
        self.ever: list[tuple[str, int, _Partition]] = []
        self.recreate(partitions)

    # the port

    def topic(self, name: str) -> TopicView:
        with self.act("log.topic", error=Transient):
            if name != self.name:
                raise Refused(f"topic {name} does not exist")
            return TopicView(name, self.topic_id, tuple(sorted(self.partitions)), self.compacted, 1 << 20)

    def ends(self, topic: str, partitions: Sequence[int]) -> dict[int, PartitionEnds]:
        with self.act("log.ends", error=Transient):
            found = {p: self.partitions.get(p) for p in partitions}
            if None in found.values():
                raise Transient(f"no answer for a partition of {topic}")
            return {p: PartitionEnds(at.log_start, at.stable_end, at.end, 0) for p, at in found.items() if at}

    def offsets_at(self, topic: str, times_ms: Mapping[int, int]) -> dict[int, int]:
        with self.act("log.offsets_at", error=Transient):
            return {p: self._offset_at(self.partitions[p], t) for p, t in times_ms.items()}

    def members(self, group: str) -> Sequence[str]:
        with self.act("log.members", error=Transient):
            return list(self.live_members)

    def group_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> dict[int, GroupOffset | None]:
        with self.act("log.group_offsets", error=Transient):
            return {p: self.group.get(p) for p in partitions}

    def commit_group(self, group: str, topic: str, positions: Mapping[int, Position], metadata: str) -> None:
        with self.act("log.commit_group", error=Transient):
            self.group |= {p: GroupOffset(at.next_offset, metadata) for p, at in positions.items()}

    # the readers' side

    def read(self, topic_id: str, wanted: OffsetRange) -> list[Record]:
        """All committed records of a range. What is gone is an error by name (`auto.offset.reset=error`)."""
        with self.act("log.read", error=Transient):
            if topic_id != self.topic_id:
                raise DataLost(f"topic {self.name} was recreated while {wanted} was read")
            at = self.partitions[wanted.partition]
            if wanted.start < at.log_start or wanted.end > at.stable_end:
                raise DataLost(f"{wanted} is not in [{at.log_start}, {at.stable_end})")
            return [at.records[o] for o in range(wanted.start, wanted.end) if at.seen[o] is Visibility.COMMITTED]

    # the producers' side

    @property
    def topic_id(self) -> str:
        return f"topic-{self.incarnation}"

    def append(
        self,
        partition: int,
        timestamp_ms: int,
        key: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        value: bytes | None,
        seen: Visibility = Visibility.COMMITTED,
    ) -> Record:
        at = self.partitions[partition]
        record = Record(self.topic_id, partition, at.end, timestamp_ms, key, tuple(headers), value)
        at.records.append(record)
        at.seen.append(seen)
        return record

    def end_transactions(self, outcome: Visibility, timestamp_ms: int) -> None:
        """Commit or abort what is open, in every partition that has any; each gets a marker."""
        for p, at in self.partitions.items():
            if Visibility.OPEN in at.seen:
                at.seen = [outcome if v is Visibility.OPEN else v for v in at.seen]
                self.append(p, timestamp_ms, None, (), None, Visibility.MARKER)

    # the world's side

    def recreate(self, partitions: int) -> None:
        """Delete the topic and make it again: everything in it is gone, and the group's offsets with it."""
        self.incarnation += 1
        self.partitions = {p: _Partition() for p in range(partitions)}
        self.ever += [(self.topic_id, p, at) for p, at in self.partitions.items()]
        self.group = {}

    def add_partition(self) -> None:
        self.partitions[len(self.partitions)] = at = _Partition()
        self.ever.append((self.topic_id, len(self.partitions) - 1, at))

    def retain_from(self, partition: int, offset: int) -> None:
        at = self.partitions[partition]
        at.log_start = min(max(at.log_start, offset), at.stable_end)

    def reset_group(self, partition: int, offset: int) -> None:
        """As Kafka's own tools do it: an offset without metadata."""
        self.group[partition] = GroupOffset(offset, "")

    def expire_group(self, partition: int) -> None:
        self.group.pop(partition, None)

    # for the oracle

    def committed(self) -> list[Record]:
        """Every record that was ever there for readers of committed data, gone or not, all topics of this name."""
        return [
            r for _, _, at in self.ever for r, v in zip(at.records, at.seen, strict=True) if v is Visibility.COMMITTED
        ]

    def open_offsets(self) -> bool:
        return any(Visibility.OPEN in at.seen for at in self.partitions.values())

    @staticmethod
    def _offset_at(at: _Partition, time_ms: int) -> int:
        return next(
            (o for o in range(at.log_start, at.stable_end) if at.records[o].timestamp_ms >= time_ms), at.stable_end
        )
