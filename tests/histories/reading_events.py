"""What a run took to learn what it had to know: of what is held, and of the files of the published table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loaded:
    """A run loaded held rows; `strange`: the places (topic id, partition, offset) of those that are no chunks, which
    belong to no waveform."""

    run: str
    strange: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Named:
    """A run is asked to read these offsets: (partition, start, end). An ingest: `only` of these partitions (None: of
    all), and of those in `until` (partition, end) as far as that. `most`: offsets that one batch of it takes; None
    where its bytes may be fewer."""

    run: str
    ranges: tuple[tuple[int, int, int], ...]
    only: tuple[int, ...] | None = None
    until: tuple[tuple[int, int], ...] = ()
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A run opened files of the published table in which none of the ids stands that it asked for."""

    run: str
    files: tuple[str, ...]
