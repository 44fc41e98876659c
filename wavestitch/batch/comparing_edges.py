"""The real edges of a verification: those of every batch, with a place of their own that goes when it ends.

It stitches in its own process, where the steps of a batch ask a Spark: it has time, and takes nobody's slot.
All that it leaves lies below `LANDING/STREAM/.verify-NONCE`, locked by the process that works there: plans, landing,
stitched files, Data Docs. No `run --plan` finds its plans, no ingest its gates; maintenance takes what a killed one
left.
"""

from __future__ import annotations

import fcntl
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from consumers.unit_reader import read_units
from spark_apps.in_process import stitch_here
from wavestitch.batch.deployment import Deployment, plain_name
from wavestitch.batch.deployment_edges import DeploymentEdges, ReadUnits
from wavestitch.batch.landing_facts import reader_stops
from wavestitch.batch.publishes_nothing import PinnedTables, PublishesNothing
from wavestitch.batch.work_folder import LOCK, VERIFYING, kept_rows
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.batch_size import ReaderStop
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held import HeldChunk, HeldLook, PublishedWaveform
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan, Scope
from wavestitch.contracts.position import Head
from wavestitch.contracts.row_face import RowFace, RowPiece
from wavestitch.contracts.stitch_job import stitch_report_from_json
from wavestitch.contracts.stream import Stream
from wavestitch.modes import make_folder, opener
from wavestitch.plain_files import below
from wavestitch.settings_sections import Payload
from wavestitch.tables.catalog import CatalogSettings
from wavestitch.tables.lookup.row_faces import staged_faces
from wavestitch.tables.stream_tables import StreamTables
from wavestitch.write_once import disk_errors

_STAGED = "staged"


class TableSnapshot:
    """Implements `Snapshot`: the table as it was when this was made."""

    def __init__(self, tables: StreamTables, stream: str) -> None:
        found = tables.pinned_rows()
        if found is None:
            raise Refused(f"stream {stream} has no head yet: nothing was published that could be verified")
        self._tables = tables
        self._rows, self.head = found

    def heads(self) -> list[Head]:
        return self._rows.heads()

    def rows_from(self, ranges: Sequence[OffsetRange], topic_id: str) -> Iterator[tuple[str, Sequence[RowPiece]]]:
        return self._rows.rows_from(ranges, topic_id)

    def rows_starting(self, scope: Scope) -> Iterator[tuple[str, Sequence[RowPiece]]]:
        return self._rows.rows_starting(scope)

    def faces(self, ids: Collection[str]) -> Iterator[RowFace]:
        return self._rows.faces(ids)

    def published(self, ids: Collection[str]) -> dict[str, PublishedWaveform]:
        return self._rows.published(ids)

    def held(self, look: HeldLook) -> list[HeldChunk]:
        return self._tables.held(self.head.held, look)


class PinnedStreamTables(PinnedTables, StreamTables):
    """The stream's tables as a batch of a verification sees them. What it stitches is staged in the batch's folder."""

    def __init__(self, settings: CatalogSettings, stream: str, *, pinned: Sequence[Head]) -> None:
        super().__init__(settings, stream)
        self.pinned = pinned

    def data_folder(self, work: Path | None = None) -> Path:
        if work is None:
            raise ValueError("who verifies stages nothing beside the folder of a batch")
        return make_folder(work / _STAGED)


class VerifyingEdges(PublishesNothing, DeploymentEdges):
    """`ComparingEdges` of one stream of a deployment."""

    def __init__(
        self,
        deployment: Deployment,
        stream: str,
        *,
        definition: Stream | None = None,
        read: ReadUnits = read_units,
    ) -> None:
        """`definition`: in place of the stream's own."""
        self._definition = definition
        self._landing = deployment.settings.landing
        self._place = below(self._landing, plain_name(stream)) / f"{VERIFYING}{secrets.token_hex(8)}"
        # `docs` below it, too: what the gate has to show of these batches goes with them. And the payload of what is
        # read, which goes to no store: all of it goes with the folder.
        own = deployment.settings.model_copy(
            update={"landing": self._place, "docs": self._place / "docs", "payload": Payload()}
        )
        super().__init__(replace(deployment, settings=own), stream, read=read, submit=stitch_here, gate_ahead=True)

    @cached_property
    def stream(self) -> Stream:
        return self._definition or super().stream

    @cached_property
    def snapshot(self) -> TableSnapshot:
        return TableSnapshot(self.deployment.tables(self.name), self.name)

    @cached_property
    def tables(self) -> StreamTables:
        return PinnedStreamTables(self.deployment.catalog_settings(), self.name, pinned=self.snapshot.heads())

    @cached_property
    def _kept(self) -> Callable[[str], BatchRow | None]:
        """Those of the stream: its batches lie elsewhere."""
        return kept_rows(self._landing, self.name)

    def kept(self, decision: str) -> BatchRow | None:
        return self._kept(decision)

    def reader_stops(self) -> list[ReaderStop]:
        return reader_stops(self._landing, self.name)

    def faces(self, plan: Plan, report: str | None) -> Iterator[RowFace]:
        if report is None:
            return
        folder = self.deployment.folder(self.name, plan.plan_id)
        found = stitch_report_from_json(folder.read_digested(report, kind="report"))
        for name in sorted({r.file for r in found.results if r.file is not None}):
            yield from staged_faces(folder.path / _STAGED / name)

    @contextmanager
    def place(self) -> Iterator[None]:
        try:
            with disk_errors("verifying"):
                make_folder(self._place)
                lock = open(self._place / LOCK, "w", opener=opener)  # noqa: SIM115 - closed below
            with lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        finally:
            shutil.rmtree(self._place, ignore_errors=True)
