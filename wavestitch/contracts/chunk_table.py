"""The index of a batch as columns: a chunk is a row of numbers here, and an object only where somebody asks for it.

Texts that repeat (ids, metadata, digests of the whole) are kept once, and rows have their numbers: less than 100 bytes
a chunk beside these texts. A row that is made an object says the same as the landing did. Pure; decides nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.rows import meta_numbers

Column = npt.NDArray[Any]
Rows = npt.NDArray[np.int64]
NONE = -1
"""In a column of numbers: there is none."""
TEXT = pa.large_string()
"""The ids of ten million waveforms are more bytes than the offsets of the smaller type can count."""
_AT_ONCE = 1 << 14
_NUMBERS: dict[str, Any] = {
    "partition": np.int32,
    "offset": np.int64,
    "timestamp_ms": np.int64,
    "seq": np.int32,
    "whole_count": np.int32,
    "crc": np.uint32,
    "length": np.int32,
    "file": np.int32,
    "row": np.int32,
}
_FACT = {"waveform": "waveform_id", "whole_count": "count"}
"""As `ChunkFacts` and the landing call them."""
_TEXTS = {"waveform": "ids", "meta": "metas", "digest": "digests"}


@dataclass(frozen=True, eq=False)
class ChunkTable(Sequence[ChunkFacts]):
    """Rows in order. `waveform`, `meta`, `digest`: numbers of texts in `ids`, `metas`, `digests`; NONE where a record
    says nothing, as in `seq` and `whole_count`. `piece`: shape (rows, 32). `rejected`: reason and evidence of the rows
    that are no valid chunks."""

    partition: Column
    offset: Column
    timestamp_ms: Column
    waveform: Column
    seq: Column
    whole_count: Column
    crc: Column
    length: Column
    meta: Column
    digest: Column
    piece: Column
    file: Column
    row: Column
    ids: pa.Array
    metas: pa.Array
    digests: pa.Array
    rejected: Mapping[int, tuple[str, str | None]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offset)

    @overload
    def __getitem__(self, at: int) -> ChunkFacts: ...
    @overload
    def __getitem__(self, at: slice) -> list[ChunkFacts]: ...
    def __getitem__(self, at: int | slice) -> ChunkFacts | list[ChunkFacts]:
        meant = range(len(self))[at]
        return self.facts([meant])[0] if isinstance(meant, int) else self.facts(meant)

    def __iter__(self) -> Iterator[ChunkFacts]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self.facts(range(start, min(start + _AT_ONCE, len(self))))

    def facts(self, rows: Sequence[int] | Rows) -> list[ChunkFacts]:
        """These rows as objects; equal texts are one object."""
        at = np.asarray(rows, np.int64)
        said: dict[str, list[Any]] = {name: getattr(self, name)[at].tolist() for name in _NUMBERS}
        for name in ("seq", "whole_count"):
            said[name] = [None if n == NONE else n for n in said[name]]
        said |= {name: _spelled(getattr(self, texts), getattr(self, name)[at]) for name, texts in _TEXTS.items()}
        raw = self.piece[at].tobytes()
        why = [self.rejected.get(n, (None, None)) for n in at.tolist()]
        said |= {
            "waveform_id": said["waveform"],
            "count": said["whole_count"],
            "piece": [raw[n : n + 32] for n in range(0, len(raw), 32)],
        }
        said |= {"reason": [r for r, _ in why], "evidence": [e for _, e in why]}
        said |= {"carried": [False] * len(at), "topic_id": [""] * len(at)}
        return list(map(ChunkFacts._make, zip(*(said[name] for name in ChunkFacts._fields), strict=True)))

    @cached_property
    def valid(self) -> npt.NDArray[np.bool_]:
        """Which rows are chunks."""
        found: npt.NDArray[np.bool_] = self.waveform != NONE
        found[list(self.rejected)] = False
        return found

    @cached_property
    def is_in_order(self) -> bool:
        """Whether the rows are in order of their places, and no two have one."""
        p, o = self.partition, self.offset
        return bool(np.all((p[1:] > p[:-1]) | ((p[1:] == p[:-1]) & (o[1:] > o[:-1]))))

    @property
    def stored_bytes(self) -> tuple[int, int]:
        """Payload and metadata (in characters) as records bring them, and the metadata counted once."""
        sizes = np.append(np.asarray(pc.utf8_length(self.metas), np.int64), 0)
        return int(self.length.sum(dtype=np.int64) + sizes[self.meta].sum()), int(sizes.sum())

    def rows_of(self, ids: Collection[str]) -> Rows:
        """The rows that name one of these waveforms, chunks or not."""
        named = np.append(are_among(self.ids, ids), False)
        return np.flatnonzero(named[self.waveform])

    @classmethod
    def of(cls, chunks: Iterable[ChunkFacts]) -> ChunkTable:
        """Of chunks that were read; a table is taken as it is."""
        if isinstance(chunks, ChunkTable):
            return chunks
        rows = list(chunks)
        if any(c.carried or c.topic_id for c in rows):
            raise ValueError("what is held, or of another topic, is no part of a batch's index")
        said = dict(zip(ChunkFacts._fields, zip(*rows, strict=True) if rows else [()] * 17, strict=True))
        columns: dict[str, Any] = {
            name: np.array([NONE if v is None else v for v in said[_FACT.get(name, name)]], dtype)
            for name, dtype in _NUMBERS.items()
        }
        for name, texts in _TEXTS.items():
            columns[name], columns[texts] = _numbered(pa.array(said[_FACT.get(name, name)], TEXT))
        columns["piece"] = np.frombuffer(b"".join(said["piece"]), np.uint8).reshape(-1, 32)
        return cls(**columns, rejected={n: (c.reason, c.evidence) for n, c in enumerate(rows) if c.reason is not None})

    @classmethod
    def of_index(cls, index: pa.Table, file: int) -> ChunkTable:
        """Of a landing file's index, its record batches as they were written; `file`: its number in the batch. Raises
        `ValueError` where a row names metadata that are not there."""
        rows = len(index)
        columns: dict[str, Any] = {
            name: _filled(index.column(_FACT.get(name, name)), dtype)
            for name, dtype in _NUMBERS.items()
            if name not in ("file", "row")
        }
        columns |= {"file": np.full(rows, file, np.int32), "row": np.arange(rows, dtype=np.int32)}
        columns["waveform"], columns["ids"] = _numbered(index.column("waveform_id").cast(TEXT))
        columns["digest"], columns["digests"] = _numbered(index.column("digest").cast(TEXT))
        columns["meta"], columns["metas"] = _metadata(index)
        odd = np.flatnonzero(np.asarray(index.column("reason").is_valid()))
        why = [index.column(name).take(pa.array(odd)).to_pylist() for name in ("reason", "evidence")]
        rejected = dict(zip(odd.tolist(), zip(*why, strict=True), strict=True))
        return cls(**columns, piece=_pieces(index.column("piece")), rejected=rejected)

    @classmethod
    def joined(cls, tables: Sequence[ChunkTable]) -> ChunkTable:
        """One behind the other."""
        if len(tables) < 2:
            return tables[0] if tables else cls.of([])
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(t, name) for t in tables]) for name in (*_NUMBERS, "piece")
        }
        for name, texts in _TEXTS.items():
            known = [getattr(t, texts) for t in tables]
            numbers, columns[texts] = _numbered(pa.chunked_array(known, TEXT))
            # Of each table the new numbers of its texts, with NONE as the last one.
            new = [np.append(n, np.int32(NONE)) for n in np.split(numbers, np.cumsum([len(k) for k in known])[:-1])]
            columns[name] = np.concatenate([n[getattr(t, name)] for n, t in zip(new, tables, strict=True)])
        begins = np.cumsum([0, *(len(t) for t in tables)]).tolist()
        rejected = {b + n: why for b, t in zip(begins, tables, strict=False) for n, why in t.rejected.items()}
        return cls(**columns, rejected=rejected)

    def without(self, rows: Sequence[int]) -> ChunkTable:
        """All other rows, in order."""
        kept = np.delete(np.arange(len(self)), rows)
        columns: dict[str, Any] = {name: getattr(self, name)[kept] for name in (*_NUMBERS, "meta", "digest", "piece")}
        columns["waveform"] = self.waveform[kept]
        rejected = {n: self.rejected[at] for n, at in enumerate(kept.tolist()) if at in self.rejected}
        return replace(self, **columns, rejected=rejected)

    def as_file(self, number: int) -> ChunkTable:
        """The same rows, of a landing file with this number."""
        return replace(self, file=np.full(len(self), number, np.int32))


def are_among(ids: pa.Array, wanted: Collection[str]) -> npt.NDArray[np.bool_]:
    """Which of the ids are wanted."""
    if not wanted:
        return np.zeros(len(ids), np.bool_)
    return np.asarray(pc.is_in(ids, value_set=pa.array(list(wanted), TEXT)))


def _numbered(texts: Any) -> tuple[Column, pa.Array]:
    """The numbers of texts, NONE for null, and the texts, each once."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    encoded = pa.chunked_array(chunks, TEXT).dictionary_encode()
    if not encoded.num_chunks:
        return np.empty(0, np.int32), pa.array([], TEXT)
    # One pass over all of them: each part has the same texts.
    return np.concatenate([_filled(c.indices, np.int32) for c in encoded.chunks]), encoded.chunk(0).dictionary


