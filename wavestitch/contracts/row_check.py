"""Before the commit: the rows that are about to be published are made of the very chunks that the decision publishes.

What was stitched was chosen by an earlier decision, on what was held then. Where the two differ, the audit would speak
of other chunks than the table has. Pure. Keeps I1 (what is published is accounted for) and I2.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.chunk_table import TEXT, Column, Rows
from wavestitch.contracts.decided import Decision
from wavestitch.contracts.errors import Terminal, Unbalanced
from wavestitch.contracts.reasons import Fate

Piece = tuple[str, int, int, int, bytes]
"""Topic id, partition, offset, length and `piece_digest`."""


class StagedRow(NamedTuple):
    """A row in a staged file. `pieces` in order of sequence."""

    waveform_id: str
    pieces: Sequence[Piece]


@dataclass(frozen=True, slots=True, eq=False)
class StagedRows:
    """Rows as columns: row `n` has the id `ids[n]` and the pieces `[first[n], first[n + 1])` of the other columns, in
    order of sequence. `piece`: shape (pieces, 32)."""

    ids: pa.Array
    first: Rows
    topic: pa.Array
    partition: Column
    offset: Column
    length: Column
    piece: Column

    @classmethod
    def of(cls, rows: Sequence[StagedRow]) -> StagedRows:
        pieces = [piece for row in rows for piece in row.pieces]
        return cls(
            ids=pa.array([row.waveform_id for row in rows], TEXT),
            first=np.cumsum([0, *(len(row.pieces) for row in rows)]),
            topic=pa.array([topic for topic, *_ in pieces], TEXT),
            partition=np.array([p for _, p, *_ in pieces], np.int64),
            offset=np.array([offset for _, _, offset, *_ in pieces], np.int64),
            length=np.array([length for *_, length, _ in pieces], np.int64),
            piece=np.frombuffer(b"".join(piece for *_, piece in pieces), np.uint8).reshape(-1, 32),
        )

    def row(self, n: int) -> StagedRow:
        cut = slice(self.first[n], self.first[n + 1])
        numbers = (c[cut].tolist() for c in (self.partition, self.offset, self.length))
        pieces = zip(self.topic[cut].to_pylist(), *numbers, map(bytes, self.piece[cut]), strict=True)
        return StagedRow(self.ids[n].as_py(), list(pieces))


def check_rows(decision: Decision, rows: Iterable[StagedRows], *, topic_id: str, planned_on: int) -> None:
    """Raises `Unbalanced` unless there is exactly one row for each waveform that is published, and none for another,
    and its pieces are the chunks whose fate is published. `topic_id`: of what the batch read. `planned_on`: the number
    of the plan's head; where others have committed since, copies may be held that were not there when it was stitched,
    and no audit is wrong."""
    try:
        _check_rows(decision, rows, topic_id)
    except Unbalanced as error:
        if decision.head.sequence == planned_on + 1:
            raise
        raise Terminal(error.message, **error.facts) from error


def _check_rows(decision: Decision, rows: Iterable[StagedRows], topic_id: str) -> None:
    plain = decision.fates.plain
    wanted = _other_pieces(decision, topic_id)
    seen, times = Counter[str](), np.zeros(len(plain), np.int64)
    for some in rows:
        at = _places_of(some.ids, plain.ids)
        mine = np.flatnonzero(at >= 0)
        times += np.bincount(at[mine], minlength=len(plain))
        _check_plain(decision, some, mine, at[mine], topic_id)
        for n in np.flatnonzero(at < 0).tolist():
            row = some.row(n)
            seen[row.waveform_id] += 1
            if wanted.get(row.waveform_id, []) != row.pieces:
                raise _other_chunks(decision, row, wanted.get(row.waveform_id, []))
    off = {plain.ids[n].as_py(): int(times[n]) for n in np.flatnonzero(times != 1).tolist()}
    unlike = (seen - Counter(wanted.keys())) | (Counter(wanted.keys()) - seen)
    ids = [*plain.ids.to_pylist(), *wanted]
    unsaid: dict[str, int] = {}
    if sorted(ids) != list(decision.publish):
        decided, said = Counter(ids), Counter(decision.publish)
        unsaid = (decided - said) | (said - decided)
    if off or unlike or unsaid:
        odd = min({*off, *unlike, *unsaid})
        raise Unbalanced(
            f"batch {decision.plan_id[:16]}: of waveform {odd!r} there are {off.get(odd, seen[odd])} staged rows and "
            f"{_chunks_of(decision, odd)} chunks to publish; nothing was published. Carry the plan through again from "
            "its reassemble step",
            plan_id=decision.plan_id,
        )


def _chunks_of(decision: Decision, waveform_id: str) -> int:
    return sum(1 for f in decision.fates if f.fate is Fate.PUBLISHED and f.chunk.waveform_id == waveform_id)


def _other_pieces(decision: Decision, topic_id: str) -> dict[str, list[Piece]]:
    """Of the waveforms that are not plain, what is published, in order of sequence."""
    chunks: dict[str, list[tuple[int, Piece]]] = defaultdict(list)
    for f in decision.fates.others:
        if f.fate is Fate.PUBLISHED:
            c = f.chunk
            chunks[c.waveform_id or ""].append((-1 if c.seq is None else c.seq, _piece(c, topic_id)))
    return {i: [piece for _, piece in sorted(mine)] for i, mine in chunks.items()}


def _piece(c: ChunkFacts, topic_id: str) -> Piece:
    return c.topic_id or topic_id, c.partition, c.offset, c.length, c.piece


def _check_plain(decision: Decision, some: StagedRows, rows: Rows, at: Rows, topic_id: str) -> None:
    """`at`: of each of these rows, the number of its waveform among the plain ones, all of which the batch read."""
    plain = decision.fates.plain
    table, sizes, wanted = plain.table, np.diff(some.first)[rows], np.diff(plain.first)[at]
    same = sizes == wanted
    here = _ranges(some.first[rows[same]], sizes[same])
    there = plain.rows[_ranges(plain.first[at[same]], sizes[same])]
    alike = (some.partition[here] == table.partition[there]) & (some.offset[here] == table.offset[there])
    alike &= np.asarray(pc.equal(some.topic, topic_id))[here]
    alike &= (some.length[here] == table.length[there]) & _same_digests(some.piece[here], table.piece[there])
    wrong = [*rows[~same].tolist()]
    wrong += np.repeat(rows[same], sizes[same])[~alike].tolist()
    if wrong:
        n = min(wrong)
        w = int(at[np.flatnonzero(rows == n)[0]])
        chunks = table.facts(plain.rows[plain.first[w] : plain.first[w + 1]])
        raise _other_chunks(decision, some.row(n), [_piece(c, topic_id) for c in chunks])


def _same_digests(a: Column, b: Column) -> Column:
    # By four numbers: asking thirty-two bytes whether all of them are true takes longer.
    one, two, three, four = (a.view(np.uint64) == b.view(np.uint64)).T
    same: Column = one & two & three & four
    return same


def _places_of(ids: pa.Array, known: pa.Array) -> Rows:
    """Where among the known ones each id is; -1: nowhere."""
    found = pc.index_in(ids.cast(TEXT), value_set=known).fill_null(-1)
    return np.asarray(found, np.int64)


def _ranges(begins: Rows, sizes: Rows) -> Rows:
    """The numbers of all of these ranges, one behind the other."""
    ends = np.cumsum(sizes)
    return np.repeat(begins - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)


def _other_chunks(decision: Decision, row: StagedRow, wanted: Sequence[Piece]) -> Unbalanced:
    mine, theirs = set(wanted) - set(row.pieces), set(row.pieces) - set(wanted)
    places = (f"partition {p} offset {offset}" for _, p, offset, *_ in sorted(mine | theirs)[:2])
    place = ", ".join(places) or "their order"
    return Unbalanced(
        f"batch {decision.plan_id[:16]}: waveform {row.waveform_id!r} was not stitched of the chunks that the decision "
        f"publishes: {len(row.pieces)} in the row, {len(wanted)} decided, they differ in {place}. What is held changed "
        "under the batch; nothing was published. Carry the plan through again from its reassemble step",
        plan_id=decision.plan_id,
    )
