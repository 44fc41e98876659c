"""Iceberg in memory, as far as batches can tell: snapshots made by compare-and-set, held rows, published rows, history.

`MemoryFiles` is the disk beside it: what was staged or landed outlives any run that wrote it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from tests.memory.faults import Edge
from wavestitch.contracts.batch_row import BatchRow, batch_row_from_json
from wavestitch.contracts.errors import Refused, StateUnknown, Transient
from wavestitch.contracts.held import HeldChunk, PublishedChunk, PublishedWaveform
from wavestitch.contracts.ports import CommitConflict, HeldRow, Remains, StagedFile
from wavestitch.contracts.position import Head, head_from_properties


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One row of the published table, bytes included. `topic_ids`: of each piece."""

    waveform_id: str
    samples: bytes
    topic_ids: tuple[str, ...]
    chunks: tuple[PublishedChunk, ...]


@dataclass(frozen=True, slots=True)
class StoredHeld:
    """One row of the held table; `payload` None where an earlier row of the coordinate has it."""

    plan_id: str
    held: HeldChunk
    payload: bytes | None


class MemoryFiles:
    """Write-once files by name: landings (payload by row) and staged rows."""

    def __init__(self) -> None:
        self.landings: dict[str, tuple[bytes | None, ...]] = {}
        self.staged: dict[str, list[PublishedRow]] = {}
        self.kept: dict[str, BatchRow] = {}


