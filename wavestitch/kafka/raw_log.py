"""The broker's own record batches of a topic, by fetches that no client library filters: `FetchRaw` on a real cluster.

Reads only. Knows the leaders, follows them when they move, and waits for an answer at most `deadline` seconds. What is
visible is what a committed reader may see: nothing behind an open transaction.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

from confluent_kafka import KafkaError

from wavestitch.contracts.errors import Transient
from wavestitch.contracts.position import LastBatch
from wavestitch.contracts.quantities import EpochMs, LeaderEpoch, Offset, Partition
from wavestitch.contracts.record_batches import AbortedTransaction, FetchRaw, RawFetch
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.cluster_addresses import ask_cluster
from wavestitch.kafka.connection import Connection, Disconnected, OutOfTime, with_before
from wavestitch.kafka.kafka_errors import is_passing, translate
from wavestitch.kafka.kafka_python import consumer
from wavestitch.kafka.raw_batches import OtherFormat, RawBatch, first_batch, offsets_of, split_batches

T = TypeVar("T")

_FETCH, _EPOCH = 12, 3
_CONSUMER = -1
_UNCOMMITTED, _COMMITTED = 0, 1
_DIGITS = 32
_LEAST_BATCH, _AT_ONCE = 16 << 10, 4 << 20
"""So many bytes of each partition are asked for at first, where one batch is wanted; and of all of them at once."""
_WAIT_MS = 500
_PAUSE_SECONDS = 0.05


class Throttled(Exception):
    """A consumer quota keeps the broker from sending anything for so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"throttled for {seconds:.1f} s")
        self.seconds = seconds


