"""Backfills of a history: batches of one interval, one after the other, and what came of all of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backfilled:
    """A backfill ended well: all of its batches, and those that read across their cuts, are through. `first`: the plan
    of its first batch, empty where it found nothing to read; `scope`: the start times that it owns, `[start, end)`, in
    nanoseconds; `lost`: (partition, start, end) of what it names as gone."""

    run: str
    first: str
    scope: tuple[int, int]
    lost: tuple[tuple[int, int, int], ...] = ()
