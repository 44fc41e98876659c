"""Offsets that a slice did not deliver: found while reading, and each one proven or lost by name. Keeps I8.

An offset without a record is explained by the broker's own record batches, and by nothing else: it lies in a control
batch (the marker that ends a transaction), or in a batch of a transaction that was aborted. How many lie side by side
says nothing. An offset that no batch covers, or that its batch has lost, is gone; one whose record is there was skipped
by the reading. Holds for every stream: a producer's transaction harms nobody, whether it was announced or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from wavestitch.contracts.errors import DataLost, Transient
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.record_batches import Control, FetchRaw, RecordBatch, told_apart
from wavestitch.contracts.way_past import Interval, past_bad_place, past_retention
from wavestitch.contracts.written import WrittenHole

_LEAST_BYTES = 64 << 10
_MOST_BYTES = 4 << 20
_NAMED = 100
"""So many intervals an error carries as facts."""


class Proof(StrEnum):
    """Why an offset has no record."""

    COMMIT_MARKER = "commit_marker"
    ABORT_MARKER = "abort_marker"
    CONTROL = "control"
    """A control batch of another kind."""
    ABORTED = "aborted_records"


class Hole(NamedTuple):
    """Offsets `[start, end)` without a record, and the proof, which is the same for all of them."""

    start: Offset
    end: Offset
    proof: Proof


class Proven(NamedTuple):
    """Holes, and when what proves them was written."""

    holes: list[Hole]
    written: list[WrittenHole]


class HoleFinder:
    """Rising offsets in, the intervals between them out; memory grows with the holes, not with the records."""

    __slots__ = ("_expected", "_holes")

    def __init__(self, start: Offset) -> None:
        self._expected = start
        self._holes: list[Interval] = []

    def add(self, offset: Offset) -> None:
        if offset != self._expected:
            self._holes.append((self._expected, offset))
        self._expected = Offset(offset + 1)

    def add_run(self, start: Offset, end: Offset) -> None:
        """All offsets from `start` to `end`."""
        self.add(start)
        self._expected = end

    def close(self, end: Offset) -> list[Interval]:
        """All holes before `end`."""
        return [*self._holes, (self._expected, end)] if self._expected < end else list(self._holes)


def prove_holes(
    holes: Sequence[Interval],
    *,
    stream: str,
    topic: str,
    slice_: OffsetRange,
    fetch: FetchRaw,
    kind: PlanKind = PlanKind.INGEST,
    begins: Offset | None = None,
) -> Proven:
    """Every offset of the holes with its proof, neighbours of the same proof joined. `kind`: the plan's, which
    decides about the way past a loss; `begins`: where it does in this partition.

    Raises `DataLost` naming the offsets that are gone and the way on that reads all the others, `Transient` where
    records are there that the reading skipped. What `fetch` raises (no right, no answer) goes through: no proof, no
    batch.
    """
    found: list[tuple[Offset, Offset, Proof | None]] = []
    skipped: list[Interval] = []
    written: list[WrittenHole] = []
    for start, end, batch, aborted in _covered(holes, fetch):
        if batch is not None:
            written.append(WrittenHole(start, end, batch.leader_epoch))
        if batch is None:
            found.append((start, end, None))
        elif (proof := _proof(batch, aborted)) is not None:
            found.append((start, end, proof))
        else:
            gone = [(Offset(o), Offset(o + 1)) for o in range(start, end) if o in batch.missing]
            found += [(a, b, None) for a, b in gone]
            if len(gone) < end - start:
                skipped.append((start, end))
    joined = _join(found)
    lost = [(a, b) for a, b, proof in joined if proof is None]
    if lost:
        way_past = past_bad_place(kind, stream, slice_, lost, begins)
        raise _lost(lost, topic=topic, slice_=slice_, way_past=way_past)
    if skipped:
        raise Transient(
            f"topic {topic} {slice_}: offsets {show_intervals(skipped)} were skipped by the reading, and the broker "
            "has them; nothing was kept, try again",
            topic=topic,
            partition=slice_.partition,
        )
    return Proven([Hole(a, b, proof) for a, b, proof in joined if proof is not None], written)


def _covered(holes: Sequence[Interval], fetch: FetchRaw) -> Iterator[tuple[Offset, Offset, RecordBatch | None, bool]]:
    """The holes, cut where batches begin and end, each piece with its batch (None: no batch covers it) and whether that
    belongs to an aborted transaction."""
    most = _LEAST_BYTES
    waiting = list(reversed(holes))
    while waiting:
        offset = waiting[-1][0]
        before, got = len(waiting), fetch(offset, most)
        reached = offset
        for batch, aborted in told_apart(got.batches, got.aborted):
            if batch.end <= reached:
                continue
            yield from _cut(waiting, batch.start, None, False)
            yield from _cut(waiting, batch.end, batch, aborted)
            reached = batch.end
        if reached == offset:  # the log ends here
            yield from _cut(waiting, waiting[0][1], None, False)
        # Where holes are long or close together a larger fetch proves more; far apart, it would bring payload.
        more = before - len(waiting) > 1 or (bool(waiting) and waiting[-1][0] == reached)
        most = min(2 * most, _MOST_BYTES) if more else max(most // 2, _LEAST_BYTES)


def _cut(
    waiting: list[Interval], end: Offset, batch: RecordBatch | None, aborted: bool
) -> Iterator[tuple[Offset, Offset, RecordBatch | None, bool]]:
    """Take what lies before `end` from the holes that wait (the first one last)."""
    while waiting and waiting[-1][0] < end:
        a, b = waiting.pop()
        if b > end:
            waiting.append((end, b))
        yield a, min(b, end), batch, aborted


def _proof(batch: RecordBatch, aborted: bool) -> Proof | None:
    match batch.control:
        case Control.COMMIT:
            return Proof.COMMIT_MARKER
        case Control.ABORT:
            return Proof.ABORT_MARKER
        case Control.OTHER:
            return Proof.CONTROL
    return Proof.ABORTED if aborted else None


def _join(found: Sequence[tuple[Offset, Offset, Proof | None]]) -> list[tuple[Offset, Offset, Proof | None]]:
    joined: list[tuple[Offset, Offset, Proof | None]] = []
    for a, b, proof in found:
        if joined and joined[-1][1] == a and joined[-1][2] is proof:
            joined[-1] = (joined[-1][0], b, proof)
        else:
            joined.append((a, b, proof))
    return joined


def _lost(lost: Sequence[Interval], *, topic: str, slice_: OffsetRange, way_past: str) -> DataLost:
    return DataLost(
        f"topic {topic} {slice_}: offsets {show_intervals(lost)} hold no record, no marker and nothing that was "
        "aborted, although the log still covers them: they were deleted or compacted away, or a broker lost them. "
        f"Nothing of this batch was published. {way_past}",
        topic=topic,
        partition=slice_.partition,
        offsets=[list(interval) for interval in lost[:_NAMED]],
    )


def lost_to_retention(
    *,
    stream: str,
    topic: str,
    slice_: OffsetRange,
    position: int,
    log_start: Offset,
    kind: PlanKind = PlanKind.INGEST,
    begins: Offset | None = None,
) -> DataLost:
    """The log begins behind `position`, from where on it was still to be read: what was planned and lies before that
    beginning is gone, what has been read of it, too, since no part of a batch is kept. `kind`, `begins`: as of
    `prove_holes`."""
    end = min(log_start, slice_.end)
    first = slice_.start if begins is None or kind is not PlanKind.INGEST else begins
    return DataLost(
        f"topic {topic} partition {slice_.partition}: offsets [{first}, {end}) were deleted before all of them were "
        f"read (reading [{slice_.start}, {slice_.end}) had come to {position}, the log now begins at {log_start}). "
        f"{past_retention(kind, stream, slice_, log_start, begins)}",
        topic=topic,
        partition=slice_.partition,
        offsets=[[first, end]],
        log_start=log_start,
    )


def show_intervals(intervals: Sequence[Interval], most: int = 5) -> str:
    shown = ", ".join(f"[{a}, {b})" for a, b in intervals[:most])
    return shown if len(intervals) <= most else f"{shown} and {len(intervals) - most} more"
