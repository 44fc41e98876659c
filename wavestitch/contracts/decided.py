"""What comes out of a decision: the fates of all chunks of a batch, in order, under the digest that names them.

The pieces of plain waveforms are rows of the index and stay rows; all other fates are objects. Whoever asks for one
fate after the other gets objects, and whoever counts or compares does it by columns. Pure. Keeps I1: nothing is left
out of the order, which is that of the places.
"""

from __future__ import annotations

import hashlib
from binascii import hexlify
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wavestitch.contracts.chunk_table import TEXT, ChunkTable, Rows
from wavestitch.contracts.fates import ChunkFate, Hold
from wavestitch.contracts.held_mark import BESIDE
from wavestitch.contracts.plain_waveforms import PlainWaveforms
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.reasons import Fate, Reason

_AT_ONCE = 1 << 16
_ESCAPED = np.frombuffer(b"'\"\\", np.uint8)


class Fates(Sequence[ChunkFate]):
    """In order of places, what is held at last. `plain`: all of its rows are published. `others`: of all other chunks,
    in order."""

    __slots__ = ("_order", "others", "plain")

    def __init__(self, plain: PlainWaveforms, others: Sequence[ChunkFate]) -> None:
        self.plain = plain
        self.others = sorted(others, key=_order)
        self._order: Rows | None = None

    def __len__(self) -> int:
        return len(self.plain.rows) + len(self.others)

    @overload
    def __getitem__(self, at: int) -> ChunkFate: ...
    @overload
    def __getitem__(self, at: slice) -> list[ChunkFate]: ...
    def __getitem__(self, at: int | slice) -> ChunkFate | list[ChunkFate]:
        meant = range(len(self))[at]
        if isinstance(meant, int):
            return self._fates(self.order[meant : meant + 1])[0]
        return self._fates(self.order[np.asarray(meant, np.int64)])

    def __iter__(self) -> Iterator[ChunkFate]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self._fates(self.order[start : start + _AT_ONCE])

    @property
    def order(self) -> Rows:
        """In order of places: rows of the table that are plain, or ~n for number n of the others."""
        if self._order is None:
            self._order = self._merged()
        return self._order

    def counts(self) -> dict[Fate, int]:
        """Chunks per fate; every fate is there."""
        found = Counter(f.fate for f in self.others)
        found[Fate.PUBLISHED] += len(self.plain.rows)
        return {fate: found[fate] for fate in Fate}

    def by_partition(self) -> Counter[tuple[int, bool, Fate]]:
        """How many chunks by partition, whether they were carried in, and fate."""
        found = Counter[tuple[int, bool, Fate]]((f.chunk.partition, f.chunk.carried, f.fate) for f in self.others)
        numbers, times = np.unique(self.plain.table.partition[self.plain.rows], return_counts=True)
        for p, n in zip(numbers.tolist(), times.tolist(), strict=True):
            found[p, False, Fate.PUBLISHED] += n
        return found

    def update(self, seal: Any) -> None:
        """Have a digest go over all of them, a line each."""
        table, odd = self.plain.table, np.empty(0, np.int64)
        ids = _as_repr(table.ids) if len(self.plain) else pa.array([], TEXT)
        for start in range(0, len(self), _AT_ONCE):
            some = self.order[start : start + _AT_ONCE]
            rows, odd = some[some >= 0], ~some[some < 0]
            lines = _plain_lines(table, ids, rows)
            if len(odd):
                both = pa.concat_arrays([lines, pa.array([_line(self.others[n]) for n in odd.tolist()], TEXT)])
                places = np.where(some >= 0, np.cumsum(some >= 0) - 1, len(rows) + np.cumsum(some < 0) - 1)
                lines = both.take(pa.array(places))
            seal.update(_bytes_of(lines))

    def _fates(self, some: Rows) -> list[ChunkFate]:
        rows = some[some >= 0]
        chunks = iter(self.plain.table.facts(rows))
        return [ChunkFate(next(chunks), Fate.PUBLISHED) if n >= 0 else self.others[~n] for n in some.tolist()]

    def _merged(self) -> Rows:
        rows = np.sort(self.plain.rows)
        read = [f.chunk for f in self.others if not f.chunk.carried]
        behind = ~np.arange(len(read), len(self.others))
        if not len(rows) or not read:
            return np.concatenate([rows, ~np.arange(len(read)), behind])
        table = self.plain.table
        partition = np.concatenate([table.partition[rows], np.array([c.partition for c in read], np.int32)])
        offset = np.concatenate([table.offset[rows], np.array([c.offset for c in read], np.int64)])
        order = np.concatenate([rows, ~np.arange(len(read))])[np.lexsort((offset, partition))]
        return np.concatenate([order, behind])


