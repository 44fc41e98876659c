"""What is normal is decided for all waveforms at once: those whose pieces are all there once, new, and agree.

`find_plain` finds the waveforms of a batch that `assemble_waveform` would call whole and `decide` would publish, each
row of them as a piece, by arithmetic on columns. Whatever it is not sure of is left to them: repeats, conflicts, what
is held or published, what is missing, too large or implausible, and numbers near the ends of what a column can say.
Both make one decision: `tests/both_ways.py` compares them wherever the tests decide. Pure. Keeps I2 and I3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.chunk_table import NONE, TEXT, ChunkTable, Column, Rows, are_among
from wavestitch.contracts.fates import AllStitched, Evidence, Stitched
from wavestitch.contracts.held import HeldChunk, PublishedWaveform
from wavestitch.contracts.metadata_columns import read_metadata
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import milliseconds
from wavestitch.contracts.stitched_waveforms import StitchedWaveforms
from wavestitch.contracts.stream import Limits

_FAR_MS = 1 << 61
"""A record time beyond this is left to whoever reckons without bounds."""
_FAR_NS = float(1 << 61)
"""Half of `MAX_TIME_NS`: floating numbers are good enough up to here."""
Chosen = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PlainWaveforms:
    """Waveform `n` is the rows `rows[first[n]:first[n + 1]]` of the table, in order of sequence, and has the id number
    `waveform[n]` of it. In order of these numbers. `start_ns`: since the epoch. `sources`: texts, as a dictionary."""

    table: ChunkTable
    waveform: Rows
    rows: Rows
    first: Rows
    start_ns: Rows
    sources: pa.Array

    def __len__(self) -> int:
        return len(self.waveform)

    @cached_property
    def ids(self) -> pa.Array:
        return self.table.ids.take(pa.array(self.waveform))

    @cached_property
    def is_plain(self) -> Chosen:
        """By row of the table."""
        found = np.zeros(len(self.table), np.bool_)
        found[self.rows] = True
        return found

    def others(self) -> list[ChunkFacts]:
        """All other chunks and records of the table, in its order."""
        return self.table.facts(np.flatnonzero(~self.is_plain))

    def without(self, chosen: Chosen) -> PlainWaveforms:
        """Less those that are chosen, by their numbers here."""
        if not chosen.any():
            return self
        sizes = np.diff(self.first)
        kept = ~chosen
        return replace(
            self,
            waveform=self.waveform[kept],
            rows=self.rows[np.repeat(kept, sizes)],
            first=_starts(sizes[kept]),
            start_ns=self.start_ns[kept],
            sources=self.sources.filter(pa.array(kept)),
        )


def no_plain(table: ChunkTable) -> PlainWaveforms:
    nothing = np.empty(0, np.int64)
    return PlainWaveforms(table, nothing, nothing, np.zeros(1, np.int64), nothing, _texts([]))


def find_plain(
    plan: Plan,
    evidence: Evidence,
    table: ChunkTable,
    *,
    held: Sequence[HeldChunk],
    published: Mapping[str, PublishedWaveform],
) -> PlainWaveforms:
    """The waveforms of which every row is published, and nothing else is to be said. `table`: the evidence's chunks."""
    if evidence.park or not len(table) or not table.is_in_order:
        return no_plain(table)
    known = {*published, *evidence.elsewhere, *(h.chunk.waveform_id for h in held if h.chunk.waveform_id is not None)}
    if not plan.accepts:
        known.update(i for i, why in evidence.failed.items() if why)
    odd = are_among(table.ids, known)
    if plan.promotion is not None:
        odd |= ~are_among(table.ids, plan.promotion.ids)
    if not isinstance(evidence.stitched, AllStitched):
        odd |= ~are_among(table.ids, _good(evidence.stitched))
    chosen = table.valid & ~np.append(odd, True)[table.waveform]
    return _whole(_in_order(table, chosen), plan) if chosen.any() else no_plain(table)


def _good(stitched: Mapping[str, Stitched]) -> Collection[str] | pa.Array:
    if isinstance(stitched, StitchedWaveforms):
        return stitched.good
    return [i for i, s in stitched.items() if s.reason is None]