def _filled(column: Any, dtype: Any) -> Column:
    filled = column.fill_null(NONE) if column.null_count else column
    found: Column = filled.to_numpy(zero_copy_only=False) if isinstance(filled, pa.Array) else filled.to_numpy()
    return found.astype(dtype, copy=False)


def _metadata(index: pa.Table) -> tuple[Column, pa.Array]:
    parts, texts, before = [], [], 0
    for batch in index.to_batches():
        numbers, mine = meta_numbers(batch)
        parts.append(np.where(numbers == NONE, NONE, numbers + before))
        texts.append(mine.cast(TEXT))
        before += len(mine)
    if not parts:
        return np.empty(0, np.int32), pa.array([], TEXT)
    new, known = _numbered(pa.chunked_array(texts, TEXT))
    return np.append(new, np.int32(NONE))[np.concatenate(parts)], known


def digests_of(column: pa.FixedSizeBinaryArray) -> Column:
    """Digests of 32 bytes, none of them null: shape (rows, 32). Nothing is copied."""
    if column.null_count:
        raise ValueError("a piece has no digest")
    raw = np.frombuffer(column.buffers()[1], np.uint8)
    return raw[column.offset * 32 : (column.offset + len(column)) * 32].reshape(-1, 32)


def _pieces(column: Any) -> Column:
    found = [digests_of(c) for c in column.chunks]
    return np.concatenate(found) if found else np.empty((0, 32), np.uint8)


def _spelled(texts: pa.Array, numbers: Column) -> list[str | None]:
    at = numbers.tolist()
    said = {n: None if n == NONE else texts[n].as_py() for n in set(at)}
    return [said[n] for n in at]
