"""Seeded bugs. What a run takes in, and what it says of what it did not find."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from consumers.byte_budget import ByteBudget
from tests.fakes.fake_log import FakeLog
from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import backlog
from wavestitch.batch.plan_request import PlanRequest
from wavestitch.contracts import holes
from wavestitch.contracts.holes import Proof
from wavestitch.tables.lookup.id_index import IdIndex

_FEW = 64
_MARKERS = (Proof.COMMIT_MARKER, Proof.ABORT_MARKER)


@shows(Kind.UNBOUNDED_COST, since=238)
def the_bytes_of_a_batch_are_estimated_and_no_reader_keeps_to_them(patch: Patch) -> None:
    patch.setattr(ByteBudget, "add", lambda *_: None)


@shows(Kind.UNBOUNDED_COST, since=13)
def one_published_id_opens_every_file(patch: Patch) -> None:
    real = IdIndex.files_of

    def wrong(self: IdIndex, table: Any, ids: Any) -> Any:
        found = real(self, table, ids)
        return {name: set(ids) for name in table.files} if found else found

    patch.setattr(IdIndex, "files_of", wrong)


@shows(Kind.UNTRUE, since=4)
def more_markers_side_by_side_than_a_few_pass_for_lost_records(patch: Patch) -> None:
    real = holes._join

    def wrong(found: Any) -> Any:
        joined = real(found)
        return [(a, b, None if p in _MARKERS and b - a > _FEW else p) for a, b, p in joined]

    patch.setattr(holes, "_join", wrong)


@shows(Kind.UNTRUE, since=20)
def a_leader_that_wrote_nothing_passes_for_a_cut(patch: Patch) -> None:
    """Its epoch is a position's, and no log's: whoever begins there is told for ever that it was cut off."""
    real = FakeLog.diverged

    def wrong(self: FakeLog, partition: Any, start: Any, epoch: int) -> bool:
        at = self.partitions.get(partition)
        idle = at is not None and start > at.log_start and epoch not in at.epochs
        return idle or real(self, partition, start, epoch)

    patch.setattr(FakeLog, "diverged", wrong)


@shows(Kind.UNTRUE, since=5)
def an_ingest_of_some_partitions_reads_all(patch: Patch) -> None:
    patch.setattr(PlanRequest, "wants", lambda *_: True)


@shows(Kind.UNTRUE)
def an_ingest_stops_one_short_of_where_it_was_to(patch: Patch) -> None:
    real = backlog._end

    def wrong(stream: Any, request: PlanRequest, *, partition: Any, start: Any, here: Any) -> Any:
        end = real(stream, request, partition=partition, start=start, here=here)
        return end - 1 if partition in request.until and end > start else end

    patch.setattr(backlog, "_end", wrong)


@shows(Kind.UNTRUE)
def an_ingest_goes_past_where_it_was_to_stop(patch: Patch) -> None:
    real = backlog._end

    def wrong(stream: Any, request: PlanRequest, **where: Any) -> Any:
        real(stream, request, **where)  # what it refuses, it refuses
        return real(stream, replace(request, until={}), **where)

    patch.setattr(backlog, "_end", wrong)
