"""What the head says of the held table: which of its snapshots counts, and what must be found in it.

The head alone vouches: rows of any other snapshot (staged by a decision that was never committed, appended by hand)
never count, and what is loaded is proven against rows and digest. Pure. Keeps I1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.errors import Altered
from wavestitch.contracts.reasons import OF_RECORDS, Reason

HELD_FORMAT = 1
"""Of held rows: their columns and what may stand in them. Whoever changes that counts it up and reads both."""
JUNK = frozenset(r.value for r in OF_RECORDS)
"""Why records are held that are no chunks."""
BESIDE = JUNK | {Reason.DISCARDED.value}
"""What takes none of the room that a stream has for the chunks of waveforms it holds: what an operator discarded is a
tombstone."""
AFTER_DISCARD = "after_discard"
"""How chunks are counted that came under a discarded id since: nobody has decided about these, so they take room."""


class HeldFile(NamedTuple):
    """One data file of the held table. `reason`: of all its rows."""

    name: str
    rows: int
    bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class HeldMark:
    """`snapshot_id`: of the held table. `rows`, `bytes` and `digest`: of its live data files. `counts`: how many chunks
    are held, by what they are counted as (`HeldChunk.counted_as`), and `chunk_bytes` what they count for (see
    `held_bytes`); rows that were released or superseded are not among them, though the files still have them.
    `junk_bytes`: of these files, those of records that are no chunks. `format`: the newest of any of these rows."""

    snapshot_id: int
    rows: int
    bytes: int
    digest: str
    counts: Mapping[str, int] = field(default_factory=dict)
    chunk_bytes: int = 0
    junk_bytes: int = 0
    format: int = HELD_FORMAT

    @property
    def chunks(self) -> int:
        return sum(self.counts.values())

    @property
    def waveform_rows(self) -> int:
        """How many chunks of waveforms are held and wait for something."""
        return sum(n for reason, n in self.counts.items() if reason not in BESIDE)


def held_bytes(c: ChunkFacts, counted_as: str) -> int:
    """What a held chunk counts for: its bytes and metadata. Nothing for a record that is no chunk, nor for what an
    operator discarded: a tombstone stays for ever, and what somebody has decided about may not stop the rest."""
    return c.length + len(c.meta or "") if c.reason is None and counted_as not in BESIDE else 0


def mark_of(snapshot_id: int, files: Iterable[HeldFile], counts: Mapping[str, int], chunk_bytes: int) -> HeldMark:
    """The mark of a snapshot with these live files."""
    ordered = sorted(files)
    seal = hashlib.sha256()
    for f in ordered:
        seal.update(f"{f.name} {f.rows} {f.bytes} {f.reason}\n".encode())
    kept = {reason: n for reason, n in sorted(counts.items()) if n}
    junk = sum(f.bytes for f in ordered if f.reason in JUNK)
    rows, size = sum(f.rows for f in ordered), sum(f.bytes for f in ordered)
    return HeldMark(snapshot_id, rows, size, seal.hexdigest(), kept, chunk_bytes, junk)


def check_mark(mark: HeldMark, files: Iterable[HeldFile], *, table: str) -> None:
    """Raises `Altered` unless these are the files that the head vouches for."""
    found = replace(mark_of(mark.snapshot_id, files, mark.counts, mark.chunk_bytes), format=mark.format)
    if found != mark:
        raise Altered(
            f"snapshot {mark.snapshot_id} of table {table} has {found.rows} rows in {found.bytes} bytes (digest "
            f"{found.digest[:16]}), the head vouches for {mark.rows} rows in {mark.bytes} bytes ({mark.digest[:16]}); "
            "restore the table's files as they were, or look at what is left with `wavestitch rewind "
            f"{table.split('.', maxsplit=1)[0]} --to rebuilt`",
            table=table,
        )