class MemoryTables(Edge):
    """The tables of one stream. Implements `wavestitch.contracts.ports.Tables`.

    `snapshots`: all heads that were ever committed, oldest first; `expired`: how many of them maintenance has dropped.
    """

    def __init__(self, files: MemoryFiles, *, uuid: str = "6d0f4f0e-0000-4000-8000-000000000001") -> None:
        """`uuid`: the table's own. It is there from the first commit on; a catalog that was lost gets another one."""
        self.files = files
        self.uuid = uuid
        self.snapshots: list[Head] = []
        self.expired = 0
        self.headless = 0
        """The snapshot that another engine put in place of all of ours; 0 where there is none."""
        self._snapshot_ids = itertools.count(1000)
        self.rows: list[tuple[int, PublishedRow]] = []
        self.held: list[StoredHeld] = []
        self.history: list[BatchRow] = []

    # the port

    def table_uuid(self) -> str | None:
        with self.act("tables.table_uuid", error=Transient):
            return self.uuid if self.snapshots else None

    def head(self) -> Head | None:
        with self.act("tables.head", error=Transient):
            self._refuse_headless()
            return self.snapshots[-1] if self.snapshots else None

    def remains(self) -> Remains | None:
        with self.act("tables.remains", error=Transient):
            if not self.snapshots or not self.headless:
                return None
            return Remains(self.uuid, self.headless, self.headless - 999, len(self.rows), None)

    def commit_rebuilt(self, remains: Remains, new: Head) -> Head:
        with self.act("tables.commit_rebuilt", error=StateUnknown, conflict=lambda: CommitConflict("a lost race")):
            if remains.snapshot_id != self.headless:
                raise CommitConflict("the table is not as it was looked at")
            self.headless = 0
            return self._snapshot(new, [])

    def heads(self) -> Sequence[Head]:
        with self.act("tables.heads", error=Transient):
            self._refuse_headless()
            return self.snapshots[self.expired :][::-1]

    def published(self, ids: Collection[str]) -> dict[str, PublishedWaveform]:
        with self.act("tables.published", error=Transient):
            return {
                r.waveform_id: PublishedWaveform(r.waveform_id, r.chunks) for _, r in self.rows if r.waveform_id in ids
            }

    def held_snapshot(self) -> int | None:
        with self.act("tables.held_snapshot", error=Transient):
            return len(self.held) or None

    def held_rows(self) -> list[HeldChunk]:
        with self.act("tables.held_rows", error=Transient):
            return [row.held for row in self.held]

    def append_held(self, plan_id: str, rows: Sequence[HeldRow]) -> None:
        with self.act("tables.append_held", error=Transient):
            there = {(row.held.decision, row.held.chunk.coordinate) for row in self.held}
            for row in rows:
                if (row.held.decision, row.held.chunk.coordinate) not in there:
                    payload = self.files.landings[row.landing][row.row] if row.landing is not None else None
                    clean = row.held.chunk._replace(file=-1, row=-1)
                    self.held.append(StoredHeld(plan_id, replace(row.held, chunk=clean), payload))
                    self.tell("held", row=self.held[-1])

    def commit(self, base: Head | None, new: Head, files: Sequence[StagedFile]) -> Head:
        with self.act("tables.commit", error=StateUnknown, conflict=lambda: CommitConflict("a race that was lost")):
            newest = self.snapshots[-1] if self.snapshots else None
            self._refuse_headless()
            if (base and base.snapshot_id) != (newest and newest.snapshot_id):
                raise CommitConflict("the newest head is another one")
            return self._snapshot(new, [row for file in files for row in self.files.staged[file.path]])

    def _snapshot(self, new: Head, rows: list[PublishedRow]) -> Head:
        made = head_from_properties(new.to_properties(), next(self._snapshot_ids))
        assert made is not None
        self.snapshots.append(made)
        self.rows += [(made.sequence, row) for row in rows]
        self.tell("committed", head=made, rows=rows)
        return made

    def _refuse_headless(self) -> None:
        if self.headless:
            raise Refused("the head has been expired; look at `wavestitch rewind waves --to rebuilt`")

    def batches(self, *, since: int = 0, plan_id: str | None = None) -> list[BatchRow]:
        with self.act("tables.batches", error=Transient):
            return [b for b in self.history[::-1] if b.sequence >= since and plan_id in (None, b.plan_id)]

    def recorded(self, *, since: int = 0) -> set[tuple[int, str]]:
        with self.act("tables.recorded", error=Transient):
            return {(b.sequence, b.decision) for b in self.history if b.sequence >= since}

    def append_batches(self, rows: Iterable[BatchRow]) -> None:
        with self.act("tables.append_batches", error=Transient):
            there = {(b.sequence, b.decision) for b in self.history}
            new = [batch_row_from_json(b.to_json()) for b in rows if (b.sequence, b.decision) not in there]
            self.history += new
            for row in new:
                self.tell("recorded", row=row)

    # the world's side

    def expire_snapshots(self, keep: int) -> None:
        """Drop old snapshots, but none before its row stands in the history."""
        recorded = {(b.sequence, b.decision) for b in self.history}
        while self.expired < len(self.snapshots) - keep:
            oldest = self.snapshots[self.expired]
            if (oldest.sequence, oldest.decision) not in recorded:
                break
            self.expired += 1
            self.tell("forgotten", head=oldest)

    def expire_head(self) -> None:
        """As another engine does it: a snapshot of its own (a compaction) is newest, and all older ones go."""
        if self.snapshots:
            self.headless = next(self._snapshot_ids)
            self.expired = len(self.snapshots)
            self.tell("headless")

    def restore(self, sequence: int) -> None:
        """Put back a copy of the catalog from right after this head: what was committed since is in no table."""
        kept = [h for h in self.snapshots if h.sequence <= sequence]
        self.snapshots, self.expired, self.headless = kept, min(self.expired, len(kept)), 0
        self.rows = [(s, row) for s, row in self.rows if s <= sequence]
        decisions = {h.decision for h in kept}
        self.held = [row for row in self.held if row.held.decision in decisions]
        self.history = [b for b in self.history if b.sequence <= sequence]
        self.tell("restored", sequence=sequence)

    # for readers and the oracle

    def payload(self, coordinate: tuple[str, int, int]) -> bytes | None:
        return next(
            (r.payload for r in self.held if r.held.chunk.coordinate == coordinate and r.payload is not None), None
        )
