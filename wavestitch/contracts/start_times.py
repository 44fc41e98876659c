"""When the waveforms start of which a batch has read chunks; of blocks of offsets, for the backfills that come later.

By columns, since every batch notes it. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.chunk_metadata import Metadata, parse_metadata
from wavestitch.contracts.chunk_table import ChunkTable, Rows
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plain_waveforms import PlainWaveforms
from wavestitch.contracts.reasons import MAY_BE_CHUNKS
from wavestitch.contracts.start_blocks import ANY_TIME, BLOCK, MOST_BLOCKS


def start_time_ns(chunk: ChunkFacts) -> int:
    """Of the waveform that a valid chunk belongs to."""
    metadata = parse_metadata(chunk.meta or "")
    if not isinstance(metadata, Metadata):
        raise ValueError(f"the chunk at {chunk.place} was taken for valid, but {metadata}")
    return metadata.start_time_ns


def start_times_ns(table: ChunkTable, rows: Rows) -> Rows:
    """The same of rows that are valid chunks; equal metadata are read once."""
    distinct, first, at = np.unique(table.meta[rows], return_index=True, return_inverse=True)
    if not len(distinct):
        return np.empty(0, np.int64)
    return np.array([start_time_ns(c) for c in table.facts(rows[first])], np.int64)[at]


def index_starts(ranges: Sequence[OffsetRange], plain: PlainWaveforms) -> dict[str, list[list[int]]]:
    """By partition, the blocks of these ranges, as the history writes them: `[start, end]` or with both times. `plain`:
    those of the batch, with the table of all that it has read."""
    if sum(_last_block(r) - r.start // BLOCK for r in ranges) > MOST_BLOCKS:
        return {}
    found = _by_block(plain) | dict.fromkeys(_doubtful(plain.table), ANY_TIME)
    blocks: dict[str, list[list[int]]] = {}
    for r in ranges:
        for n in range(r.start // BLOCK, _last_block(r)):
            edges = [max(r.start, n * BLOCK), min(r.end, (n + 1) * BLOCK)]
            blocks.setdefault(str(r.partition), []).append([*edges, *found.get((r.partition, n), ())])
    return blocks


def _last_block(r: OffsetRange) -> int:
    return -(-r.end // BLOCK)


def _doubtful(table: ChunkTable) -> set[tuple[int, int]]:
    """The blocks that have a record which was refused and need not be for ever."""
    rows = [n for n, (reason, _) in table.rejected.items() if reason in MAY_BE_CHUNKS]
    return {(int(table.partition[n]), int(table.offset[n]) // BLOCK) for n in rows}


def _by_block(plain: PlainWaveforms) -> dict[tuple[int, int], tuple[int, int]]:
    """Of each partition and number of a block, the least and the greatest start time, ms."""
    table = plain.table
    others = np.flatnonzero(table.valid & ~plain.is_plain)
    rows = np.concatenate([plain.rows, others])
    if not len(rows):
        return {}
    known = np.repeat(plain.start_ns, np.diff(plain.first))
    # As `epoch_ms`: rounded down, before 1970, too.
    times = np.concatenate([known, start_times_ns(table, others)]) // 1_000_000
    partition, block = table.partition[rows], table.offset[rows] // BLOCK
    order = np.lexsort((block, partition))
    partition, block, times = partition[order], block[order], times[order]
    begins = np.flatnonzero(np.append(True, (partition[1:] != partition[:-1]) | (block[1:] != block[:-1])))
    least, greatest = np.minimum.reduceat(times, begins), np.maximum.reduceat(times, begins)
    places = zip(partition[begins].tolist(), block[begins].tolist(), strict=True)
    return dict(zip(places, zip(least.tolist(), greatest.tolist(), strict=True), strict=True))
