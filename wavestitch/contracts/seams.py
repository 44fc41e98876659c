"""Waveforms that a batch of a backfill read a part of: where its pieces lie, for a batch that reads them together.

Taken from what was read alone, so that a step that is carried through again says the same. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from wavestitch.contracts.assembly import assemble
from wavestitch.contracts.chunk_table import NONE, ChunkTable, Rows
from wavestitch.contracts.offset_range import OffsetRange, joined
from wavestitch.contracts.plan import Plan, Scope
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.start_times import start_times_ns
from wavestitch.contracts.versioned import Versioned


@dataclass(frozen=True, slots=True)
class Part:
    """What a batch has read of a waveform that it owns and that is not whole in it. `count`: of its chunks, as they
    say; `seqs`: which of them are here, as half-open runs; `places`: where they lie."""

    waveform_id: str
    count: int | None
    seqs: tuple[tuple[int, int], ...]
    places: tuple[OffsetRange, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    plan_id: str
    parts: tuple[Part, ...]


PARTS = Versioned(Parts, "what a batch has read of waveforms across its cuts", "run the batch's reassemble step again")


def parts_of(plan: Plan, table: ChunkTable) -> Parts:
    """Of the waveforms in the plan's scope, those that are open by what this batch has read alone."""
    found = []
    chunks = table.facts(_may_be_open(table, plan.scope)) if plan.scope is not None else []
    for waveform_id, made in sorted(assemble(chunks, plan.stream.limits).items()):
        if made.reason is not Reason.OPEN:
            continue
        copies = (*made.pieces, *made.repeats)
        count = next((c.count for c in copies if c.count is not None), None)
        seqs = joined(OffsetRange(0, c.seq, c.seq + 1) for c in made.pieces if c.seq is not None)
        places = joined(OffsetRange(c.partition, c.offset, c.offset + 1) for c in copies)
        found.append(Part(waveform_id, count, tuple((s.start, s.end) for s in seqs), tuple(places)))
    return Parts(plan.plan_id, tuple(found))


def _may_be_open(table: ChunkTable, scope: Scope) -> Rows:
    """The valid rows of waveforms that start in the scope and have fewer pieces here than they say, or don't say."""
    rows = np.flatnonzero(table.valid)
    waveforms = len(table.ids)
    pieces = np.unique((table.waveform[rows].astype(np.int64) << 32) | table.seq[rows]) >> 32
    have = np.bincount(pieces, minlength=waveforms)
    count = np.full(waveforms, NONE, np.int64)
    np.maximum.at(count, table.waveform[rows], table.whole_count[rows])
    starts = start_times_ns(table, rows)
    owned = np.zeros(waveforms, np.bool_)
    owned[table.waveform[rows[(scope.start_ns <= starts) & (starts < scope.end_ns)]]] = True
    wanted: Rows = rows[(owned & ((count == NONE) | (have < count)))[table.waveform[rows]]]
    return wanted


def across_cuts(parts: Iterable[Parts]) -> tuple[dict[str, tuple[OffsetRange, ...]], list[str]]:
    """Where the pieces lie of each waveform that several batches have together, and the ids of those that lack some."""
    by_id: dict[str, list[Part]] = defaultdict(list)
    for batch in parts:
        for part in batch.parts:
            by_id[part.waveform_id].append(part)
    whole, lacking = {}, []
    for waveform_id, mine in sorted(by_id.items()):
        counts = [p.count for p in mine if p.count is not None]
        have = joined(OffsetRange(0, *run) for p in mine for run in p.seqs)
        if len(mine) > 1 and counts and [(0, max(counts))] == [(r.start, r.end) for r in have]:
            whole[waveform_id] = tuple(joined(r for p in mine for r in p.places))
        else:
            lacking.append(waveform_id)
    return whole, lacking
