"""Backfills over memory edges: an archive, whose waveforms were recorded years before they are sent."""

from __future__ import annotations

from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges, run_batch
from wavestitch.batch.backfill import Backfilled, run_backfill
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.run import RunOptions, Silent
from wavestitch.batch.run import run_batch as carry_batch
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.stream import Stream

START_MS = 1_767_614_400_000
DAY = 86_400_000
SKEW = {"max_clock_skew": "36500 d"}
ARCHIVE = make_stream(limits=SKEW, reading={"min_slice": 1})
LATEST = make_stream(limits=SKEW, reading={"min_slice": 1}, start="latest")
LIMITED = make_stream(limits={**SKEW, "max_batch_records": 5})


def send(bench: Bench, waveform_id: str, *, day: int, chunks: int = 1, partition: int = 0, first: int = 0) -> None:
    """Of an archive: sent now, recorded years ago."""
    for seq in range(first, chunks):
        send_chunk(
            bench.log,
            waveform_id,
            seq,
            at_ms=START_MS,
            start_ms=START_MS - 1000 * DAY + day * DAY,
            count=chunks,
            partition=partition,
        )


def days(first: int, end: int) -> Scope:
    beginning = START_MS - 1000 * DAY
    return Scope((beginning + first * DAY) * 1_000_000, (beginning + end * DAY) * 1_000_000)


def edges(bench: Bench, stream: Stream) -> FakeEdges:
    return FakeEdges(bench, stream, START_MS, Carrying())


def backfill(bench: Bench, stream: Stream, scope: Scope) -> Backfilled:
    return run_backfill(edges(bench, stream), scope, RunOptions(), watcher=Silent())


def published(bench: Bench) -> list[str]:
    return sorted(row.waveform_id for _, row in bench.tables.rows)


def positions(bench: Bench) -> dict[int, int]:
    head = bench.tables.head()
    return {p: at.next_offset for p, at in head.positions.items()}


def read_by_backfills(bench: Bench) -> list[OffsetRange]:
    return [r for plan in bench.plans.values() if plan.scope is not None for r in plan.ranges]


def run_plan(bench: Bench, plan_id: str) -> None:
    carry_batch(edges(bench, LIMITED), RunOptions(plan_id=plan_id), watcher=Silent())


def ingest(bench: Bench, stream: Stream = ARCHIVE) -> None:
    run_batch(bench, stream, PlanRequest(), clock_ms=START_MS)
