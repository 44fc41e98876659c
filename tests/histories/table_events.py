"""What becomes of tables: what maintenance, other tools and their owner take out of them, or put back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HistoryLost:
    """Somebody deleted the rows of these heads from the batches table."""

    sequences: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The snapshot of this head is gone. `run`: of our maintenance, which let it go; empty where somebody else did."""

    sequence: int
    decision: str
    run: str = ""


@dataclass(frozen=True, slots=True)
class TakenOut:
    """Of the decisions whose rows are held under the head of this `sequence`, which follows, maintenance has taken
    these rows out: place, digest of the piece in hex, decision."""

    run: str
    sequence: int
    rows: tuple[tuple[str, int, int, str, str], ...]


@dataclass(frozen=True, slots=True)
class Deleted:
    """Somebody deleted the rows of these waveforms from the published table."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CatalogSetBack:
    """The catalog is as it was right after this head: a backup was put back. 0: lost, and another one in its place;
    `dropped`: but what is held is there still."""

    sequence: int
    dropped: bool = False
