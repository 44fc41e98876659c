"""The two edges that the steps speak to, as protocols: the log (Kafka) and the tables (Iceberg).

The steps in `wavestitch.batch` know these alone, so that the same step functions run on the real parts and on an
in-memory log and table, where every interleaving and every crash can be played.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple, Protocol

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.held import HeldChunk, HeldLook, IdsLook, PublishedWaveform
from wavestitch.contracts.held_left import HeldLeft
from wavestitch.contracts.held_mark import HeldFile, HeldMark, mark_of
from wavestitch.contracts.position import GroupOffset, Head, LastBatch, Position
from wavestitch.contracts.quantities import BEGINNING, EpochMs, LeaderEpoch, Offset, Partition


@dataclass(frozen=True, slots=True)
class TopicView:
    """What the broker says about a topic. `max_message_bytes`: the broker's limit for one record batch. `compression`:
    of its batches; only with `uncompressed` does the broker look at how large their records are. `retention_ms`: how
    long records stay, by their record time; None for ever, or where only their size counts. `retention_bytes`: what
    stays of each partition at least; None where their size does not count. `append_time`: whether record times are the
    broker's, which never go back."""

    name: str
    topic_id: str
    partitions: tuple[Partition, ...]
    compacted: bool
    max_message_bytes: int
    compression: str
    retention_ms: int | None = None
    retention_bytes: int | None = None
    append_time: bool = False


class PartitionEnds(NamedTuple):
    """`log_start` and the ends of one partition: `stable_end` for read_committed readers, `high_watermark` of all."""

    log_start: Offset
    stable_end: Offset
    high_watermark: Offset
    leader_epoch: LeaderEpoch | None


class Probe(NamedTuple):
    """Records that were looked at, and what they take stored: key, headers and value. `times`: the record time of the
    first of them, by partition."""

    records: int
    bytes: int
    times: Mapping[Partition, EpochMs] = MappingProxyType({})


class Log(Protocol):
    """The Kafka edge, as far as planning and projecting need it."""

    def topic(self, name: str) -> TopicView:
        """Raises `Refused` where the topic does not exist, `Transient` where the broker does not answer."""

    def ends(self, topic: str, partitions: Sequence[Partition]) -> dict[Partition, PartitionEnds]:
        """All partitions, or an error: a missing one is a failed plan, never an empty one."""

    def epoch_ends(self, topic: str, epochs: Mapping[Partition, LeaderEpoch]) -> dict[Partition, Offset | None]:
        """Per partition, where what was written up to this leader epoch ends today; None for an epoch that is newer
        than all that the log knows."""

    def batches_at(self, topic: str, offsets: Mapping[Partition, Offset]) -> dict[Partition, LastBatch | None]:
        """Per partition, the record batch that holds this offset, below the high watermark; None where the log has
        nothing there (any more), or what tells no leader epoch, and where nobody lets us read it."""

    def times_at(self, topic: str, offsets: Mapping[Partition, Offset]) -> dict[Partition, EpochMs | None]:
        """Per partition, the record time of what lies at this offset, below the high watermark, or else next: the
        newest of its record batch, which one producer sent at once. -1 where it has none; None as for `batches_at`."""

    def offsets_at(
        self, topic: str, times: Mapping[Partition, EpochMs], *, committed: bool = True
    ) -> dict[Partition, Offset]:
        """Per partition, the first offset whose record time is at or after the time; the stable end where none is.
        `committed`: without it, up to the high watermark."""

    def probe(self, topic: str, starts: Mapping[Partition, Offset]) -> Probe:
        """A few records of each partition from these offsets on, as samples of their size. Bounded in time and bytes;
        no records where none came in time or none may be read: nothing is decided by it but an estimate."""

    def members(self, group: str) -> Sequence[str]:
        """Live members of the consumer group (client id and host); empty for a group that does not exist."""

    def group_offsets(
        self, group: str, topic: str, partitions: Sequence[Partition]
    ) -> dict[Partition, GroupOffset | None]:
        """Committed offsets; None where there is none. An offset that could not be fetched is an error, not None."""

    def commit_group(self, group: str, topic: str, positions: Mapping[Partition, Position], metadata: str) -> None:
        """Write the offsets of all given partitions with `metadata`; any partition's error is raised."""


class ShownBatches(NamedTuple):
    """Rows of the history, and a sentence for each that cannot be read."""

    rows: list[BatchRow]
    odd: tuple[str, ...]


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
    place and piece has them, or a record that is no chunk is held without.
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


