"""The disk of one batch, in memory: its landing, its staged rows, and the history row kept against a crash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from tests.fakes.fake_rows import FakeFiles, PublishedRow
from tests.fakes.faults import Edge, may_land_late
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.ports import StagedFile
from wavestitch.contracts.row_check import StagedRow, StagedRows


class FakeStaging(Edge):
    """Implements `wavestitch.batch.publish.Staging`. `stitched`: the row of every waveform that was stitched.
    `landed`: the landing files by number."""

    def __init__(
        self, plan_id: str, files: FakeFiles, stitched: Mapping[str, PublishedRow], landed: Sequence[str]
    ) -> None:
        self._plan_id = plan_id
        self._files = files
        self._stitched = stitched
        self._landed = landed

    @may_land_late
    def files_for(self, publish: Sequence[str]) -> list[StagedFile]:
        with self.act("staging.files_for", error=Transient):
            rows = [self._stitched[i] for i in publish]
            if not rows:
                return []
            digest = hashlib.sha256(repr(rows).encode()).hexdigest()[:16]  # two attempts may have read other copies
            name = f"{self._plan_id}/staged-{'+'.join(publish)}-{digest}"
            self._files.staged.setdefault(name, rows)
            return [StagedFile(name, sum(len(r.samples) for r in rows), "", len(rows))]

    def rows_in(self, files: Sequence[StagedFile]) -> list[StagedRows]:
        return [StagedRows.of([_staged(row) for row in self._files.staged[file.path]]) for file in files]

    def landing_of(self, file: int) -> str:
        return self._landed[file]

    @may_land_late
    def keep(self, row: BatchRow) -> None:
        with self.act("staging.keep", error=Transient):
            self._files.kept[row.decision] = row


def _staged(row: PublishedRow) -> StagedRow:
    return StagedRow(row.waveform_id, [(t, *c) for t, c in zip(row.topic_ids, row.chunks, strict=True)])


def landing_name(plan_id: str, wanted: OffsetRange, digest: str) -> str:
    """Named by content: two readings of one plan never write over each other."""
    return f"{plan_id}/slice-p{wanted.partition}-{wanted.start}-{wanted.end}-{digest}"
