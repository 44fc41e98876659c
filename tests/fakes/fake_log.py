"""Kafka in memory, as far as batches can tell: partitions of records, ends, transactions, retention and a group.

Within one topic id an offset comes again only where an unclean election cut the log off (`truncate`), in the leader
epoch after that. A transaction's marker takes an offset and holds no record, and what was aborted is there for nobody
who reads committed. Other people's tools (resets, expiry, recreation) are methods, too.
`tests/histories/test_fake_is_honest.py` compares its answers with a real broker's; `fake_reader` is its consumer.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import StrEnum

from tests.fakes.faults import Edge, may_land_late
from tests.fakes.kept_partition import KeptPartition, Record, Visibility, stored_size
from wavestitch.contracts.errors import Refused, Transient
from wavestitch.contracts.ports import PartitionEnds, Probe, TopicView
from wavestitch.contracts.position import GroupOffset, LastBatch, Position
from wavestitch.contracts.quantities import EpochMs, LeaderEpoch, Offset, Partition
from wavestitch.contracts.record_batches import AbortedTransaction, Control, RawFetch, RecordBatch
from wavestitch.kafka.client_settings import KafkaSettings

MAX_MESSAGE_BYTES = 1_048_588
"""A broker's default."""
FOR_EVER = 1 << 30
"""The leader epoch after which a record is gone that is there."""
_numbers = itertools.count(1)


class Mood(StrEnum):
    """What a reader may meet once: a poll that brings nothing, an end that is long past, records that it jumps over."""

    EMPTY = "empty"
    STALE_END = "stale end"
    JUMP = "jump"


PROBED = 5


