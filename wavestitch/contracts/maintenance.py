"""What maintenance looks at, as plain values: snapshots, files, batch folders, held rows. No I/O, no decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.stages import Told


class BatchState(StrEnum):
    """Where the batch of a plan stands. Only `UNDER_WAY` and `UNREADABLE` ones can still commit, for all we know."""

    COMMITTED = "committed"
    ABANDONED = "abandoned"
    FENCED = "fenced"
    UNDER_WAY = "under way"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class BatchFolder:
    """A plan's folder in the landing. `plan` None: it cannot be read, `problem` says why. `newest_ms`: when anything in
    it last changed, ms since the epoch. `payload_bytes`: of landed records, which only a batch under way needs."""

    plan_id: str
    plan: Plan | None
    problem: str
    abandoned: bool
    newest_ms: EpochMs
    files: int
    bytes: int
    payload_bytes: int


class SnapshotFacts(NamedTuple):
    """A snapshot in main's ancestry. `head` None: maintenance made it, or the table has no heads."""

    snapshot_id: int
    timestamp_ms: EpochMs
    operation: str
    head: Head | None


class DataFileFacts(NamedTuple):
    """A live data file. `partition`: as text; files of different partitions are never put together."""

    path: str
    bytes: int
    rows: int
    partition: str


@dataclass(frozen=True, slots=True)
class TableState:
    """A table as it is. `main`: newest first, unbroken. `protected`: snapshots that a branch or a tag names.
    `aside`: how many snapshots lie outside main's ancestry."""

    name: str
    main: tuple[SnapshotFacts, ...]
    protected: frozenset[int]
    aside: int
    files: tuple[DataFileFacts, ...]
    metadata_bytes: int


class StoredFile(NamedTuple):
    """A file in a table's folder. `marks`: by what it is recognised beside its path, of a checksum what the file that
    it belongs to is recognised by, too."""

    path: str
    bytes: int
    modified_ms: EpochMs
    marks: frozenset[str] = frozenset()

    @property
    def covers(self) -> str:
        """Of a checksum file `.NAME.crc`: the file it belongs to. Otherwise itself."""
        folder, _, name = self.path.rpartition("/")
        return f"{folder}/{name[1:-4]}" if name.startswith(".") and name.endswith(".crc") else self.path


class HeldPlace(NamedTuple):
    """One row of the held table and where it lies."""

    file: str
    row: int
    held: HeldChunk
    plan_id: str


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a stream takes up. `snapshots`: per table. `metadata_bytes`: of the three current metadata files."""

    landing_files: int = 0
    landing_bytes: int = 0
    warehouse_files: int = 0
    warehouse_bytes: int = 0
    docs_bytes: int = 0
    metadata_bytes: int = 0
    snapshots: Mapping[str, int] = field(default_factory=dict)
    data_files: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ActionReport:
    """What an action found that may go, or removed. `count` of `unit` (folders, snapshots, rows, files); `bytes` None
    where it cannot be known beforehand. `examples`: some of what goes. `kept`: what stays, and why."""

    action: str
    unit: str
    count: int
    bytes: int | None
    examples: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StageFailure:
    """A stage that did not go through. `altered`: since bytes are not what was written."""

    stage: str
    message: str
    terminal: bool = True
    altered: bool = False


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """One stream's maintenance. Without `applied` nothing was changed and `after` is what was before. `stages`: those
    asked for. `remarks`: what others have changed about the tables."""

    stream: str
    applied: bool
    before: Footprint
    after: Footprint
    actions: tuple[ActionReport, ...]
    remarks: tuple[str, ...] = ()
    failures: tuple[StageFailure, ...] = ()
    stages: tuple[Told, ...] = ()