def _in_order(table: ChunkTable, chosen: Chosen) -> PlainWaveforms:
    """The chosen rows by waveform and sequence."""
    rows = np.flatnonzero(chosen)
    # One number instead of two columns, and stable: where the log has them in order, they are.
    keys = (table.waveform[rows].astype(np.int64) << 32) | table.seq[rows]
    order = np.argsort(keys, kind="stable")
    rows, keys = rows[order], keys[order] >> 32
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    nothing = np.zeros(len(begins), np.int64)
    return PlainWaveforms(table, keys[begins], rows, np.append(begins, len(rows)), nothing, _texts([""]).take(nothing))


def _whole(found: PlainWaveforms, plan: Plan) -> PlainWaveforms:
    """Those of them that are certain to be whole and allowed: `_judge` and `_conflict` of `assembly`, by columns."""
    t, rows, begins = found.table, found.rows, found.first[:-1]
    sizes = np.diff(found.first)

    def each(reduce: Any, values: Column) -> Column:
        result: Column = reduce.reduceat(values, begins)
        return result

    seq, meta = t.seq[rows], t.meta[rows]
    counts, digests = t.whole_count[rows], t.digest[rows]
    count = each(np.maximum, counts)
    digest = each(np.maximum, digests)
    odd = each(np.logical_or, seq != np.arange(len(rows)) - np.repeat(begins, sizes))
    odd |= each(np.minimum, meta) != each(np.maximum, meta)
    odd |= each(np.logical_or, (counts != NONE) & (counts != np.repeat(count, sizes)))
    odd |= each(np.logical_or, (digests != NONE) & (digests != np.repeat(digest, sizes)))
    odd |= count != sizes
    total = each(np.add, t.length[rows].astype(np.int64))
    limits: Limits = plan.stream.limits
    odd |= (total > limits.max_waveform_bytes) | (sizes > limits.max_chunks)
    about = _Facts.of(t.metas, meta[begins])
    times = t.timestamp_ms[rows]
    odd |= each(np.logical_or, (times > _FAR_MS) | (times < -_FAR_MS)) | ~about.known
    if not plan.accepts:
        distance = each(np.minimum, np.abs(np.repeat(about.start_ns // 1_000_000, sizes) - times))
        odd |= distance > milliseconds(limits.max_clock_skew)
    samples = total // about.sample_bytes
    if not plan.accepts:
        odd |= (about.sample_count != NONE) & (about.sample_count != samples)
    odd |= np.abs(about.start_ns) + np.maximum(samples - 1, 0) * 1e9 / about.rate_hz > _FAR_NS
    if plan.scope is not None:
        odd |= (about.start_ns < plan.scope.start_ns) | (about.start_ns >= plan.scope.end_ns)
    return replace(found, start_ns=about.start_ns, sources=about.sources).without(odd)


@dataclass(frozen=True, slots=True, eq=False)
class _Facts:
    """What the metadata of each waveform say. `known`: whether they say anything; else the rest means nothing."""

    known: Chosen
    start_ns: Rows
    rate_hz: npt.NDArray[np.float64]
    sample_bytes: Rows
    sample_count: Rows
    sources: pa.Array

    @classmethod
    def of(cls, metas: pa.Array, numbers: Column) -> _Facts:
        """`numbers`: of the texts among `metas`, NONE for none."""
        named = np.zeros(len(metas) + 1, np.bool_)
        named[numbers] = True
        which = np.flatnonzero(named[:-1])
        at = np.full(len(metas) + 1, NONE, np.int64)
        at[which] = np.arange(len(which))
        found = read_metadata(metas.take(pa.array(which))).taken(at[numbers])
        return cls(
            known=found.form != NONE,
            start_ns=found.start_ns,
            rate_hz=found.of_each(lambda m: m.sampling_rate_hz, np.float64, 1.0),
            sample_bytes=found.of_each(lambda m: m.sample_bytes, np.int64, 1),
            sample_count=found.of_each(lambda m: NONE if m.sample_count is None else m.sample_count, np.int64, NONE),
            sources=_texts([*(m.source for m in found.said), ""]).take(pa.array(found.form % (len(found.said) + 1))),
        )


def _texts(found: Sequence[str]) -> pa.Array:
    return pa.array(found, TEXT).dictionary_encode()


def _starts(sizes: Column) -> Rows:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
