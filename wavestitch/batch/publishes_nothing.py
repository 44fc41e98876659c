"""Edges on which a batch can be stitched and validated, and not published: for whoever only wants to compare.

The table is taken for empty, so that what was published is stitched once more; what is held is not looked at, and a
closed gate stays its own. Positions, held rows, history and gates of the stream cannot be changed through it: whatever
would is refused. Of copies that contradict each other the one that was published is taken, as a batch takes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NoReturn, Protocol

import numpy as np

from wavestitch.batch.edges import Edges
from wavestitch.batch.reassemble import Landed
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.errors import Terminal
from wavestitch.contracts.held import HeldChunk, HeldLook, IdsLook, PublishedWaveform
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.parts_index import PartsIndex
from wavestitch.contracts.plan import Plan, Scope
from wavestitch.contracts.ports import HeldRow, HeldStaging, Remains, StagedFile
from wavestitch.contracts.position import Head
from wavestitch.contracts.row_face import RowFace, RowPiece
from wavestitch.contracts.seams import Parts


class Snapshot(Protocol):
    """The table at one snapshot: what is compared with. Never changed, whoever commits meanwhile."""

    @property
    def head(self) -> Head: ...

    def heads(self) -> Sequence[Head]:
        """That one, and those before it that are left, newest first."""

    def rows_from(self, ranges: Sequence[OffsetRange], topic_id: str) -> Iterable[tuple[str, Sequence[RowPiece]]]:
        """Id and pieces of each row that has a piece in these offsets."""

    def rows_starting(self, scope: Scope) -> Iterable[tuple[str, Sequence[RowPiece]]]:
        """The same of each row that starts in the interval."""

    def faces(self, ids: Collection[str]) -> Iterable[RowFace]:
        """All rows with these ids, each as often as it is there."""

    def published(self, ids: Collection[str]) -> Mapping[str, PublishedWaveform]: ...

    def held(self, look: HeldLook) -> Sequence[HeldChunk]:
        """All rows that are asked for, those that do not count included."""


class ComparingEdges(Edges, Protocol):
    """`Edges` of a stream that publish nothing."""

    @property
    def snapshot(self) -> Snapshot: ...

    def faces(self, plan: Plan, report: str | None) -> Iterator[RowFace]:
        """Of the rows that were stitched."""

    def every_record(self, plan: Plan, receipts: Sequence[str]) -> Landed:
        """What a batch read, with the copies that are passed over."""

    def place(self) -> AbstractContextManager[None]:
        """Where its batches lie, while it is open; gone with all that they left when it is closed."""


class PinnedTables:
    """Over the tables of a stream: the head is the first of these for ever, and nothing is published or held. `pinned`:
    that one and those before it, newest first: some may stand in no history yet."""

    pinned: Sequence[Head]

    def head(self) -> Head | None:
        return self.pinned[0]

    def heads(self) -> list[Head]:
        return list(self.pinned)

    def published(self, ids: Collection[str], *, of: int | None = None) -> dict[str, PublishedWaveform]:
        return {}

    def held(self, mark: HeldMark | None, look: HeldLook) -> list[HeldChunk]:
        return []

    def held_ids(self, mark: HeldMark | None, look: IdsLook) -> dict[str, int]:
        return {}

    def commit(
        self, base: Head | None, new: Head, files: Sequence[StagedFile], *, instead_of: Collection[str] = ()
    ) -> Head:
        _refuse("commit")

    def put_back(
        self, base: Head | None, new: Head, *, of: int, ids: Collection[str], instead_of: Collection[str]
    ) -> Head:
        _refuse("put rows back")

    def commit_rebuilt(self, remains: Remains, new: Head) -> Head:
        _refuse("commit a rebuilt head")

    def stage_held(self, base: HeldMark | None, rows: Sequence[HeldRow], *, staging: HeldStaging) -> HeldMark | None:
        _refuse("hold chunks")

    def settle_held(self) -> None:
        _refuse("settle what is held")

    def append_batches(self, rows: Iterable[BatchRow]) -> None:
        _refuse("write history")


class PublishesNothing:
    """Over the edges of a stream: what a batch would leave beside its own files it does not leave."""

    @property
    def snapshot(self) -> Snapshot:
        raise NotImplementedError

    def close_gate(self, plan: Plan, *, report: str | None, verdict: str) -> None:
        """No ingest stops for it."""

    def keep_parts(self, parts: Parts, index: PartsIndex) -> None:
        """No batch comes after it."""

    def every_record(self, plan: Plan, receipts: Sequence[str]) -> Landed:
        found: Landed = super().landed(plan, receipts)  # type: ignore[misc]
        return found

    def landed(self, plan: Plan, receipts: Sequence[str]) -> Landed:
        found = self.every_record(plan, receipts)
        return replace(found, chunks=as_published(found.chunks, self.snapshot))


def as_published(chunks: ChunkTable, snapshot: Snapshot) -> ChunkTable:
    """Without the copies that say something else than what was published, where the log has all of that: across batches
    the first wins. Where it has not, everything stays, and is compared."""
    numbers, times = np.unique(chunks.waveform[chunks.valid], return_counts=True)
    copies = {chunks.ids[n].as_py(): count for n, count in zip(numbers.tolist(), times.tolist(), strict=True)}
    known = snapshot.published(copies.keys())
    repeated = {i: row for i, row in known.items() if copies.get(i, 0) > len(row.chunks)}
    # All at once: each look through the index costs as much as the index is long.
    rows = [n for n in chunks.rows_of(repeated.keys()).tolist() if chunks.valid[n]]
    taken: dict[str, set[int]] = {}
    others: dict[str, list[int]] = {}
    for n, fact in zip(rows, chunks.facts(rows), strict=True):
        waveform_id, seq = fact.waveform_id, fact.seq
        if waveform_id is None or seq is None:
            continue  # no valid chunk is without
        if repeated[waveform_id].has(fact):
            taken.setdefault(waveform_id, set()).add(seq)
        else:
            others.setdefault(waveform_id, []).append(n)
    whole = [i for i, seqs in taken.items() if seqs == set(range(len(repeated[i].chunks)))]
    drop = sorted(n for i in whole for n in others.get(i, ()))
    return chunks.without(drop) if drop else chunks


def _refuse(what: str) -> NoReturn:
    raise Terminal(f"who verifies does not {what}; this is a fault of the program, and nothing was changed")