@dataclass(frozen=True, slots=True)
class Decision:
    """`digest` names the decision. `carried_in`: held chunks that it had to take up, per partition, counted from what
    is held and not from the fates. `held_counts`: how many chunks are held after it, by reason; `held_bytes`: what
    those that are chunks count for."""

    digest: str
    plan_id: str
    publish: tuple[str, ...]
    fates: Fates
    holds: tuple[Hold, ...]
    head: Head
    carried_in: Mapping[Partition, int]
    held_counts: Mapping[str, int]
    held_bytes: int

    @property
    def waveform_rows(self) -> int:
        """As `HeldMark.waveform_rows`, after it."""
        return sum(n for reason, n in self.held_counts.items() if reason not in BESIDE)

    def counts(self) -> dict[Fate, int]:
        """Chunks per fate; every fate is there."""
        return self.fates.counts()

    def waveforms(self, fate: Fate) -> set[str]:
        """Those that have a chunk of this fate, which is not `published`: these are `publish`."""
        return {f.chunk.waveform_id for f in self.fates.others if f.fate is fate and f.chunk.waveform_id is not None}

    def reasons(self) -> dict[Reason, int]:
        """Chunks per reason, of all that have one."""
        return dict(Counter(f.reason for f in self.fates.others if f.reason is not None))


def seal_decision(plan_id: str, head: Head, fates: Fates, holds: Sequence[Hold]) -> str:
    """The digest that names a decision: over what it says of every chunk, and what it holds."""
    seal = hashlib.sha256(f"{plan_id} {head.sequence} {head.generation}\n".encode())
    fates.update(seal)
    for h in holds:
        seal.update(f"hold {h.chunk.carried} {h.chunk.coordinate} {h.chunk.piece.hex()} {h.reason}\n".encode())
    return seal.hexdigest()[:32]


def holds_in_order(holds: Sequence[Hold]) -> tuple[Hold, ...]:
    return tuple(sorted(holds, key=_order))


def _order(found: ChunkFate | Hold) -> tuple[bool, str, int, int]:
    c = found.chunk
    return c.carried, c.topic_id, c.partition, c.offset


def _line(f: ChunkFate) -> str:
    c, fate, reason, _ = f
    where = f"{c.carried} {c.topic_id!r} {c.partition} {c.offset}"
    return f"{where} {c.piece.hex()} {c.count} {c.digest} {c.waveform_id!r} {c.seq} {fate} {reason}\n"


def _plain_lines(table: ChunkTable, ids: pa.Array, rows: Rows) -> pa.Array:
    """What `_line` says of rows that are published. `ids`: as `repr` has them."""
    if not len(rows):
        return pa.array([], TEXT)
    counts = pa.array(table.whole_count[rows], mask=table.whole_count[rows] < 0)
    digests = table.digests.take(pa.array(table.digest[rows], mask=table.digest[rows] < 0))
    said = [
        "False ''",
        _text(table.partition[rows]),
        _text(table.offset[rows]),
        _hex(table.piece[rows]),
        pc.fill_null(counts.cast(TEXT), "None"),
        pc.fill_null(digests, "None"),
        ids.take(pa.array(table.waveform[rows])),
        _text(table.seq[rows]),
        f"{Fate.PUBLISHED} {None}\n",
    ]
    return pc.binary_join_element_wise(
        *(pa.scalar(s, TEXT) if isinstance(s, str) else s for s in said), pa.scalar(" ", TEXT)
    )


def _as_repr(texts: pa.Array) -> pa.Array:
    """Each as `repr` has it: printable ASCII without quotes and backslashes is itself, in quotes."""
    data = np.frombuffer(_bytes_of(texts), np.uint8)
    if len(data) and (data.min() < ord(" ") or data.max() > ord("~") or np.isin(data, _ESCAPED).any()):
        return pa.array([repr(i) for i in texts.to_pylist()], TEXT)
    quote = pa.scalar("'", TEXT)
    return pc.binary_join_element_wise(quote, texts, quote, pa.scalar("", TEXT))


def _text(numbers: Any) -> pa.Array:
    return pa.array(numbers).cast(TEXT)


def _hex(pieces: Any) -> pa.Array:
    ends = np.arange(len(pieces) + 1, dtype=np.int64) * 64
    digits = hexlify(pieces.tobytes())
    return pa.LargeStringArray.from_buffers(len(pieces), pa.py_buffer(ends), pa.py_buffer(digits))


def _bytes_of(lines: pa.Array) -> Any:
    _, ends, data = lines.buffers()
    where = np.frombuffer(ends, np.int64)[lines.offset : lines.offset + len(lines) + 1]
    return memoryview(data)[where[0] : where[-1]] if data is not None else b""
