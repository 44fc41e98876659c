"""When the last chunks of the waveforms were recorded that a batch publishes, and how long these waited. Pure.

By columns, since every batch is measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.chunk_table import Rows
from wavestitch.contracts.decided import Fates
from wavestitch.contracts.fates import ChunkFate
from wavestitch.contracts.freshness import Waits
from wavestitch.contracts.plain_waveforms import PlainWaveforms
from wavestitch.contracts.quantities import BEGINNING, EpochMs, Offset, Partition, Seconds, milliseconds
from wavestitch.contracts.reasons import Fate

NOTHING: Rows = np.empty(0, np.int64)


def last_recorded(fates: Fates, *, read_before: Mapping[Partition, Offset]) -> Rows:
    """The record time (ms) of the last chunk of each waveform that is published and has a chunk that nobody had read
    before: int64, one dimension. Where it was a repeat that made it whole, of that. Waveforms whose chunks have no time
    are left out."""
    found = np.concatenate([_of_plain(fates.plain, read_before), _of_others(fates.others, read_before)])
    return found[found > BEGINNING]  # as which a record without a time is landed


def waited(recorded: Rows, *, until: EpochMs, declared: Seconds | None) -> Waits | None:
    """`until`: when they were committed. None where there are none."""
    if not len(recorded):
        return None
    waits = until - recorded
    p50, p99 = (float(n) / 1000 for n in np.percentile(waits, (50, 99)))
    late = 0 if declared is None else int(np.count_nonzero(waits > milliseconds(declared)))
    return Waits(len(waits), late, declared, round(p50, 3), round(p99, 3), float(waits.max()) / 1000)


def _of_plain(plain: PlainWaveforms, read_before: Mapping[Partition, Offset]) -> Rows:
    if not len(plain):
        return NOTHING
    table, rows, begins = plain.table, plain.rows, plain.first[:-1]
    partitions = table.partition[rows]
    begin = np.zeros(int(partitions.max()) + 1, np.int64)
    for p, offset in read_before.items():
        if p < len(begin):
            begin[p] = offset
    new = np.logical_or.reduceat(table.offset[rows] >= begin[partitions], begins)
    last: Rows = np.maximum.reduceat(table.timestamp_ms[rows], begins)[new]
    return last


def _of_others(others: list[ChunkFate], read_before: Mapping[Partition, Offset]) -> Rows:
    def new(c: ChunkFacts) -> bool:
        return not c.carried and c.offset >= read_before.get(c.partition, 0)

    pieces: dict[str | None, list[ChunkFacts]] = defaultdict(list)
    repeats: dict[str | None, list[ChunkFacts]] = defaultdict(list)
    for f in others:
        if f.fate is Fate.PUBLISHED:
            pieces[f.chunk.waveform_id].append(f.chunk)
        elif f.fate is Fate.DUPLICATE:
            repeats[f.chunk.waveform_id].append(f.chunk)
    whole = [[*mine, *_made_whole(mine, repeats.get(wid, ()), new)] for wid, mine in pieces.items()]
    return np.array([max(c.timestamp_ms for c in mine) for mine in whole if any(map(new, mine))], np.int64)


def _made_whole(
    pieces: Sequence[ChunkFacts], repeats: Sequence[ChunkFacts], new: Callable[[ChunkFacts], bool]
) -> Sequence[ChunkFacts]:
    """The repeat without which the pieces were not whole, if there is one: what says the count that none of them says,
    or what came new where none of them did. Any other one came later than it could be published."""
    said = [c for c in repeats if c.count is not None] if all(c.count is None for c in pieces) else []
    found = said or ([] if any(map(new, pieces)) else [c for c in repeats if new(c)])
    return sorted(found, key=lambda c: c.timestamp_ms)[:1]