class FakeLog(Edge):
    """One topic and one consumer group. Implements `wavestitch.contracts.ports.Log`."""

    def __init__(self, name: str = "waves", partitions: int = 1) -> None:
        self.name = name
        self.settings = KafkaSettings(f"memory-{next(_numbers)}:9092")
        self.live_members: list[str] = []
        self.compacted = False
        self.compression = "producer"
        self.retention_ms: int | None = None
        self.retention_bytes: int | None = None
        self.append_time = False
        self.group: dict[Partition, GroupOffset] = {}
        self.incarnation = 0
        self.producer_id = 1
        self._idle_producers = itertools.count(1_000_000)
        self.partitions: dict[Partition, KeptPartition] = {}
        self.ever: list[tuple[str, int, KeptPartition]] = []
        self.moods: list[Mood] = []
        self._old_views: list[int] = []
        self._jumped: set[tuple[str, Partition, Offset]] = set()
        self.recreate(partitions)

    # the port

    def topic(self, name: str) -> TopicView:
        with self.act("log.topic", error=Transient):
            if name != self.name:
                raise Refused(f"topic {name} does not exist")
            partitions = self._shown()
            hidden = tuple(self.partitions.keys() - set(partitions))
            self.tell("looked", what="topic", hidden=hidden, shown=len(partitions))
            return TopicView(
                name=name,
                topic_id=self.topic_id,
                partitions=partitions,
                compacted=self.compacted,
                max_message_bytes=MAX_MESSAGE_BYTES,
                compression=self.compression,
                retention_ms=self.retention_ms,
                retention_bytes=self.retention_bytes,
                append_time=self.append_time,
            )

    def ends(self, topic: str, partitions: Sequence[Partition]) -> dict[Partition, PartitionEnds]:
        with self.act("log.ends", error=Transient):
            found = {p: self._partition(topic, p) for p in partitions}
            return {
                p: PartitionEnds(at.log_start, at.stable_end, at.end, LeaderEpoch(at.epoch)) for p, at in found.items()
            }

    def epoch_ends(self, topic: str, epochs: Mapping[Partition, LeaderEpoch]) -> dict[Partition, Offset | None]:
        with self.act("log.epoch_ends", error=Transient):
            found = {p: self._partition(topic, p) for p in epochs}
            return {p: at.end_of_epoch(epochs[p]) if epochs[p] <= at.epoch else None for p, at in found.items()}

    def batches_at(self, topic: str, offsets: Mapping[Partition, Offset]) -> dict[Partition, LastBatch | None]:
        # No place of its own to be stopped at: it is asked beside `ends`, and fails as that does.
        found = {p: self._partition(topic, p) for p in offsets}
        return {p: at.batch_at(offsets[p]) for p, at in found.items()}

    def times_at(self, topic: str, offsets: Mapping[Partition, Offset]) -> dict[Partition, EpochMs | None]:
        found = {p: self._partition(topic, p) for p in offsets}
        return {p: at.time_at(offsets[p]) for p, at in found.items()}

    def offsets_at(
        self, topic: str, times: Mapping[Partition, EpochMs], *, committed: bool = True
    ) -> dict[Partition, Offset]:
        with self.act("log.offsets_at", error=Transient):
            found = {p: self._partition(topic, p) for p in times}
            ends = {p: at.stable_end if committed else at.end for p, at in found.items()}
            return {p: self._offset_at(found[p], t, ends[p]) for p, t in times.items()}

    def probe(self, topic: str, starts: Mapping[Partition, Offset]) -> Probe:
        with self.act("log.probe", error=Transient):
            found: list[Record] = []
            times: dict[Partition, EpochMs] = {}
            with suppress(IndexError):  # retention overtook it: what was learned until then
                for p, start in starts.items():
                    records = self.fetch(p, start, most=PROBED, committed=True)[0]
                    found += records
                    if records:
                        times[p] = EpochMs(records[0].timestamp_ms)
            return Probe(len(found), sum(stored_size(r) for r in found), times)

    def members(self, group: str) -> Sequence[str]:
        with self.act("log.members", error=Transient):
            return list(self.live_members)

    def group_offsets(
        self, group: str, topic: str, partitions: Sequence[Partition]
    ) -> dict[Partition, GroupOffset | None]:
        with self.act("log.group_offsets", error=Transient):
            self.tell("looked", what="group")
            return {p: self.group.get(p) if topic == self.name else None for p in partitions}

    @may_land_late
    def commit_group(self, group: str, topic: str, positions: Mapping[Partition, Position], metadata: str) -> None:
        with self.act("log.commit_group", error=Transient):
            if self.live_members and positions:
                raise Refused(f"group {group} has live members, so Kafka takes no offsets from outside")
            # As Kafka does: what can be written is written, and the rest is an error.
            there = self.partitions if topic == self.name else {}
            known = {
                p: GroupOffset(at.next_offset, metadata, at.leader_epoch) for p, at in positions.items() if p in there
            }
            self.group |= known
            self.tell("projected", offsets={p: at.offset for p, at in known.items()}, metadata=metadata)
            for p in sorted(positions.keys() - known.keys()):
                raise Transient(f"committing the offset of group {group} on topic {topic} partition {p}: no such")

    # the readers' side

    def fetch(self, partition: Partition, start: Offset, *, most: int, committed: bool) -> tuple[list[Record], Offset]:
        """Up to `most` records from `start`, and where the search stopped. Raises `IndexError` out of range."""
        at = self.partitions.get(partition)
        if at is None or not at.log_start <= start <= at.end:
            raise IndexError(start)
        end = at.stable_end if committed else at.end
        hidden = {Visibility.MARKER, Visibility.GONE} | ({Visibility.ABORTED} if committed else set())
        found: list[Record] = []
        offset = start
        while offset < end and len(found) < most:
            if at.seen[offset] not in hidden:
                found.append(at.records[offset])
            offset = Offset(offset + 1)
        return found, offset

    def fetch_raw(self, partition: Partition, start: Offset, *, most: int) -> RawFetch:
        """Up to `most` record batches from `start` on, each of one offset. Raises `IndexError` out of range."""
        at = self.partitions.get(partition)
        if at is None or not at.log_start <= start <= at.end:
            raise IndexError(start)
        batches: list[RecordBatch] = []
        offset, end = start, at.stable_end
        while offset < end and len(batches) < most:
            if at.seen[offset] is not Visibility.GONE:
                producer, control = at.heads[offset]
                batches.append(
                    RecordBatch(
                        offset, Offset(offset + 1), producer, producer >= 0, control, (), LeaderEpoch(at.epochs[offset])
                    )
                )
            offset = Offset(offset + 1)
        reached = {at.heads[o][0] for o in range(start, offset) if at.seen[o] is Visibility.ABORTED}
        return RawFetch(batches, [AbortedTransaction(producer, at.begins[producer]) for producer in reached])

    def diverged(self, partition: Partition, start: Offset, epoch: int) -> bool:
        """Whether what was read up to `start` in this leader epoch is not what lies there today."""
        at = self.partitions.get(partition)
        return at is not None and at.end_of_epoch(epoch) < start

    def epoch_of(self, record: Record) -> LeaderEpoch:
        """In which it was written, whatever lies there today."""
        for _, p, at in reversed(self.ever):
            if p == record.partition and record.offset < at.end and at.records[record.offset] is record:
                return LeaderEpoch(at.epochs[record.offset])
        cut_off = (one for _, _, at in self.ever for one in at.cut_off)
        return next(LeaderEpoch(written) for r, _, written, _ in cut_off if r is record)

    def jump(self, partition: Partition, start: Offset) -> Offset:
        """Where a reader goes on that jumps at `start`: once a place, so that a second reading sees what is there."""
        at = self.partitions.get(partition)
        place = (self.topic_id, partition, start)
        if at is None or place in self._jumped:
            return start
        self._jumped.add(place)
        return min(Offset(start + 1), max(start, at.stable_end))

    # the producers' side

    @property
    def topic_id(self) -> str:
        return f"topic-{self.incarnation}"

    def append(
        self,
        partition: Partition,
        timestamp_ms: int,
        key: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        value: bytes | None,
        seen: Visibility = Visibility.COMMITTED,
        *,
        control: Control | None = None,
        producer: int | None = None,
    ) -> Record:
        at = self.partitions[partition]
        record = Record(self.topic_id, partition, at.end, timestamp_ms, key, tuple(headers), value)
        at.records.append(record)
        at.seen.append(seen)
        at.epochs.append(at.epoch)
        if seen is Visibility.OPEN:
            at.open.add(record.offset)
        if producer is None:
            producer = self.producer_id if seen in (Visibility.OPEN, Visibility.ABORTED, Visibility.MARKER) else -1
        if seen is Visibility.MARKER and control is None:
            control = Control.COMMIT
        at.heads.append((producer, control))
        at.begins.setdefault(producer, record.offset)
        self.tell("produced", record=record, seen=seen.value)
        return record

    def end_transactions(self, outcome: Visibility, timestamp_ms: int) -> None:
        """Commit or abort what is open, in every partition that has any; each gets a marker."""
        for p, at in self.partitions.items():
            if at.open:
                ended = sorted(at.open)
                at.open.clear()
                for o in ended:
                    at.seen[o] = outcome
                self.tell("settled", partition=p, offsets=ended, outcome=outcome.value)
                self._mark(p, outcome, timestamp_ms, self.producer_id)
        self.producer_id += 1

    def mark(self, partition: Partition, outcome: Visibility, timestamp_ms: int, count: int = 1) -> None:
        """Markers side by side: as many producers, none of them one that writes here, end a transaction."""
        for producer in itertools.islice(self._idle_producers, count):
            self._mark(partition, outcome, timestamp_ms, producer)

    def _mark(self, partition: Partition, outcome: Visibility, timestamp_ms: int, producer: int) -> None:
        control = Control.COMMIT if outcome is Visibility.COMMITTED else Control.ABORT
        self.append(partition, timestamp_ms, None, (), None, Visibility.MARKER, control=control, producer=producer)

    # the world's side

    def recreate(self, partitions: int) -> None:
        """Delete the topic and make it again: everything in it is gone, and the group's offsets with it."""
        self.incarnation += 1
        self.made_with = partitions
        self._old_views = []
        self.partitions = {Partition(p): KeptPartition() for p in range(partitions)}
        self.ever += [(self.topic_id, p, at) for p, at in self.partitions.items()]
        self.group = {}
        self.tell("topic made")

    def add_partition(self) -> None:
        self.partitions[Partition(len(self.partitions))] = at = KeptPartition()
        self.ever.append((self.topic_id, len(self.partitions) - 1, at))

    def lag(self, looks: int, *, shows: int) -> None:
        """So many of the next looks at the topic are answered by a broker that has heard of its first partitions only,
        since the others were added. 0: by none."""
        self._old_views = [shows] * looks

    def retain_from(self, partition: Partition, offset: Offset) -> None:
        """As Kafka does: up to the high watermark, whatever transaction is open there."""
        at = self.partitions[partition]
        at.log_start = min(max(at.log_start, offset), at.end)
        self.tell("retained", partition=partition, log_start=at.log_start)

    def lose(self, partition: Partition, offset: Offset) -> None:
        """As a cleaner or a broken broker does: the offset is covered, and there is nothing at it."""
        at = self.partitions[partition]
        at.seen[offset] = Visibility.GONE
        at.open.discard(offset)
        self.tell("lost", partition=partition, offset=offset)

    def truncate(self, partition: Partition, offset: Offset, *, backup: bool = False) -> None:
        """An unclean election: a replica leads that never had what lies from here on. Its offsets come again."""
        at = self.partitions[partition]
        cut = max(offset, at.log_start)
        lived = [at.epoch] * (at.end - cut)
        at.cut_off += zip(at.records[cut:], at.seen[cut:], at.epochs[cut:], lived, strict=True)
        for kept in (at.records, at.seen, at.heads, at.epochs):
            del kept[cut:]  # type: ignore[attr-defined]
        at.open = {o for o in at.open if o < cut}
        at.begins = {producer: o for producer, o in at.begins.items() if o < cut}
        at.cuts.append((at.epoch, cut))
        at.epoch += 1
        self._jumped = {place for place in self._jumped if place[:2] != (self.topic_id, partition) or place[2] < cut}
        self.tell("truncated", partition=partition, end=cut, backup=backup)

    def put_back(self, partition: Partition, offset: Offset, epoch: int, *, elected: bool = True) -> None:
        """Its brokers' disks are put back from a backup that was made in this leader epoch, and ended at the offset;
        then they are started, which begins the next epoch: perhaps one that was there before. Or they go on in the very
        epoch, where nobody is `elected`: controllers know of no other."""
        at = self.partitions[partition]
        self.truncate(partition, offset, backup=True)
        at.cuts = [(ended, where) for ended, where in at.cuts[:-1] if ended < epoch]
        if elected:
            at.cuts.append((epoch, at.end))
        at.epoch = epoch + elected

    def restart(self, partition: Partition) -> None:
        """An election that cuts nothing off."""
        self.partitions[partition].epoch += 1

    def reset_group(self, partition: Partition, offset: Offset) -> None:
        """As Kafka's own tools do it: an offset without metadata."""
        self.group[partition] = GroupOffset(offset, "")
        self.tell("reset", partition=partition, offset=offset)

    def expire_group(self, partition: Partition) -> None:
        self.group.pop(partition, None)
        self.tell("expired", partition=partition)

    # for the oracle

    def committed(self) -> list[Record]:
        """Every record that was ever there for readers of committed data, gone or not, all topics of this name."""
        return [record for record, _ in self.lives()]

    def lives(self) -> list[tuple[Record, tuple[int, int]]]:
        """The same with the first and the last leader epoch in which it was there."""
        found: list[tuple[Record, tuple[int, int]]] = []
        for _, _, at in self.ever:
            there = zip(at.records, at.seen, at.epochs, strict=True)
            found += [(r, (since, FOR_EVER)) for r, seen, since in there if seen is Visibility.COMMITTED]
            found += [(r, (since, until)) for r, seen, since, until in at.cut_off if seen is Visibility.COMMITTED]
        return found

    def lies_there(self, record: Record) -> bool:
        """Whether it still is what lies at its place: not cut off since."""
        at = self.partitions.get(record.partition)
        return record.topic_id != self.topic_id or (
            at is not None and record.offset < at.end and at.records[record.offset] is record
        )

    def cut_off_after(self, record: Record) -> int:
        """How many records that took the place of this one, which was cut off, were so, too."""
        at = self.partitions[record.partition]
        there = [one for one, *_ in at.cut_off if one.offset == record.offset]
        return next(n for n, one in enumerate(reversed(there)) if one is record)

    def open_offsets(self) -> bool:
        return any(at.open for at in self.partitions.values())

    def _shown(self) -> tuple[Partition, ...]:
        there = tuple(sorted(self.partitions))
        return there[: self._old_views.pop()] if self._old_views else there

    def _partition(self, topic: str, partition: Partition) -> KeptPartition:
        if topic != self.name:
            # The client waits for the topic to appear, as for a partition, and gives up at its deadline.
            raise Transient(f"asking for offsets of topic {topic}: no answer")
        found = self.partitions.get(partition)
        if found is None:
            raise Transient(f"asking for offsets of topic {topic} partition {partition}: no such partition yet")
        return found

    @staticmethod
    def _offset_at(at: KeptPartition, time_ms: int, end: Offset) -> Offset:
        return next((Offset(o) for o in range(at.log_start, end) if at.records[o].timestamp_ms >= max(time_ms, 0)), end)
