"""The two edges that the steps speak to, as protocols: the log (Kafka) and the tables (Iceberg).

The steps in `wavestitch.batch` know these alone, so that the same step functions run on the real parts and on an
in-memory log and table, where every interleaving and every crash can be played.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.held import HeldChunk, PublishedWaveform
from wavestitch.contracts.position import GroupOffset, Head, Position


@dataclass(frozen=True, slots=True)
class TopicView:
    """What the broker says about a topic. `max_message_bytes`: the broker's limit for one record batch. `compression`:
    with `producer` whoever writes chooses, and a batch of a few kilobytes may hold gigabytes."""

    name: str
    topic_id: str
    partitions: tuple[int, ...]
    compacted: bool
    max_message_bytes: int
    compression: str = "producer"


class PartitionEnds(NamedTuple):
    """`log_start` and the ends of one partition: `stable_end` for read_committed readers, `high_watermark` of all."""

    log_start: int
    stable_end: int
    high_watermark: int
    leader_epoch: int | None


class Probe(NamedTuple):
    """Records that were looked at, and what they take stored: key, headers and value."""

    records: int
    bytes: int


class Log(Protocol):
    """The Kafka edge, as far as planning and projecting need it."""

    def topic(self, name: str) -> TopicView:
        """Raises `Refused` where the topic does not exist, `Transient` where the broker does not answer."""

    def ends(self, topic: str, partitions: Sequence[int]) -> dict[int, PartitionEnds]:
        """All partitions, or an error: a missing one is a failed plan, never an empty one."""

    def offsets_at(self, topic: str, times_ms: Mapping[int, int]) -> dict[int, int]:
        """Per partition, the first offset whose record time is at or after the time; the stable end where none is."""

    def probe(self, topic: str, starts: Mapping[int, int]) -> Probe:
        """A few records of each partition from these offsets on, as samples of their size. Bounded in time and bytes;
        no records where none came in time or none may be read: nothing is decided by it but an estimate."""

    def members(self, group: str) -> Sequence[str]:
        """Live members of the consumer group (client id and host); empty for a group that does not exist."""

    def group_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> dict[int, GroupOffset | None]:
        """Committed offsets; None where there is none. An offset that could not be fetched is an error, not None."""

    def commit_group(self, group: str, topic: str, positions: Mapping[int, Position], metadata: str) -> None:
        """Write the offsets of all given partitions with `metadata`; any partition's error is raised."""


class CommitConflict(WavestitchError):
    """Somebody else committed first: nothing was written; look at the head again."""


@dataclass(frozen=True, slots=True)
class StagedFile:
    """One Parquet file of rows to publish, under its final name, durable before it is committed."""

    path: str
    bytes: int
    digest: str
    rows: int


@dataclass(frozen=True, slots=True)
class HeldRow:
    """A row to append to the held table.

    `landing` and `row`: where its payload and raw headers lie (full path); None where an earlier row of the same
    coordinate has them.
    """

    held: HeldChunk
    landing: str | None
    row: int


@dataclass(frozen=True, slots=True)
class Remains:
    """What a table has left whose newest head was expired by somebody else's tool.

    `snapshot_id`: main's newest; `last_sequence`: how many snapshots were ever committed, so that no head's number is
    beyond it; `rows`: published rows that are there; `left`: the newest head that is left anywhere in the metadata, out
    of main's reach.
    """

    table: str
    snapshot_id: int | None
    last_sequence: int
    rows: int
    left: Head | None


class Tables(Protocol):
    """The Iceberg edge of one stream."""

    def remains(self) -> Remains | None:
        """What is left of a table without a head; None where its head is there, or where there is no table."""

    def commit_rebuilt(self, remains: Remains, new: Head) -> Head:
        """One snapshot with `new` on top of what remains. Raises `CommitConflict` where it is not as it was."""

    def table_uuid(self) -> str | None:
        """The waveforms table's own UUID, which no other table ever has; None where there is no table yet."""

    def head(self) -> Head | None:
        """The newest snapshot in main's ancestry that carries our keys; None before the first."""

    def heads(self) -> Sequence[Head]:
        """All heads in main's ancestry, newest first."""

    def published(self, ids: Collection[str]) -> dict[str, PublishedWaveform]:
        """What is published of these waveforms, looked up in the whole table as it is now."""

    def held_snapshot(self) -> int | None:
        """The held table's current snapshot."""

    def held_rows(self) -> list[HeldChunk]:
        """Every row of the held table, payload aside, whether its decision was committed or not."""

    def append_held(self, plan_id: str, rows: Sequence[HeldRow]) -> None:
        """Append rows; rows that stand there already under the same decision and coordinate are not added again."""

    def commit(self, base: Head | None, new: Head, files: Sequence[StagedFile]) -> Head:
        """The compare-and-set: one snapshot with `files` and the head's keys, on top of the newest snapshot of all.

        `base`: the head that the decision was made on (None: the table is made). Raises `CommitConflict` where the
        newest head is another one or somebody commits meanwhile, `StateUnknown` where the outcome is not known.
        """

    def batches(self, *, since: int = 0, plan_id: str | None = None) -> list[BatchRow]:
        """The history, newest first: of heads from number `since` on, and of one plan where it is named."""

    def recorded(self, *, since: int = 0) -> set[tuple[int, str]]:
        """Sequence and decision of the heads from number `since` on that stand in the history."""

    def append_batches(self, rows: Iterable[BatchRow]) -> None:
        """Add rows to the history; a decision that stands there already is not added again."""
