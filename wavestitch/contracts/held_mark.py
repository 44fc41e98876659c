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
from wavestitch.contracts.reasons import OF_RECORDS

HELD_FORMAT = 1
"""Of held rows: their columns and what may stand in them. Whoever changes that counts it up and reads both."""
JUNK = frozenset(r.value for r in OF_RECORDS)
"""Why records are held that are no chunks."""


class HeldFile(NamedTuple):
    """One data file of the held table. `reason`: of all its rows."""

    name: str
    rows: int
    bytes: int
    reason: str


@dataclass(frozen=True, slots=True)
class HeldMark:
    """`snapshot_id`: of the held table. `rows`, `bytes` and `digest`: of its live data files. `counts`: how many chunks
    are held, by reason, and `chunk_bytes` the bytes and metadata of those that are chunks; rows that were released or
    superseded are not among them, though the files still have them. `junk_bytes`: of these files, those of records that
    are no chunks. `format`: the newest of any of these rows."""

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
        """How many chunks of waveforms are held: the rest are records that are none."""
        return sum(n for reason, n in self.counts.items() if reason not in JUNK)


def held_bytes(c: ChunkFacts) -> int:
    """What a held chunk counts for: its bytes and metadata."""
    return c.length + len(c.meta or "")


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
