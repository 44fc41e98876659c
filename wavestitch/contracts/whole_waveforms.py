"""The whole waveforms of a batch, as stitching needs them: where each piece lies, and how they are dealt out to tasks.

Plain ones come as rows of the index, the others as assemblies; here they are columns alike. Never touches payload.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wavestitch.contracts.assembly import Assembly, ChunkFacts, assemble_waveform
from wavestitch.contracts.chunk_table import NONE, TEXT, ChunkTable, Column, Rows
from wavestitch.contracts.plain_waveforms import PlainWaveforms
from wavestitch.contracts.stream import Limits

_DAY_NS = 86_400 * 10**9
_SAID_BYTES = 256 << 20
"""Metadata of the waveforms of one task: each has its own copy of them there, however little payload it has."""
_PIECE: dict[str, Any] = {
    "file": np.int32,
    "row": np.int64,
    "partition": np.int32,
    "offset": np.int64,
    "timestamp_ms": np.int64,
    "count": np.int32,
    "crc": np.uint32,
    "length": np.int32,
}


class WholeWaveforms(Sequence[Assembly]):
    """First the plain ones, in order of the index, then the others; an assembly each for whoever asks for one."""

    def __init__(self, plain: PlainWaveforms, others: Sequence[Assembly], limits: Limits) -> None:
        self.plain = plain
        self.others = others
        self._limits = limits

    def __len__(self) -> int:
        return len(self.plain) + len(self.others)

    @overload
    def __getitem__(self, at: int) -> Assembly: ...
    @overload
    def __getitem__(self, at: slice) -> list[Assembly]: ...
    def __getitem__(self, at: int | slice) -> Assembly | list[Assembly]:
        meant = range(len(self))[at]
        return self._assembly(meant) if isinstance(meant, int) else [self._assembly(n) for n in meant]

    def __iter__(self) -> Iterator[Assembly]:
        return map(self._assembly, range(len(self)))

    def _assembly(self, n: int) -> Assembly:
        if n >= len(self.plain):
            return self.others[n - len(self.plain)]
        p = self.plain
        chunks = p.table.facts(p.rows[p.first[n] : p.first[n + 1]])
        return assemble_waveform(str(chunks[0].waveform_id), chunks, self._limits)


@dataclass(frozen=True, slots=True, eq=False)
class StitchTable:
    """Waveform `n` is pieces `[first[n], first[n + 1])` of the columns in `pieces` (those of an assignment), in order
    of sequence; the `topic_id` of what the batch read is null. `sizes`: payload bytes of each. `starts`: of the first
    sample, ns since 1970. `metas`: texts, as a dictionary, since many may say the same 16 KiB."""

    ids: pa.Array
    metas: pa.Array
    digests: pa.Array
    sources: pa.Array
    starts: Rows
    first: Rows
    sizes: Rows
    pieces: dict[str, Any]

    def __len__(self) -> int:
        return len(self.starts)

    @classmethod
    def of(cls, whole: Sequence[Assembly]) -> StitchTable:
        """Raises `ValueError` unless all of them are whole, and every piece has a landing file and a row."""
        if isinstance(whole, WholeWaveforms) and len(whole.plain):
            plain = _of_plain(whole.plain)
            return _joined(plain, _of_assemblies(whole.others)) if whole.others else plain
        return _of_assemblies(list(whole))

    def chosen(self, waveforms: Rows) -> StitchTable:
        """Only these, in this order."""
        counts = np.diff(self.first)[waveforms]
        first = _starts(counts)
        # Of every piece of the new table, its number in this one.
        at = np.repeat(self.first[waveforms] - first[:-1], counts) + np.arange(first[-1])
        taken = pa.array(waveforms)
        pieces = {n: v[at] if isinstance(v, np.ndarray) else v.take(pa.array(at)) for n, v in self.pieces.items()}
        return StitchTable(
            ids=self.ids.take(taken),
            metas=self.metas.take(taken),
            digests=self.digests.take(taken),
            sources=self.sources.take(taken),
            starts=self.starts[waveforms],
            first=first,
            sizes=self.sizes[waveforms],
            pieces=pieces,
        )


def deal_out(waves: StitchTable, *, task_bytes: int, tasks_at_least: int, said_bytes: int = _SAID_BYTES) -> list[Rows]:
    """Whole waveforms dealt out to tasks, by their numbers; each is one task and becomes one output file.

    A task's waveforms start on one UTC day. Tasks hold about equal bytes, about `task_bytes` at most (one larger
    waveform is a task of its own), and there are about `tasks_at_least` of them where there are as many waveforms. Of
    metadata each has about `said_bytes` at most.
    Waveforms of one source stay together, in order of their start: so few files, and few groups of rows in them, can
    have a source's hour. The order of the argument does not matter.
    """
    if not len(waves):
        return []
    begins = waves.first[:-1]
    days = waves.starts // _DAY_NS
    on_disk = waves.pieces["row"][begins], waves.pieces["file"][begins]
    order = np.lexsort((*on_disk, waves.starts, _ranks(waves.sources), days))
    target = max(1, min(task_bytes, -(-int(waves.sizes.sum()) // max(1, tasks_at_least))))
    changes = np.flatnonzero(np.diff(days[order])) + 1
    tasks = (task for day in np.split(order, changes) for task in _cut(day, waves.sizes[day], target))
    said = np.asarray(pc.binary_length(waves.metas.dictionary), np.int64)[waves.metas.indices.to_numpy()]
    return [some for task in tasks for some in _cut(task, said[task], said_bytes)]


def _ranks(texts: pa.Array) -> Rows:
    """Of each text its place among the distinct ones, by their bytes in UTF-8: as bounds of a column compare them."""
    found = texts if isinstance(texts, pa.DictionaryArray) else texts.dictionary_encode()
    places = np.empty(len(found.dictionary), np.int64)
    places[pc.sort_indices(found.dictionary).to_numpy()] = np.arange(len(places))
    ranks: Rows = places[found.indices.to_numpy()]
    return ranks


def _cut(waveforms: Rows, sizes: Rows, target: int) -> list[Rows]:
    """The sequence cut into parts of about equal bytes. A waveform falls into the part where its middle lies."""
    total = max(1, int(sizes.sum()))
    parts = -(-total // target)
    middles = np.cumsum(sizes) - sizes / 2
    part = np.minimum(parts - 1, (middles * (parts / total)).astype(np.int64))
    return np.split(waveforms, np.flatnonzero(np.diff(part)) + 1)


def _of_plain(plain: PlainWaveforms) -> StitchTable:
    table, rows, first = plain.table, plain.rows, plain.first
    pieces: dict[str, Any] = {name: _at(table, name, rows, kind) for name, kind in _PIECE.items()}
    if len(rows) and min(pieces["file"].min(), pieces["row"].min()) < 0:
        raise ValueError("a row of the index is of no landing file")
    digests = table.digest[rows]
    pieces["digest"] = _texts(table.digests, digests)
    pieces["topic_id"] = pa.nulls(len(rows), TEXT)
    pieces["piece"] = table.piece[rows]
    return StitchTable(
        ids=plain.ids,
        metas=pa.DictionaryArray.from_arrays(pa.array(table.meta[rows[first[:-1]]], pa.int32()), table.metas),
        digests=_texts(table.digests, np.maximum.reduceat(digests, first[:-1])),
        sources=plain.sources,
        starts=plain.start_ns,
        first=first,
        sizes=np.add.reduceat(pieces["length"], first[:-1], dtype=np.int64),
        pieces=pieces,
    )


def _at(table: ChunkTable, name: str, rows: Rows, kind: Any) -> Column:
    column: Column = getattr(table, "whole_count" if name == "count" else name)
    return column[rows].astype(kind, copy=False)


def _of_assemblies(whole: Sequence[Assembly]) -> StitchTable:
    for a in whole:
        if [c.seq for c in a.pieces] != list(range(len(a.pieces))) or a.reason is not None:
            raise ValueError(f"waveform {a.waveform_id!r} is not whole; only whole waveforms are assigned")
        if any(c.file < 0 or c.row < 0 for c in a.pieces):
            raise ValueError(f"waveform {a.waveform_id!r} has a piece without landing file and row")
    chunks: list[ChunkFacts] = [c for a in whole for c in a.pieces]
    pieces: dict[str, Any] = {
        name: np.array([NONE if (v := getattr(c, name)) is None else v for c in chunks], kind)
        for name, kind in _PIECE.items()
    }
    pieces["digest"] = pa.array([c.digest for c in chunks], TEXT)
    pieces["topic_id"] = pa.array([c.topic_id or None for c in chunks], TEXT)
    pieces["piece"] = np.frombuffer(b"".join(c.piece for c in chunks), np.uint8).reshape(-1, 32)
    return StitchTable(
        ids=pa.array([a.waveform_id for a in whole], TEXT),
        metas=_once([a.pieces[0].meta or "" for a in whole]),
        digests=pa.array([a.digest for a in whole], TEXT),
        sources=pa.array([a.metadata.source for a in whole], TEXT),
        starts=np.array([a.metadata.start_time_ns for a in whole], np.int64),
        first=_starts([len(a.pieces) for a in whole]),
        sizes=np.array([a.byte_length for a in whole], np.int64),
        pieces=pieces,
    )


def _joined(a: StitchTable, b: StitchTable) -> StitchTable:
    def both(x: Any, y: Any) -> Any:
        return np.concatenate([x, y]) if isinstance(x, np.ndarray) else pa.concat_arrays([x, y])

    return StitchTable(
        ids=both(a.ids, b.ids),
        metas=pa.chunked_array([a.metas, b.metas]).unify_dictionaries().combine_chunks(),
        digests=both(a.digests, b.digests),
        sources=both(a.sources.cast(TEXT), b.sources.cast(TEXT)),
        starts=both(a.starts, b.starts),
        first=np.concatenate([a.first, a.first[-1] + b.first[1:]]),
        sizes=both(a.sizes, b.sizes),
        pieces={name: both(a.pieces[name], b.pieces[name]) for name in a.pieces},
    )


def _texts(known: pa.Array, numbers: Column) -> pa.Array:
    return known.take(pa.array(numbers, mask=numbers == NONE))


def _once(texts: Sequence[str]) -> pa.DictionaryArray:
    first: dict[str, int] = {}
    numbers = [first.setdefault(text, len(first)) for text in texts]
    return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array([*first], TEXT))


def _starts(counts: Any) -> Rows:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64)
