"""Before the commit: the rows that are about to be published are made of the very chunks that the decision publishes.

What was stitched was chosen by an earlier decision, on what was held then. Where the two differ, the audit would speak
of other chunks than the table has. Pure. Keeps I1 (what is published is accounted for) and I2.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from wavestitch.contracts.errors import Unbalanced
from wavestitch.contracts.fates import Decision
from wavestitch.contracts.reasons import Fate

Piece = tuple[int, int, int, bytes]
"""Partition, offset, length and `piece_digest`."""


class StagedRow(NamedTuple):
    """A row in a staged file. `pieces` in order of sequence."""

    waveform_id: str
    pieces: Sequence[Piece]


def check_rows(decision: Decision, rows: Iterable[StagedRow]) -> None:
    """Raises `Unbalanced` unless there is exactly one row for each waveform that is published, and none for another,
    and its pieces are the chunks whose fate is published."""
    chunks: dict[str, list[tuple[int, Piece]]] = defaultdict(list)
    for f in decision.fates:
        if f.fate is Fate.PUBLISHED:
            c = f.chunk
            chunks[c.waveform_id or ""].append(
                (-1 if c.seq is None else c.seq, (c.partition, c.offset, c.length, c.piece))
            )
    seen = Counter[str]()
    for row in rows:
        seen[row.waveform_id] += 1
        wanted = [piece for _, piece in sorted(chunks.get(row.waveform_id, ()))]
        if wanted != list(row.pieces):
            raise _other_chunks(decision, row, wanted)
    if seen != Counter(decision.publish) or seen.keys() != chunks.keys():
        odd = min(set(seen - Counter(decision.publish)) | set(Counter(decision.publish) - seen) | seen.keys() ^ chunks)
        raise Unbalanced(
            f"batch {decision.plan_id[:16]}: of waveform {odd!r} there are {seen[odd]} staged rows and "
            f"{len(chunks.get(odd, ()))} chunks to publish; nothing was published. Carry the plan through again from "
            "its reassemble step",
            plan_id=decision.plan_id,
        )


def _other_chunks(decision: Decision, row: StagedRow, wanted: Sequence[Piece]) -> Unbalanced:
    mine, theirs = set(wanted) - set(row.pieces), set(row.pieces) - set(wanted)
    place = ", ".join(f"partition {p} offset {offset}" for p, offset, *_ in sorted(mine | theirs)[:2]) or "their order"
    return Unbalanced(
        f"batch {decision.plan_id[:16]}: waveform {row.waveform_id!r} was not stitched of the chunks that the decision "
        f"publishes: {len(row.pieces)} in the row, {len(wanted)} decided, they differ in {place}. What is held changed "
        "under the batch; nothing was published. Carry the plan through again from its reassemble step",
        plan_id=decision.plan_id,
    )
