"""What maintenance does beside tables: its stages, as each is begun, and the files of readers in the landing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StageBegun:
    """A run of maintenance has begun this stage."""

    run: str
    stage: str


@dataclass(frozen=True, slots=True)
class JunkGoes:
    """A run of maintenance is about to take these held rows out, as old records that are no chunks: place, digest in
    hex, decision; since when each is held; and whether it is a chunk after all."""

    run: str
    now_ms: int
    rows: tuple[tuple[tuple[str, int, int, str, str], int, bool], ...]


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A reader has a file in the making; it was killed, or is at work still (`alive`)."""

    name: str
    at_ms: int
    alive: bool


@dataclass(frozen=True, slots=True)
class Cleared:
    """A run of maintenance has cleared the landing; `left`: the files in the making that are there after it."""

    run: str
    now_ms: int
    left: tuple[str, ...]
