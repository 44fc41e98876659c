"""The memory edges of a verification: the product's own mixins over the fakes, and what a fake row says as a face."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from tests.fakes.batch import FakeEdges
from tests.fakes.fake_rows import PublishedRow
from tests.fakes.fake_tables import FakeTables
from wavestitch.batch.publishes_nothing import PinnedTables, PublishesNothing
from wavestitch.contracts.held import HeldChunk, HeldLook, PublishedWaveform
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan, Scope
from wavestitch.contracts.position import Head
from wavestitch.contracts.row_face import COMPARED, RowFace, RowPiece


class PinnedFakeTables(PinnedTables, FakeTables):
    """Over the same state as the tables that it was made of."""

    def __init__(self, tables: FakeTables, pinned: Sequence[Head]) -> None:
        self.__dict__.update(tables.__dict__)
        self.pinned = pinned


class FakeSnapshot:
    """Implements `Snapshot`."""

    def __init__(self, tables: FakeTables) -> None:
        found = tables.head()
        assert found is not None
        self.head, self._tables = found, tables
        plans = {h.sequence: h.plan_id for h in tables.snapshots}
        self._rows = [(plans[sequence], row) for sequence, row in tables.rows]

    def heads(self) -> list[Head]:
        left = self._tables.snapshots[self._tables.expired :]
        return [h for h in reversed(left) if h.sequence <= self.head.sequence]

    def rows_from(self, ranges: Sequence[OffsetRange], topic_id: str) -> Iterator[tuple[str, Sequence[RowPiece]]]:
        for _, row in self._rows:
            pieces = _pieces(row)
            if any(p.topic_id == topic_id and _is_in(p, r) for p in pieces for r in ranges):
                yield row.waveform_id, pieces

    def rows_starting(self, scope: Scope) -> Iterator[tuple[str, Sequence[RowPiece]]]:
        raise NotImplementedError("rows in memory have no start")

    def faces(self, ids: Collection[str]) -> Iterator[RowFace]:
        return (face_of_row(row, plan_id) for plan_id, row in self._rows if row.waveform_id in ids)

    def published(self, ids: Collection[str]) -> dict[str, PublishedWaveform]:
        return {
            r.waveform_id: PublishedWaveform(r.waveform_id, r.chunks) for _, r in self._rows if r.waveform_id in ids
        }

    def held(self, look: HeldLook) -> list[HeldChunk]:
        return self._tables.held(self.head.held, look)


class FakeComparing(PublishesNothing, FakeEdges):
    """Implements `ComparingEdges`."""

    @cached_property
    def snapshot(self) -> FakeSnapshot:
        return FakeSnapshot(self.bench.tables)

    @property
    def tables(self) -> FakeTables:
        return PinnedFakeTables(self.bench.tables, self.snapshot.heads())

    def faces(self, plan: Plan, report: str | None) -> Iterator[RowFace]:
        return (face_of_row(row, plan.plan_id) for row in self.stitching(plan, report).rows.values())

    @contextmanager
    def place(self) -> Iterator[None]:
        bench = self.bench
        left: list[dict[str, Any]] = [bench.plans, bench.landed_records, bench.receipts]
        left += [bench.reports, bench.verdicts, bench.files.landings]
        before = [set(some) for some in left]
        try:
            yield
        finally:
            for some, known in zip(left, before, strict=True):
                for name in set(some) - known:
                    del some[name]


def face_of_row(row: PublishedRow, plan_id: str) -> RowFace:
    samples = hashlib.sha256(row.samples).digest()
    columns = tuple(samples if name == "samples" else b"" for name in COMPARED)
    agrees = len(row.samples) == sum(chunk.length for chunk in row.chunks)
    return RowFace(row.waveform_id, plan_id, columns, _pieces(row), agrees)


def _pieces(row: PublishedRow) -> tuple[RowPiece, ...]:
    return tuple(RowPiece(topic, *chunk) for topic, chunk in zip(row.topic_ids, row.chunks, strict=True))


def _is_in(p: RowPiece, r: OffsetRange) -> bool:
    return p.partition == r.partition and r.start <= p.offset < r.end
