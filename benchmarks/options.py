"""What a person may choose about a measurement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """`mib`: payload of the side-by-side topics. `sizes`: GiB, for growth and the reader's memory. `layouts`: of
    the side-by-side. `extras`: also what only completes the picture (one process, a cold start, …). `minutes`: how long
    the freshness is watched."""

    mib: int = 1024
    rounds: int = 3
    sizes: tuple[float, ...] = (1, 4)
    layouts: tuple[str, ...] = ("sticky", "round-robin", "device", "pages", "pairs")
    extras: bool = True
    grown_rows: int = 10_000_000
    grown_snapshots: int = 10_000
    grown_batches: int = 100_000
    small_files: int = 288
    junk_rows: int = 10_000_000
    rewound_files: int = 10_000
    minutes: float = 3
    many_chunks: int = 10_000_000
    odd_chunks: int = 500_000