class HeldStaging(NamedTuple):
    """Of which decision held rows are staged. `generation`, `sequence`: of the head that it is to become. `counts`,
    `chunk_bytes`: as the mark is to have them. `clock_ms`: the plan's clock."""

    plan_id: str
    decision: str
    generation: int
    sequence: int
    counts: Mapping[str, int]
    chunk_bytes: int
    clock_ms: EpochMs = BEGINNING

    def mark(self, snapshot_id: int, files: Iterable[HeldFile]) -> HeldMark:
        """Of the snapshot that was staged, with these live files."""
        return mark_of(snapshot_id, files, self.counts, self.chunk_bytes)

    def on(self, base: HeldMark | None) -> HeldMark | None:
        """Of the base's own snapshot, where there is no row to add."""
        return None if base is None else replace(base, counts=self.counts, chunk_bytes=self.chunk_bytes)


class Tables(Protocol):
    """The Iceberg edge of one stream."""

    def remains(self) -> Remains | None:
        """What is left of a table without a head; None where its head is there, or where there is no table."""

    def held_left(self) -> HeldLeft:
        """The snapshots of the held table that are there, whether a head names them or not."""

    def held_at(self, snapshot_id: int) -> HeldMark | None:
        """The mark of a snapshot of the held table as it is, with all rows for counts; None where it has none. Raises
        `Altered` where it is not there."""

    def published_by_plan(self) -> dict[str, int]:
        """How many rows the published table has of each plan: reads a column of all of it."""

    def commit_rebuilt(self, remains: Remains, new: Head) -> Head:
        """One snapshot with `new` on top of what remains. Raises `CommitConflict` where it is not as it was."""

    def table_uuid(self) -> str | None:
        """The waveforms table's own UUID, which no other table ever has; None where there is no table yet."""

    def head(self) -> Head | None:
        """The newest snapshot in main's ancestry that carries our keys; None before the first."""

    def heads(self) -> Sequence[Head]:
        """All heads in main's ancestry, newest first."""

    def published(self, ids: Collection[str], *, of: int | None = None) -> dict[str, PublishedWaveform]:
        """What is published of these waveforms, looked up in the whole table as it is now, or in its snapshot
        `of`, which must be there."""

    def held(self, mark: HeldMark | None, look: HeldLook) -> list[HeldChunk]:
        """The rows that are asked for, payload aside, of the snapshot that the head names, proven against its mark.

        With every row that comes all others about the same place and piece come, too. Raises `Altered` where the
        snapshot is not what the head vouches for.
        """

    def held_ids(self, mark: HeldMark | None, look: IdsLook) -> dict[str, int]:
        """The waveforms that are asked for, sorted, and how many such rows each has; no junk."""

    def held_files(self, mark: HeldMark | None) -> list[HeldFile]:
        """The data files that the mark vouches for: how much is held why, without opening one."""

    def stage_held(self, base: HeldMark | None, rows: Sequence[HeldRow], *, staging: HeldStaging) -> HeldMark | None:
        """A snapshot of the held table with these rows on top of the base's, which counts once a head names it.

        Done again for the same decision on the same base it is the same snapshot, and no row is added twice.
        """

    def settle_held(self) -> None:
        """Let main of the held table be what the head names, and drop what was staged and can never be committed.

        A projection, like the group's offsets: made after a commit, and again by whoever comes next.
        """

    def commit(
        self, base: Head | None, new: Head, files: Sequence[StagedFile], *, instead_of: Collection[str] = ()
    ) -> Head:
        """The compare-and-set: one snapshot with `files` and the head's keys, on top of the newest snapshot of all.

        `base`: the head that the decision was made on (None: the table is made). `instead_of`: the waveforms whose rows
        are taken out in the same snapshot; all other rows of their files stay, proven to be the same. Raises
        `CommitConflict` where the newest head is another one or somebody commits meanwhile, `StateUnknown` where the
        outcome is not known.
        """

    def refuse_fixed_rows(self) -> None:
        """Raises `Refused` where no published row can be taken out or put back: somebody has a column of their own."""

    def put_back(
        self, base: Head | None, new: Head, *, of: int, ids: Collection[str], instead_of: Collection[str]
    ) -> Head:
        """As `commit`, with the rows that snapshot `of` has of these waveforms, as they were. Raises `Altered` where it
        does not have each of them."""

    def batches(self, *, since: int = 0, plan_id: str | None = None, every_table: bool = False) -> list[BatchRow]:
        """The history, newest first: of heads from number `since` on, and of one plan where it is named. `every_table`:
        also of one that was there before, or is now, which says nothing of this one's heads."""

    def shown_batches(self, *, since: int = 0, plan_id: str | None = None) -> ShownBatches:
        """The same for people, whom one damaged row must not keep from the others."""

    def recorded(self, *, since: int = 0) -> set[tuple[int, str]]:
        """Sequence and decision of the heads from number `since` on that stand in the history."""

    def append_batches(self, rows: Iterable[BatchRow]) -> None:
        """Add rows to the history, as of this table; a decision that stands there already is not added again."""