class OutOfRange(Exception):
    """The log does not hold the offset any more, or not yet."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"offset {offset} is out of range")
        self.offset = offset


class Diverged(Exception):
    """The log that is there now has nothing of the leader epoch that was named before the offset, or not so much: what
    it has up to `epoch`, the last one before, ends at `end`."""

    def __init__(self, epoch: int, end: int) -> None:
        super().__init__(f"leader epoch {epoch} ends at {end}")
        self.epoch = epoch
        self.end = end


class Fetched(NamedTuple):
    batches: Sequence[RawBatch]
    aborted: Sequence[AbortedTransaction]
    stable_end: int


class Asked(NamedTuple):
    """One fetch: where each partition begins, how many bytes of it and of all may come, and for whom."""

    starts: Mapping[Partition, Offset]
    part_bytes: Mapping[Partition, int]
    most_bytes: int
    isolation: int = _COMMITTED
    last_epoch: LeaderEpoch | None = None
    rack: str = ""


class RawLog:
    """Fetches of one topic. Use as a context manager: leaving it closes the connections.

    Who leads is asked by the leader epoch that we know of: a broker that knows of another one refuses, and does not
    answer from a log that it does not lead any more.

    `rack`: where `fetch` is at home: it goes to the replica that the leader names for that (KIP-392). One that says an
    error, or goes away, may only lag behind: from then on the leaders are asked.
    """

    def __init__(self, settings: KafkaSettings, topic: str, *, deadline: float = 30.0, rack: str = "") -> None:
        self._settings = settings
        self._topic = topic
        self._deadline = deadline
        self._rack = rack
        self._replicas: dict[int, tuple[str, int]] = {}
        self._ahead: tuple[Connection, Asked] | None = None
        self._brokers: dict[int, tuple[str, int]] = {}
        self._leaders: dict[int, tuple[str, int]] = {}
        self._epochs: dict[int, int] = {}
        self._refused: dict[int, KafkaError] = {}
        self._connections: dict[tuple[str, int], Connection] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def fetcher(self, partition: Partition) -> FetchRaw:
        """What holes are proven by."""
        where = f"topic {self._topic} partition {partition}"

        def fetch(offset: Offset, most_bytes: int, /) -> RawFetch:
            found = self.fetch(partition, offset, most_bytes=most_bytes)
            return RawFetch([offsets_of(batch, where=where) for batch in found.batches], found.aborted)

        return fetch

    def fetch(
        self, partition: Partition, offset: Offset, *, most_bytes: int, last_epoch: LeaderEpoch | None = None
    ) -> Fetched:
        """Whole batches from the one on that holds `offset`; none where the committed log ends there.

        `last_epoch`: leader epoch of what was read before `offset`; a log that was cut off there raises `Diverged`,
        before anything behind it comes.
        Raises `OutOfRange`, `Transient` at the deadline, and `Terminal` or `Refused` where trying again cannot help.
        """
        where = f"topic {self._topic} partition {partition}"
        until = time.monotonic() + self._deadline
        found = self._until_taken(
            partition,
            lambda: self._fetch(partition, offset, most_bytes=most_bytes, last_epoch=last_epoch, until=until),
            until,
            doing=f"fetching raw record batches of {where} from offset {offset}",
        )
        if found.error_code:
            raise OutOfRange(offset)
        if _diverges(found):
            raise Diverged(found.diverging_epoch.epoch, found.diverging_epoch.end_offset)
        batches = [b for b in split_batches(memoryview(found.records or b""), where=where) if b.end > offset]
        if not batches and found.records:
            raise Transient(f"{where}: the broker sent no whole record batch from offset {offset} on; try again")
        aborted = [AbortedTransaction(t.producer_id, t.first_offset) for t in found.aborted_transactions or ()]
        return Fetched(batches, aborted, found.last_stable_offset)

    def ask_ahead(
        self, partition: Partition, offset: Offset, *, most_bytes: int, last_epoch: LeaderEpoch | None = None
    ) -> None:
        """Have the broker send what a `fetch` of just this will ask for next, while what came is looked at.

        An error is told by that fetch, which then asks again.
        """
        until = time.monotonic() + self._deadline
        replica = self._replicas.get(partition)
        try:
            broker = self._leader(partition, until) if replica is None else self._connect(replica, until)
            asked = self._asked(partition, offset, most_bytes, last_epoch)
            if broker.waits_for_answer:
                return
            broker.send(self._request(asked), deadline=until)
        except Disconnected:
            return
        self._ahead = broker, asked

    def batches_at(self, offsets: Mapping[Partition, Offset]) -> dict[Partition, LastBatch | None]:
        """Per partition, the record batch that holds the offset (SHA-256, 32 hex digits); None where it is none of
        format 2, the log has nothing there (any more), or we may not read what it has.

        One request for all partitions of a broker, in a few rounds: most batches are small, and of a large one a broker
        sends nothing but to the partition that is named first. What is asked for is filled up with what lies behind: so
        it doubles for those alone that had room, and at most twice of what is wanted comes, or what is asked for first.
        Raises as `fetch` does; the deadline is that of the next batch to come.
        """
        return self._first_batches(offsets, _last_batch)

    def times_at(self, offsets: Mapping[Partition, Offset]) -> dict[Partition, EpochMs | None]:
        """Per partition, the newest record time of the record batch that holds the offset, or else of the next one;
        -1 where its records have none, None as for `batches_at`. Asks and raises as that does."""
        return self._first_batches(offsets, lambda batch, _: EpochMs(batch.max_timestamp))

    def _first_batches(
        self, offsets: Mapping[Partition, Offset], say: Callable[[RawBatch, Offset], T | None]
    ) -> dict[Partition, T | None]:
        """`say`: what is to be known of a batch, by which alone it is kept."""
        until = time.monotonic() + self._deadline
        found: dict[Partition, T | None] = {}
        most = dict.fromkeys(offsets, _LEAST_BATCH)
        while left := {p: at for p, at in offsets.items() if p not in found}:
            if time.monotonic() > until:
                p = min(left)
                raise Transient(
                    f"topic {self._topic} partition {p}: no record batch came from offset {left[p]} within "
                    f"{self._deadline:.0f} s; is its leader up? Try again{self._said_of([p])}",
                    partition=p,
                )
            try:
                came = self._until_answered(partial(self._fetch_first, left, most, until), until)
            except Throttled as quota:
                self._wait_out(quota, until, f"topic {self._topic}")
                continue
            for parts in came:
                room = _AT_ONCE - sum(len(part.records or b"") for part in parts.values())
                for p, part in parts.items():
                    found |= self._batch_in(p, offsets[p], part, say)
                    if p not in found and most[p] <= room:
                        most[p] *= 2
            if left.keys() & found.keys():
                until = time.monotonic() + self._deadline
            else:
                time.sleep(_PAUSE_SECONDS)
        return found

    def _fetch_first(
        self, offsets: Mapping[Partition, Offset], most: Mapping[Partition, int], until: float
    ) -> list[dict[Partition, Any]]:
        """Of each broker and partition what it sends first from the offset on, perhaps nothing."""
        by_leader: dict[Connection, list[Partition]] = {}
        for p in sorted(offsets):
            by_leader.setdefault(self._leader(p, until), []).append(p)
        found: list[dict[Partition, Any]] = []
        for leader, partitions in by_leader.items():
            starts = {p: offsets[p] for p in partitions}
            # Whatever transaction is open there: it is asked what lies there, not what may be read.
            asked = Asked(starts, {p: most[p] for p in partitions}, _AT_ONCE, isolation=_UNCOMMITTED)
            answer = self._ask_for(asked, leader, until)
            with leader.told():
                found.append(_parts_of(answer, self._topic))
        return found

    def _batch_in(
        self, partition: Partition, offset: Offset, part: Any, say: Callable[[RawBatch, Offset], T | None]
    ) -> dict[Partition, T | None]:
        """What is to be known of the first batch from the offset on; empty where nothing came of it yet."""
        where = f"topic {self._topic} partition {partition}"
        if part.error_code in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError.TOPIC_AUTHORIZATION_FAILED):
            return {partition: None}
        if part.error_code:
            error = KafkaError(part.error_code)
            if not is_passing(error, found=True):
                raise translate(error, f"fetching the record batch at offset {offset} of {where}")
            self._turn_from_leader(partition, error)
            return {}
        self._refused.pop(partition, None)
        try:
            batch = first_batch(memoryview(part.records or b""), where=where)
        except OtherFormat:
            return {partition: None}
        return {} if batch is None else {partition: say(batch, offset)}

    def epoch_end(self, partition: Partition, epoch: LeaderEpoch) -> Offset | None:
        """Where what was written up to this leader epoch ends in the log as it is now (KIP-320); None where the epoch
        is newer than all that it knows. Raises `Transient` at the deadline, `Terminal` or `Refused` as `fetch` does.
        """
        until = time.monotonic() + self._deadline
        doing = f"asking topic {self._topic} partition {partition} where leader epoch {epoch} ends"
        found = self._until_taken(partition, lambda: self._epoch_end(partition, epoch, until=until), until, doing=doing)
        return None if found.end_offset < 0 else Offset(found.end_offset)

    def _epoch_end(self, partition: Partition, epoch: LeaderEpoch, *, until: float) -> Any:
        topic = consumer.OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        leader = self._leader(partition, until)
        known = self._epochs.get(partition, -1)
        part = topic.OffsetForLeaderPartition(partition=partition, current_leader_epoch=known, leader_epoch=epoch)
        request = consumer.OffsetForLeaderEpochRequest[_EPOCH](
            replica_id=_CONSUMER, topics=[topic(topic=self._topic, partitions=[part])]
        )
        answer = leader.ask(request, deadline=until)
        with leader.told():
            return answer.topics[0].partitions[0]

    def _fetch(
        self, partition: Partition, offset: Offset, *, most_bytes: int, last_epoch: LeaderEpoch | None, until: float
    ) -> Any:
        replica = self._replicas.get(partition)
        asked = self._asked(partition, offset, most_bytes, last_epoch)
        broker = self._leader(partition, until) if replica is None else self._connect(replica, until)
        answer = self._ask_for(asked, broker, until)
        with broker.told():
            part = _parts_of(answer, self._topic)[partition]
        if replica is not None and (part.error_code or _diverges(part)):
            self._leave_replicas()
        elif replica is None and self._rack and part.preferred_read_replica in self._brokers:
            self._replicas[partition] = self._brokers[part.preferred_read_replica]
        else:
            return part
        return self._fetch(partition, offset, most_bytes=most_bytes, last_epoch=last_epoch, until=until)

    def _asked(self, partition: Partition, offset: Offset, most_bytes: int, last_epoch: LeaderEpoch | None) -> Asked:
        return Asked({partition: offset}, {partition: most_bytes}, most_bytes, last_epoch=last_epoch, rack=self._rack)

    def _leave_replicas(self) -> None:
        self._rack = ""
        self._replicas.clear()

    def _ask_for(self, asked: Asked, broker: Connection, until: float) -> Any:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] is broker and ahead[1] == asked:
            answer = broker.answer(deadline=until)
        else:
            answer = broker.ask(self._request(asked), deadline=until)
        if answer.error_code:
            raise translate(KafkaError(answer.error_code), f"fetching raw record batches of topic {self._topic}")
        if not answer.responses:  # what a broker says to a client above its quota
            raise Throttled(answer.throttle_time_ms / 1000)
        return answer

    def _request(self, asked: Asked) -> Any:
        parts = [
            consumer.FetchRequest.FetchTopic.FetchPartition(
                partition=p,
                current_leader_epoch=self._epochs.get(p, -1),
                fetch_offset=offset,
                last_fetched_epoch=-1 if asked.last_epoch is None else asked.last_epoch,
                log_start_offset=-1,
                partition_max_bytes=asked.part_bytes[p],
            )
            for p, offset in asked.starts.items()
        ]
        return consumer.FetchRequest[_FETCH](
            replica_id=-1,
            max_wait_ms=_WAIT_MS,
            min_bytes=1,
            max_bytes=asked.most_bytes,
            isolation_level=asked.isolation,
            session_id=0,
            session_epoch=-1,
            topics=[consumer.FetchRequest.FetchTopic(topic=self._topic, partitions=parts)],
            forgotten_topics_data=[],
            rack_id=asked.rack,
        )

    def _wait_out(self, quota: Throttled, until: float, where: str) -> None:
        wait = max(quota.seconds, _PAUSE_SECONDS)
        if time.monotonic() + wait > until:
            raise Transient(
                f"{where}: the broker sends nothing for {quota.seconds:.1f} s: this client is above its quota "
                f"(consumer_byte_rate or request_percentage), and did not come below it within {self._deadline:.0f} s; "
                "raise the quota, read with fewer workers (reading.workers), or try again",
                throttled_seconds=quota.seconds,
            ) from quota
        time.sleep(wait)

    def _leader(self, partition: int, until: float) -> Connection:
        if partition not in self._leaders:
            self._learn(until)
        if partition not in self._leaders:
            raise Disconnected(f"topic {self._topic} partition {partition} has no leader; try again")
        return self._connect(self._leaders[partition], until)

    def _connect(self, at: tuple[str, int], until: float) -> Connection:
        if at not in self._connections:
            self._connections[at] = Connection(self._settings, *at, deadline=until)
        return self._connections[at]

    def _learn(self, until: float) -> None:
        """Ask for the leaders, at the brokers that the settings name; after a refusal of another one than before, which
        may be cut off from whoever elects them."""
        brokers, (found,) = ask_cluster(self._settings, [self._topic], until=until, anew=bool(self._refused))
        self._brokers = brokers
        if found.error_code:
            error = KafkaError(found.error_code)
            # Whoever reads has found the topic: one that is not known here is gone since, or not heard of yet.
            if is_passing(error, found=True):
                raise Disconnected(f"topic {self._topic}: {error.str()}; try again")
            raise translate(error, f"looking for the leaders of topic {self._topic}")
        self._leaders = {
            p.partition_index: brokers[p.leader_id] for p in found.partitions or () if p.leader_id in brokers
        }
        # A broker that lags behind may name a leader of before; it is none any more for who knows of the next one.
        for p in found.partitions or ():
            self._epochs[p.partition_index] = max(p.leader_epoch, self._epochs.get(p.partition_index, -1))

    def _turn_from_leader(self, partition: Partition, refusal: KafkaError) -> None:
        self._refused[partition] = refusal
        self._leaders.pop(partition, None)

    def _said_of(self, partitions: Iterable[int]) -> str:
        """What was refused last, for the end of a sentence."""
        said = {e.name(): f"{e.str()} ({e.name()})" for p in partitions if (e := self._refused.get(p)) is not None}
        return f" (the last answer before: {'; '.join(said.values())})" if said else ""

    def _until_taken(self, partition: Partition, ask: Callable[[], Any], until: float, *, doing: str) -> Any:
        """What is said of the partition, once that is neither a quota nor a refusal which passes; it has no error, or
        the offset is out of range."""
        while True:
            try:
                found = self._until_answered(ask, until)
            except Throttled as quota:
                self._wait_out(quota, until, f"topic {self._topic} partition {partition}")
                continue
            if found.error_code in (0, KafkaError.OFFSET_OUT_OF_RANGE):
                self._refused.pop(partition, None)
                return found
            error = KafkaError(found.error_code)
            if not is_passing(error, found=True) or time.monotonic() + _PAUSE_SECONDS > until:
                raise translate(error, doing, found=True)
            self._turn_from_leader(partition, error)
            time.sleep(_PAUSE_SECONDS)

    def _until_answered(self, ask: Callable[[], Any], until: float) -> Any:
        """Ask again where a broker has gone, until the deadline; what was the matter before that is told, too."""
        said: Disconnected | None = None
        while True:
            try:
                return ask()
            except Disconnected as gone:
                said = said if isinstance(gone, OutOfTime) else gone
                for connection in self._connections.values():
                    connection.close()
                self._connections.clear()
                self._leaders.clear()
                self._leave_replicas()
                if time.monotonic() + _PAUSE_SECONDS > until:
                    told = with_before(gone, said)
                    raise type(told)(f"{told.message}{self._said_of(self._refused)}", was=told.was) from gone
                time.sleep(_PAUSE_SECONDS)


def _diverges(part: Any) -> bool:
    return part.diverging_epoch is not None and part.diverging_epoch.epoch >= 0


def _parts_of(answer: Any, topic: str) -> dict[Partition, Any]:
    """What is said of the topic's partitions."""
    said = (part for found in answer.responses if found.topic == topic for part in found.partitions)
    return {Partition(part.partition_index): part for part in said}


def _last_batch(batch: RawBatch, offset: Offset) -> LastBatch | None:
    if not batch.base_offset <= offset < batch.end:
        return None
    return LastBatch(LeaderEpoch(batch.leader_epoch), hashlib.sha256(batch.data).hexdigest()[:_DIGITS])
